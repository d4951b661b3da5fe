"""podium annotators: the quality of annotators, random and malicious ones, with confidence intervals."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.analysis.annotators import Annotator, Annotators
    from podium.data.labels import Labels

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


@click.command(name="annotators", short_help="Estimate the quality of annotators.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-q", "--qrels", type=common.FILES, help="Gold judgements, to measure annotators against.")
@click.option("-m", "--method", help="Consensus method to compare annotators with.  [default: crowdagg]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show only the first N annotators.")
@click.option(
    "--flag",
    metavar="WORD",
    help="Show only annotators with this verdict or flag, such as malicious or copies.",
)
@click.option("--plot", type=click.Path(), help="Draw the qualities: a .svg, .png or .html file.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    method: str | None,
    level: float,
    top: int | None,
    flag: str | None,
    plot: str | None,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
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

    if plot is not None:
        from podium.evaluate.charts import check_suffix

        common.refuse_overwrite(plot, overwrite)
        check_suffix(plot)
    content = common.read_input(files, format_, options, unlisted)
    preferences = common.require_preferences(content, files)
    consensus = None if method is None else common.make_method(method).aggregate(preferences)
    gold = _read_optional_labels(qrels, content)
    found = annotators(preferences, consensus, labels=gold, times=content.seconds, level=level)
    shown = found if flag is None else found.filter_by_flag(flag)
    if plot is not None:
        from podium.analysis.annotators.chart import plot_annotators as draw

        draw(shown, plot)
    if json_:
        document = found.to_dict()
        document["rows"] = shown.to_dict()["rows"][:top]
        common.print_json(document)
        return
    _print_verdict(found)
    _print_annotators(shown, top)


def _read_optional_labels(qrels: str | None, content: Any) -> Labels | None:
    """Gold labels from `--qrels` or from the input, if any."""
    from podium.cli.eval import read_labels

    return None if qrels is None and content.labels is None else read_labels(qrels, content)


def _print_verdict(found: Annotators) -> None:
    """Print the verdict first; for a pipe, on standard error to keep the table clean."""
    for line in found.lines:
        click.echo(line, err=not sys.stdout.isatty())


def _print_annotators(found: Annotators, top: int | None) -> None:
    rows = found.rows[:top]
    columns = {name: of for name, of in OPTIONAL.items() if any(getattr(r, of[0]) is not None for r in rows)}
    head = [
        "annotator",
        "verdict",
        "flags",
        "quality",
        f"{100 * found.level:.6g}%",
        "judged",
        "pairs",
        "queries",
    ]
    lines = [
        [
            *_format_row(row),
            *(common.format_number(getattr(row, name), digits) for name, digits in columns.values()),
        ]
        for row in rows
    ]
    table = [[*head, *columns], *lines]
    if sys.stdout.isatty():  # a terminal gets what fits; a pipe and --json get everything
        shown = [i for i, name in enumerate(table[0]) if name not in WIDE]
        table = [[line[i] for i in shown] for line in table]
    common.print_table(table[0], table[1:], title=f"{len(found):,} annotators", left=3)
    if len(rows) < len(found):
        common.echo_if_tty(f"{len(found) - len(rows):,} more; omit --top to see all")


def _format_row(row: Annotator) -> list[str]:
    counts = (f"{n:,}" for n in (row.judgements, row.pairs, row.queries))
    span = f"{row.low:.2f}..{row.high:.2f}"
    verdict = row.verdict.removesuffix(" judgements")  # too few
    return [str(row.annotator), verdict, ", ".join(row.flags), f"{row.quality:.2f}", span, *counts]
