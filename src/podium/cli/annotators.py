"""podium annotators: Estimate the quality of annotators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli._method import make_method
from podium.cli._options import add_option
from podium.cli.input import Input, with_input
from podium.cli.output import (
    Output,
    echo_if_tty,
    echo_note,
    format_number,
    print_grid,
    print_json,
    with_output,
)
from podium.core.tables import Grid

if TYPE_CHECKING:
    from podium.analysis.annotators import Annotator, Annotators

WIDE = ("pairs", "queries", "peers", "weight")  # columns omitted on a terminal
OPTIONAL = {  # column -> attribute and number of digits
    "consensus": ("agreement", 2),
    "peers": ("peers", 2),
    "gold": ("accuracy", 2),
    "repeats": ("consistency", 2),
    "first": ("first", 2),
    "seconds": ("seconds", 1),
    "weight": ("weight", 2),
}


@click.command(name="annotators")
@add_option(Input, "qrels", "Gold judgements, to measure annotators against.")
@click.option("-m", "--method", help="Consensus method to compare annotators with.  [default: crowdagg]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level.")
@add_option(Output, "top", "Show only the first N annotators.", type=click.IntRange(1), metavar="N")
@click.option(
    "--flag",
    metavar="WORD",
    help="Show only annotators with this verdict or flag, such as malicious or copies.",
)
@add_option(Output, "plot", "Draw the qualities: a .svg, .png or .html file.")
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(source: Input, method: str | None, level: float, flag: str | None, output: Output) -> None:
    """Estimate which annotators are reliable, random or malicious, with confidence intervals.

    Judgements are tables of votes or ratings with an annotator column. An annotator's quality is the
    probability of judging a pair as the consensus of the others does; annotators to check come first. A
    verdict needs an interval that excludes the others; otherwise it says whether judgements or overlap are
    missing.

    \b
    podium annotators judgments.csv
    podium annotators judgments.csv --qrels gold.qrels --flag malicious --json
    podium annotators votes.csv -m copeland --plot annotators.svg
    """
    from podium.analysis.annotators import annotators

    output.check()
    preferences = source.preferences
    consensus = None if method is None else make_method(method).aggregate(preferences)
    report = annotators(
        preferences, consensus, labels=source.optional_labels, times=source.content.seconds, level=level
    )
    shown = report if flag is None else report.filter_by_flag(flag)
    if output.plot is not None:
        from podium.analysis.annotators.chart import plot_annotators

        plot_annotators(shown, output.plot)
    if output.json:
        document = report.to_dict()
        document["rows"] = shown.to_dict()["rows"][: output.top]
        print_json(document)
        return
    for line in report.lines:
        echo_note(line)
    _print_annotators(shown, output.top)


def _print_annotators(found: Annotators, top: int | None) -> None:
    rows = found.rows[:top]
    columns = {name: of for name, of in OPTIONAL.items() if any(getattr(r, of[0]) is not None for r in rows)}
    level = f"{100 * found.level:.6g}%"
    head = ("annotator", "verdict", "flags", "quality", level, "judged", "pairs", "queries", *columns)
    lines = tuple(
        (*_format_row(row), *(format_number(getattr(row, name), digits) for name, digits in columns.values()))
        for row in rows
    )
    print_grid(Grid(head, lines, 3, f"{len(found):,} annotators"), WIDE)
    if len(rows) < len(found):
        echo_if_tty(f"{len(found) - len(rows):,} more; omit --top to see all")


def _format_row(row: Annotator) -> list[str]:
    counts = (f"{n:,}" for n in (row.judgements, row.pairs, row.queries))
    span = f"{row.low:.2f}..{row.high:.2f}"
    verdict = row.verdict.removesuffix(" judgements")  # too few
    return [str(row.annotator), verdict, ", ".join(row.flags), f"{row.quality:.2f}", span, *counts]
