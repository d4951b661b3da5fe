"""podium annotators: who judges well, who guesses, who misleads, and how sure that is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.analysis.annotators import Annotator, Annotators
    from podium.data.labels import Labels

WIDE = ("pairs", "queries", "peers", "weight")  # columns that a terminal has no room for
OPTIONAL = {  # column -> the attribute, and its digits
    "consensus": ("agreement", 2),
    "peers": ("peers", 2),
    "gold": ("accuracy", 2),
    "repeats": ("consistency", 2),
    "first": ("first", 2),
    "seconds": ("seconds", 1),
    "weight": ("weight", 2),
}


@click.command(name="annotators", short_help="How good annotators are, with reasons.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-q", "--qrels", type=common.FILES, help="Gold judgements, to measure annotators against.")
@click.option("-m", "--method", help="Method of the consensus they are compared with.  [default: crowdagg]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show the first N annotators only.")
@click.option(
    "--flag", metavar="WORD", help="Only those with this verdict or flag, such as malicious or copies."
)
@click.option("--plot", type=click.Path(), help="Draw it: a .svg, .png or .html file.")
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
    """Who judges well, who guesses, who answers the other way round, and how sure that is.

    Judgements are tables of votes or ratings with a column of annotators. The quality of an annotator is the chance
    that a pair is judged as the others, taken together, judge it; those who need a look come first. A verdict is given
    where the interval of the quality excludes the others; else it says whether judgements or overlap are missing.

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
    """Gold labels from `--qrels`, or those that came with the judgements, or none."""
    from podium.cli.eval import read_labels

    return None if qrels is None and content.labels is None else read_labels(qrels, content)


def _print_verdict(found: Annotators) -> None:
    """The verdict first; beside a pipe, so that the table stays a table."""
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
    if sys.stdout.isatty():  # a person gets what fits; a pipe and --json get everything
        shown = [i for i, name in enumerate(table[0]) if name not in WIDE]
        table = [[line[i] for i in shown] for line in table]
    common.print_table(table[0], table[1:], title=f"{len(found):,} annotators", left=3)
    if len(rows) < len(found):
        common.echo_if_tty(f"{len(found) - len(rows):,} more; leave out --top to see all of them")


def _format_row(row: Annotator) -> list[str]:
    counts = (f"{n:,}" for n in (row.judgements, row.pairs, row.queries))
    span = f"{row.low:.2f}..{row.high:.2f}"
    verdict = row.verdict.removesuffix(" judgements")  # too few
    return [str(row.annotator), verdict, ", ".join(row.flags), f"{row.quality:.2f}", span, *counts]
