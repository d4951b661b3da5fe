"""podium explain: Explain the rank of an item."""

from __future__ import annotations

import click

from podium.cli._method import AUTO, MethodChoice, with_method
from podium.cli._options import add_option, add_options
from podium.cli.input import Input, resolve_id, with_input
from podium.cli.output import Output, echo_if_tty, echo_note, print_json, print_table, with_output


@click.command(name="explain")
@with_method("A method, a model file, or auto: by the form of the input, as podium fuse.", default=AUTO)
@click.option("--query", required=True, help="The query.")
@click.option("--item", help="The item.  [default: the first of the ranking]")
@click.option("--over", help="Another item: explain why the first one is above (or below) it.")
@add_options(Input, "features")
@add_option(Input, "qrels", "Judgements to show in the heatmap.")
@add_option(Output, "plot", "Draw the contribution of each expert: a .svg, .png or .html file.")
@click.option(
    "--heatmap",
    type=click.Path(),
    help="Draw the rank that each expert gives each item: a .svg, .png or .html file.",
)
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(
    source: Input,
    choice: MethodChoice,
    query: str,
    item: str | None,
    over: str | None,
    heatmap: str | None,
    output: Output,
) -> None:
    """Show how much each expert adds to an item's score, or how much it favors one item over another.

    With --over, also show what would swap the two items: an expert's weight, a rank in one list, more votes.
    Each reported change has been verified by recomputing the ranking.

    \b
    podium explain *.run --query 301                           why is the first item first
    podium explain *.run --query 301 --item d7 --over d9       why is d7 above d9, what would change that
    podium explain *.run --query 301 --heatmap 301.svg --qrels qrels.txt
    """
    from podium.analysis.explain import explain

    output.check(heatmap)
    method, preferences = choice.make_for(source), source.preferences
    features = source.features_of(method)
    chosen = resolve_id(query, preferences.queries.tolist(), "query")
    ids = preferences.select([chosen]).index.items.tolist()
    first, second = (
        None if given is None else resolve_id(given, ids, "item", f" of query {chosen!r}")
        for given in (item, over)
    )
    explanation = explain(method, preferences, chosen, first, over=second, features=features)
    if output.plot is not None:
        from podium.analysis.explain.chart import plot_explanation

        plot_explanation(explanation, output.plot)
    if heatmap is not None:
        from podium.analysis.figures import rank_heatmap
        from podium.evaluate.charts import save_chart

        ranked = preferences.select([chosen]) if method.tags.per_query else preferences
        results = {method.name: method.aggregate(ranked, features)}
        save_chart(rank_heatmap(preferences, chosen, results, source.optional_labels), heatmap)
    if output.json:
        print_json(explanation.to_dict())
        return
    for line in explanation.lines:
        echo_note(f"{line}.")
    grid = explanation.grid(votes="{:g}:{:g}")
    print_table(grid.head, grid.rows)
    how = "a sum over the experts" if explanation.exact else "the score minus the score without the expert"
    echo_if_tty(f"{explanation.method}: {how}.")
