"""podium explain: why an item has its rank, and what would change it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.analysis.explain import Explanation
    from podium.data.ids import Id
    from podium.data.preferences import Preferences
    from podium.methods.base import Aggregator


@click.command(name="explain", short_help="Explain the rank of an item.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-m", "--method", default="rrf", show_default=True, help="A method, or a model file.")
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the method."
)
@click.option("--weights", metavar="NAME=W,...", help="Weights of the experts, such as bm25=1,dense=2.")
@click.option("--query", required=True, help="The query.")
@click.option("--item", help="The item.  [default: the first of the ranking]")
@click.option("--over", help="Another item: explain why the first one is above (or below) it.")
@common.features_option
@click.option("-q", "--qrels", type=common.FILES, help="Judgements to show in the heatmap.")
@click.option(
    "--plot", type=click.Path(), help="Draw the contribution of each expert: a .svg, .png or .html file."
)
@click.option(
    "--heatmap",
    type=click.Path(),
    help="Draw the rank that each expert gives each item: a .svg, .png or .html file.",
)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    method: str,
    parameters: tuple[str, ...],
    weights: str | None,
    plot: str | None,
    heatmap: str | None,
    overwrite: bool,
    json_: bool,
    **asked: Any,
) -> None:
    """Show how much each expert adds to an item's score, or how much it favors one item over another.

    With --over, also show what would swap the two items: an expert's weight, a rank in one list, more votes.
    Each reported change has been verified by recomputing the ranking.

    \b
    podium explain *.run --query 301                           why is the first item first
    podium explain *.run --query 301 --item d7 --over d9       why is d7 above d9, what would change that
    podium explain *.run --query 301 --heatmap 301.svg --qrels qrels.txt
    """
    for path in filter(None, (plot, heatmap)):
        from podium.evaluate.charts import check_suffix

        common.refuse_overwrite(path, overwrite)
        check_suffix(path)
    chosen = common.make_method(method, parameters, weights)
    content = common.read_input(files, asked["format_"], asked["options"], asked["unlisted"])
    everything = common.require_preferences(content, files)
    aggregator = common.match_weights(chosen, everything)
    features = common.resolve_features(aggregator, content, asked["features"])
    found = _explain_item(aggregator, everything, features, asked)
    if plot is not None:
        from podium.analysis.explain.chart import plot_explanation as draw

        draw(found, plot)
    if heatmap is not None:
        labels = _read_optional_labels(asked["qrels"], content)
        _save_heatmap(aggregator, everything, found.query, features, labels, heatmap)
    if json_:
        common.print_json(found.to_dict())
    else:
        _print_explanation(found)


def _explain_item(
    aggregator: Aggregator, preferences: Preferences, features: Any, asked: dict[str, Any]
) -> Explanation:
    """The ids given on the command line."""
    from podium.analysis.explain import explain

    query = resolve_id(asked["query"], preferences.queries.tolist(), "query")
    here = preferences.select([query]).index.items.tolist()
    item, over = (
        None if asked[n] is None else resolve_id(asked[n], here, "item", f" of query {query!r}")
        for n in ("item", "over")
    )
    return explain(aggregator, preferences, query, item, over=over, features=features)


def resolve_id(given: Id, ids: list[Id], what: str, of: str = "") -> Id:
    """Resolve an id: command-line text may denote a number."""
    from podium.core.errors import ParameterError

    by_text = {str(k): k for k in reversed(ids)}
    found = given if given in ids else by_text.get(str(given))
    if found is None:
        few = ", ".join(map(str, ids[:5]))
        raise ParameterError(
            f"there is no {what} {given!r}{of}; there are {few}{', ...' if len(ids) > 5 else ''}"
        )
    return found


def _read_optional_labels(qrels: str | None, content: Any) -> Any:
    from podium.cli.eval import read_labels

    return None if qrels is None and content.labels is None else read_labels(qrels, content)


def _save_heatmap(
    aggregator: Aggregator, everything: Preferences, query: Id, features: Any, labels: Any, path: str
) -> None:
    from podium.analysis.figures import rank_heatmap
    from podium.evaluate.charts import save_chart

    one = everything.select([query]) if aggregator.tags.per_query else everything
    consensus = aggregator.aggregate(one, features)
    save_chart(rank_heatmap(everything, query, {aggregator.name: consensus}, labels), path)


def _print_explanation(found: Explanation) -> None:
    """Print the table and the sentences around it."""
    for line in found.lines:
        click.echo(f"{line}.", err=not sys.stdout.isatty())  # keeps a piped table clean
    grid = found.grid(votes="{:g}:{:g}")
    common.print_table(grid.head, grid.rows)
    how = "a sum over the experts" if found.exact else "the score minus the score without the expert"
    common.echo_if_tty(f"{found.method}: {how}.")
