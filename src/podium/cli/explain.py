"""podium explain: why an item is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.data.consensus import Consensus, Ranked
    from podium.data.preferences import Preferences
    from podium.data.vocabulary import Id


@click.command(name="explain", short_help="Say why an item is where it is.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-m", "--method", default="rrf", show_default=True, help="A method, or a model file.")
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the method."
)
@click.option("--weights", metavar="NAME=W,...", help="Weights of the experts, such as bm25=1,dense=2.")
@click.option("--query", required=True, help="The query.")
@click.option("--item", help="The item.  [default: the first of the ranking]")
@click.option("--over", help="Another item: why is the first one above (or below) this one?")
@click.option(
    "--features",
    type=common.FILES,
    multiple=True,
    help="Item features, for a method that uses them; may be repeated.",
)
@common.reading
@common.as_json
def verb(
    files: tuple[str, ...],
    method: str,
    parameters: tuple[str, ...],
    weights: str | None,
    query: str,
    item: str | None,
    over: str | None,
    features: tuple[str, ...],
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Say what each expert adds to the score of an item, or how much it speaks for one item rather than another.

    \b
    podium explain *.run --query 301                           why is the first item first
    podium explain *.run --query 301 --item d7 --over d9       why is d7 above d9
    """
    asked = common.make_method(method, parameters, weights)
    content = common.read(files, format_, options, unlisted)
    everything = common.preferences_of(content, files)
    aggregator = common.weighted(asked, everything)
    described = common.features_for(aggregator, content, features)
    q = _known(query, everything.queries.tolist(), "query")
    one = everything.select([q]) if aggregator.tags.per_query else everything
    consensus = aggregator.aggregate(one, described)
    ranking = {r.item: r for r in consensus[q]}
    names = [n for n in (item if item is not None else next(iter(ranking)), over) if n is not None]
    shown = [ranking[_known(n, list(ranking), f"item of query {q!r}")] for n in names]
    ids = [r.item for r in shown]
    if over is None:
        parts = aggregator.explain(one, q, ids[0], described)
        parts = dict(sorted(parts.items(), key=lambda pair: -abs(pair[1])))
    else:
        parts = aggregator.explain_order(one, q, ids[0], ids[1], described)
    facts = _facts(consensus, q, shown, parts, one, exact=aggregator.explains_exactly)
    if json_:
        common.emit(facts)
    else:
        _tell(facts)


def _known(given: Id, known: list[Id], what: str) -> Id:
    """The id that was meant: what is typed is text, and an id may be a number."""
    from podium.errors import ParameterError

    by_text = {str(k): k for k in reversed(known)}
    found = given if given in known else by_text.get(str(given))
    if found is None:
        few = ", ".join(map(str, known[:5]))
        raise ParameterError(
            f"there is no {what} {given!r}; there are {few}{', ...' if len(known) > 5 else ''}"
        )
    return found


def _facts(
    consensus: Consensus,
    query: Id,
    shown: list[Ranked],
    parts: dict[Id, float],
    preferences: Preferences,
    exact: bool,
) -> dict[str, Any]:
    places = [_ranks(preferences, query, r.item) for r in shown]
    return {
        "method": consensus.method,
        "query": query,
        "items": [{**r._asdict(), "of": len(consensus[query])} for r in shown],
        "exact": exact,
        "experts": [
            {"expert": e, "ranks": [place.get(e) for place in places], "value": value}
            for e, value in parts.items()
        ],
    }


def _ranks(preferences: Preferences, query: Id, item: Id) -> dict[Id, int]:
    """Where each expert that lists the item puts it."""
    lists, slot = preferences.lists, preferences.index.slot(query, item)
    rows = (lists.item == slot).nonzero()[0]
    experts = lists.expert[lists.list_of_row[rows]].tolist()
    ranks = lists.rank[rows].tolist()
    return {preferences.experts[e]: r for e, r in zip(experts, ranks, strict=True)}


def _tell(facts: dict[str, Any]) -> None:
    items = facts["items"]
    for r in items:
        tied = ", tied" if r["tied"] else ""
        common.say(
            f"{r['item']}: place {r['rank']} of {r['of']} for {facts['query']}, score {r['score']:.6g}{tied}"
        )
    value = "adds" if len(items) == 1 else f"speaks for {items[0]['item']}"
    rows = [
        (str(e["expert"]), *("" if r is None else str(r) for r in e["ranks"]), f"{e['value']:+.6g}")
        for e in facts["experts"]
    ]
    common.table(["expert", *(f"rank of {r['item']}" for r in items), value], rows)
    how = "a sum over the experts" if facts["exact"] else "the score less the score without the expert"
    common.say(f"{facts['method']}: {how}.")
