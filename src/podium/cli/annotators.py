"""podium annotators: the quality of annotators, random and malicious ones, with confidence intervals."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.analysis.annotators import Annotators
    from podium.data.labels import Labels

WIDE = ("pairs", "queries", "peers", "weight")  # columns omitted on a terminal
# column -> heading; the heading of the interval is its level
HEADINGS = {"annotator": "annotator", "short verdict": "verdict", "flags": "flags", "quality": "quality"}
HEADINGS |= {"short interval": "", "judgements": "judged", "pairs": "pairs", "queries": "queries"}
FIGURES = {"agreement": "consensus", "peers": "peers", "accuracy": "gold", "consistency": "repeats"}
FIGURES |= {n: n for n in ("first", "seconds", "weight")}


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
    headings = HEADINGS | {"short interval": f"{100 * found.level:.6g}%"} | FIGURES
    if sys.stdout.isatty():  # a terminal gets what fits; a pipe and --json get everything
        headings = {name: heading for name, heading in headings.items() if heading not in WIDE}
    grid = found.grid(headings, top=top)
    common.print_table(grid.head, grid.rows, title=f"{len(found):,} annotators", left=grid.left)
    if len(grid.rows) < len(found):
        common.echo_if_tty(f"{len(found) - len(grid.rows):,} more; omit --top to see all")
