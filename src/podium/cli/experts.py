"""podium experts: Diagnose the experts: agreement, copies, coverage, effect."""

from __future__ import annotations

import click

from podium.cli._method import make_method
from podium.cli._options import add_option, add_options
from podium.cli.input import Input, with_input
from podium.cli.output import Output, echo_if_tty, echo_note, print_grid, print_json, with_output

WIDE = ("queries", "length", "moved", "judged", "interval")  # columns dropped on a narrow terminal
ROOM = 125  # width of the whole table in characters


@click.command(name="experts")
@add_option(Input, "qrels", "Judgements, to measure the effect of each expert.")
@click.option("-m", "--method", help="Consensus method.  [default: rrf; copeland for votes]")
@click.option(
    "-M", "--metric", default="ndcg@10", show_default=True, help="Metric to report when judgements are given."
)
@add_options(Input, "features")
@click.option("--matrix", type=click.Choice(["agreement", "overlap", "shared"]), multiple=True,
              help="Show a matrix instead of the table; may be repeated.")  # fmt: skip
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
)
@add_option(Output, "plot", "Draw the agreement: a .svg, .png or .html file.")
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(
    source: Input, method: str | None, metric: str, matrix: tuple[str, ...], level: float, output: Output
) -> None:
    """Show which experts agree, copy each other, list items that no other expert lists, help the consensus, or
    use ids that do not match those of the others.

    `effect` is the metric of the consensus of all experts minus that of the consensus without this one:
    positive means that the expert helps. `moved` is how far the consensus moves without it, from 0 to 1.

    \b
    podium experts *.run
    podium experts *.run --qrels qrels.txt -m combmnz --plot agreement.svg
    podium experts *.run --matrix agreement --matrix overlap
    """
    from podium.analysis.experts import diagnose

    output.check()
    preferences, labels = source.preferences, source.optional_labels
    chosen = None if method is None else make_method(method, source)
    features = None if chosen is None else source.features_of(chosen)
    diagnosis = diagnose(preferences, labels, chosen, metric, features=features, level=level)
    if output.plot is not None:
        from podium.analysis.experts.chart import plot_agreement

        plot_agreement(diagnosis, output.plot)
    if output.json:
        print_json(diagnosis.to_dict())
        return
    for name in matrix:
        print_grid(diagnosis.matrix_grid(name))
    if not matrix:
        print_grid(diagnosis.grid(), WIDE, ROOM)
    for text in diagnosis.warnings:
        echo_note(f"Warning: {text}")
    if diagnosis.metric is not None and diagnosis.value is not None:
        echo_if_tty(f"{diagnosis.metric} of {diagnosis.method} with all experts: {diagnosis.value:.4f}")
    if diagnosis.reading:
        echo_note(diagnosis.reading)
    echo_if_tty(f"agreement: {diagnosis.measure}; use --matrix, --plot or --json for details")
