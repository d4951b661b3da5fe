"""podium annotators: Estimate the quality of annotators."""

from __future__ import annotations

import sys

import click

from podium.cli._method import make_method
from podium.cli._options import add_option
from podium.cli.input import Input, with_input
from podium.cli.output import Output, echo_if_tty, echo_note, print_json, print_table, with_output

WIDE = ("pairs", "queries", "peers", "weight")  # columns omitted on a terminal
# column -> heading; the heading of the interval is its level
HEADINGS = {"annotator": "annotator", "short verdict": "verdict", "flags": "flags", "quality": "quality"}
HEADINGS |= {"short interval": "", "judgements": "judged", "pairs": "pairs", "queries": "queries"}
FIGURES = {"agreement": "consensus", "peers": "peers", "accuracy": "gold", "consistency": "repeats"}
FIGURES |= {n: n for n in ("first", "seconds", "weight")}


@click.command(name="annotators")
@add_option(Input, "qrels", "Gold judgements, to measure annotators against.")
@click.option(
    "-m", "--method", help="Consensus method to compare annotators with.  [default: as podium fuse chooses]"
)
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
    podium annotators judgements.csv
    podium annotators judgements.csv --qrels gold.qrels --flag malicious --json
    podium annotators votes.csv -m copeland --plot annotators.svg
    """
    from podium.analysis.annotators import annotators

    output.check()
    preferences = source.preferences
    consensus = None if method is None else make_method(method, source).aggregate(preferences)
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
    headings = HEADINGS | {"short interval": f"{100 * shown.level:.6g}%"} | FIGURES
    if sys.stdout.isatty():  # a terminal gets what fits; a pipe and --json get everything
        headings = {name: heading for name, heading in headings.items() if heading not in WIDE}
    grid = shown.grid(headings, top=output.top)
    print_table(grid.head, grid.rows, title=f"{len(shown):,} annotators", left=grid.left)
    if len(grid.rows) < len(shown):
        echo_if_tty(f"{len(shown) - len(grid.rows):,} more; omit --top to see all")
