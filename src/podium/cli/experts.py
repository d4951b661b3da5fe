"""podium experts: agreement, copies, coverage, which experts help, whose ids do not match."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from podium.cli import _common as common

WIDE = ("queries", "length", "moved", "judged", "interval")  # columns dropped on a narrow terminal
ROOM = 125  # width of the whole table in characters

if TYPE_CHECKING:
    from podium.analysis.experts import Diagnosis
    from podium.core.tables import Grid


@click.command(name="experts", short_help="Diagnose the experts: agreement, copies, coverage, effect.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-q", "--qrels", type=common.FILES, help="Judgements, to measure the effect of each expert.")
@click.option("-m", "--method", help="Consensus method.  [default: rrf; copeland for votes]")
@click.option(
    "-M", "--metric", default="ndcg@10", show_default=True, help="Metric to report when judgements are given."
)
@common.features_option
@click.option("--matrix", type=click.Choice(["agreement", "overlap", "shared"]), multiple=True,
              help="Show a matrix instead of the table; may be repeated.")  # fmt: skip
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
)
@click.option("--plot", type=click.Path(), help="Draw the agreement: a .svg, .png or .html file.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    method: str | None,
    metric: str,
    features: tuple[str, ...],
    matrix: tuple[str, ...],
    level: float,
    plot: str | None,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Which experts agree, copy each other, list items that no other expert lists, help the consensus, or use
    ids that do not match the others'.

    `effect` is the metric of the consensus of all experts minus that of the consensus without this one:
    positive means that the expert helps. `moved` is how far the consensus moves without it, from 0 to 1.

    \b
    podium experts *.run
    podium experts *.run --qrels qrels.txt -m combmnz --plot agreement.svg
    podium experts *.run --matrix agreement --matrix overlap
    """
    from podium.analysis.experts import diagnose
    from podium.cli.eval import read_labels

    if plot is not None:
        from podium.evaluate.charts import check_suffix

        common.refuse_overwrite(plot, overwrite)
        check_suffix(plot)
    content = common.read_input(files, format_, options, unlisted)
    preferences = common.require_preferences(content, files)
    labels = read_labels(qrels, content) if qrels or content.labels is not None else None
    chosen = None if method is None else common.make_method(method)
    own = None if chosen is None else common.resolve_features(chosen, content, features)
    found = diagnose(preferences, labels, chosen, metric, features=own, level=level)
    if plot is not None:
        from podium.analysis.experts.chart import plot_agreement as draw

        draw(found, plot)
    if json_:
        common.print_json(found.to_dict())
    else:
        _print_diagnosis(found, matrix)


def _fit_to_terminal(grid: Grid) -> Grid:
    """The table; a narrow terminal drops the less important columns, a pipe gets all of them."""
    import shutil

    from podium.core.tables import Grid

    if not sys.stdout.isatty() or shutil.get_terminal_size().columns >= ROOM:
        return grid
    kept = [i for i, name in enumerate(grid.head) if name not in WIDE]
    rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return Grid(tuple(grid.head[i] for i in kept), rows, grid.left, grid.title)


def _print_diagnosis(found: Diagnosis, matrix: tuple[str, ...]) -> None:
    """Print the table or the matrices, then the warnings; for a pipe, warnings go to standard error."""
    for grid in [found.matrix_grid(name) for name in matrix] or [_fit_to_terminal(found.grid())]:
        common.print_table(grid.head, grid.rows, title=grid.title, left=grid.left)
    for text in found.warnings:
        click.echo(f"Warning: {text}", err=not sys.stdout.isatty())
    if found.metric is not None and found.value is not None:
        common.echo_if_tty(f"{found.metric} of {found.method} with all experts: {found.value:.4f}")
    if found.reading:
        click.echo(found.reading, err=not sys.stdout.isatty())
    common.echo_if_tty(f"agreement: {found.measure}; use --matrix, --plot or --json for details")
