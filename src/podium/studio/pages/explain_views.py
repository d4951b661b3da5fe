"""A beside B: two items of a query with their texts, what each expert adds between them, and weights to try out.

The weights rank the query in view and are measured on all judged queries; they can be kept as a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.analysis.explain import Explanation
from podium.core.text import format_count
from podium.data.consensus import RankedItem
from podium.data.ids import Id
from podium.evaluate.comparison import compare_evaluations
from podium.evaluate.evaluation import evaluate_all
from podium.methods.base import Aggregator
from podium.metrics.base import parse
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.studio.item_texts import ItemText, name_item
from podium.studio.pages.explanation_views import (
    MARK,
    build_sliders,
    explain_item,
    rank_with_factors,
    resolve_item,
    resolve_weights,
)
from podium.studio.pages.fusion_views import compute_consensus
from podium.studio.pages.query_views import select_grades
from podium.studio.pages.view_context import METRICS, View, ViewContext, id_text, item_texts, register_view

HEAD = ("expert", "rank of A", "rank of B", "favors A by", "weight")
SHOWN = 30  # ranks beside the cards
QUERIES = 1000  # queries to choose from


@register_view("effect", page=False)
def build_effect_view(c: ViewContext) -> View:
    """The metric over all judged queries with the weights in the URL, requested by the sliders."""
    spec, method, factors = resolve_weights(c)
    document = measure_weights(c, spec, method, factors)
    ranked = _rank_rows(c)
    head = ("metric", "before", "now", "difference", "low", "high", "p", "queries")
    return View("Effect", document | {"ranking": ranked}, head, [tuple(document.get(name) for name in head)])


def measure_weights(
    c: ViewContext, spec: str, method: Aggregator, factors: Mapping[Id, float]
) -> dict[str, Any]:
    """The metric of the method as it is and with the weights, over all judged queries, and their difference."""
    metric = str(parse(c.get_value("metric", "ndcg@10")))
    labels = c.data.labels
    if labels is None:
        return {
            "metric": metric,
            "before": None,
            "now": None,
            "text": "There are no labels to measure the weights by.",
        }

    def compute() -> dict[str, Any]:
        results = {"before": compute_consensus(c, spec)}
        results["now"] = (
            method.aggregate(c.data.preferences, c.select_features(method)) if factors else results["before"]
        )
        ranked = {name: result.with_ties("trec", single=True) for name, result in results.items()}
        evaluations = evaluate_all(ranked, labels, [metric])
        two = compare_evaluations(evaluations, [metric], baseline="before")
        old, new = two.row("before", metric), two.row("now", metric)
        rows = two.per_query(metric, name="now")
        up, down = sum(r.difference > 1e-12 for r in rows), sum(r.difference < -1e-12 for r in rows)
        known = two.queries > 1 and bool(up or down)
        document = {
            "metric": metric, "before": old.mean, "now": new.mean, "difference": new.mean - old.mean,
            "low": new.low if known else None, "high": new.high if known else None, "p": new.p if known else None,
            "queries": two.queries, "better": up, "worse": down,
        }  # fmt: skip
        return document | {"text": _describe_effect(document)}

    key = (
        c.data.fingerprint,
        "weights",
        spec,
        metric,
        tuple(sorted((str(e), f) for e, f in factors.items())),
    )
    effect: dict[str, Any] = c.wait(c.work.result(key, compute))
    return effect


def _describe_effect(effect: Mapping[str, Any]) -> str:
    measured = (
        f"{effect['metric']} is {effect['now']:.4f} over {format_count(effect['queries'], 'judged query')}"
    )
    if not effect["better"] and not effect["worse"]:
        return f"{measured}, as before."
    interval = "" if effect["low"] is None else f" ({effect['low']:+.4f} to {effect['high']:+.4f})"
    counts = f"better on {effect['better']:,}, worse on {effect['worse']:,}"
    return f"{measured}, {effect['difference']:+.4f}{interval}: {counts}."


def _rank_rows(c: ViewContext) -> list[dict[str, Any]]:
    """The ranking of the query in view, with links that make an item A or B."""
    spec, _, q, factors, places, before = rank_with_factors(c)
    texts, graded = item_texts(before), select_grades(c, q)
    a, b = choose_pair(c, places, q)
    state = [("q", id_text(q, c.data.preferences.queries)), ("m", spec), ("metric", c.get_value("metric"))]
    state += [(MARK + id_text(e, c.data.preferences.experts), f"{f:g}") for e, f in factors.items()]
    rows = []
    for r in places[:SHOWN]:
        text, (name, note) = texts[r.item], name_item(r.item, c.texts)
        rows.append({
            "rank": r.rank, "before": before[r.item], "item": text, "label": graded.get(r.item),
            "name": name, "note": note,
            "is_a": r.item == a, "is_b": r.item == b,
            "as_a": c.build_link("explain", *state, ("item", text), ("over", texts[b] if b != r.item else texts[a])),
            "as_b": c.build_link("explain", *state, ("item", texts[a] if a != r.item else texts[b]), ("over", text)),
        })  # fmt: skip
    return rows


def choose_pair(c: ViewContext, places: list[RankedItem], q: Id) -> tuple[Id, Id]:
    """The two items in the URL; by default the first of the ranking and the one below it."""
    by_text = {text: item for item, text in item_texts(r.item for r in places).items()}
    a, b = resolve_item(c, "item", by_text, q), resolve_item(c, "over", by_text, q)
    order = [r.item for r in places]
    a = order[0] if a is None else a
    return a, next((i for i in order if i != a), a) if b is None or b == a else b


@register_view("explain", "A beside B", 45, goal="Explain")
def build_explain_view(c: ViewContext) -> View:
    """Why one item is above another, with their texts; sliders that are measured on all judged queries."""
    spec, method, q, factors, places, _ = rank_with_factors(c)
    a, b = choose_pair(c, places, q)
    over = b if b != a else None
    explanation = explain_item(c, method, q, a, over)
    graded = select_grades(c, q)
    can = method.tags.weighted or isinstance(getattr(method, "weights_", None), Mapping)
    effect, ranking = measure_weights(c, spec, method, factors), _rank_rows(c)
    queries = c.data.preferences.queries
    position = queries.code_of(q) or 0
    steps = {
        word: c.build_link("explain", ("q", id_text(queries[n], queries)), ("m", spec))
        if 0 <= n < len(queries)
        else ""
        for word, n in (("before", position - 1), ("after", position + 1))
    }
    more: dict[str, Any] = {
        "spec": spec, "query": id_text(q, queries), "queries": [id_text(i, queries) for i in queries[:QUERIES]],
        "methods": c.methods(), "models": c.models(), "metric": effect["metric"], "metrics": METRICS,
        "cards": _build_cards(explanation, c.texts, graded), "lines": explanation.lines[2:], "effect": effect,
        "ranking": ranking, "sliders": build_sliders(c, q, factors) if can else [], "steps": steps,
        "total": len(places), "labelled": c.data.labels is not None,
        "item": id_text(a), "over": "" if over is None else id_text(over),
    }  # fmt: skip
    rows = [
        (v.expert, v.ranks[0], v.ranks[1] if len(v.ranks) > 1 else None, v.value, v.weight)
        for v in explanation.contributions
    ]
    document = {**explanation.to_dict(), "effect": effect, "ranking": ranking}
    how = "adds up to the difference" if explanation.exact else "score minus the score without the expert"
    grid = explanation.grid(unlisted="not listed", votes="{:g} for, {:g} against", digits=4)
    blocks: list[Block] = [
        Figure("between", explanation.chart(), f"What each expert adds between the two: {how}."),
        ReportTable(replace(grid, title="What each expert adds between them")),
    ]
    cards = more["cards"]
    title = f"Why {cards[0]['title']} is where it is"
    if explanation.over is not None:
        side = "below" if explanation.item.rank > explanation.over.rank else "above"
        title = f"Why {cards[0]['title']} is {side} {cards[1]['title']}"
    return View(title, document, HEAD, rows, blocks, "explain.html", more)


def _build_cards(
    explanation: Explanation, texts: Mapping[str, ItemText], graded: Mapping[Id, float]
) -> list[dict[str, Any]]:
    cards = []
    for letter, ranked in (("A", explanation.item), ("B", explanation.over)):
        if ranked is None:
            continue
        about = texts.get(str(ranked.item), ItemText())
        label = graded.get(ranked.item)
        cards.append({
            "letter": letter, "id": str(ranked.item), "title": about.title or str(ranked.item), "body": about.text,
            "url": about.url if about.url.startswith(("http://", "https://")) else "",
            "rank": ranked.rank, "score": f"{ranked.score:.4g}", "label": "" if label is None else f"{label:g}",
        })  # fmt: skip
    return cards
