"""Explain an item's rank, and show how expert weights change the ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.analysis.explain import Explanation, explain
from podium.analysis.explain.counterfactuals import scale_expert_weight
from podium.analysis.figures.heatmap import natural_sort_key
from podium.core.errors import ParameterError
from podium.data.consensus import RankedItem
from podium.data.ids import Id
from podium.methods.base import Aggregator
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.studio.item_texts import name_item
from podium.studio.pages.fusion_views import compute_consensus
from podium.studio.pages.query_views import select_grades
from podium.studio.pages.view_context import View, ViewContext, id_text, item_texts, register_view, resolve_id

MARK = "w:"  # prefix of a weight's name in the URL
LARGEST = 100.0
SLIDERS = 60  # experts with a slider, those that rank most items
SHOWN = 50  # ranks on the page


def resolve_weights(c: ViewContext) -> tuple[str, Aggregator, dict[Id, float]]:
    """The specification of the method, the method with the weights in the URL, and these weights."""
    spec, method = c.method()
    p = c.data.preferences
    factors: dict[Id, float] = {}  # the expert weights in the URL
    for name, text in c.parameters:
        if not name.startswith(MARK) or not text.strip():
            continue
        expert = resolve_id(name.removeprefix(MARK), p.experts, "expert")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= LARGEST:
            raise ParameterError(f"a weight is {text[:50]!r}; accepted: numbers from 0 to {LARGEST:g}")
        factors[expert] = value
    factors = {e: v for e, v in factors.items() if v != 1.0}
    for expert, factor in factors.items():
        other = scale_expert_weight(method, p, expert, factor)
        if other is None and getattr(method, "weights_", None) is None and not method.tags.weighted:
            raise ParameterError(f"{method.name} does not support weights; choose another method")
        if other is None:
            raise ParameterError("all weights are 0; give at least one expert a weight above 0")
        method = other
    return spec, method, factors


def rank_with_factors(
    c: ViewContext,
) -> tuple[str, Aggregator, Id, dict[Id, float], list[RankedItem], dict[Id, int]]:
    """The method with the weights, its ranking, and the ranking without the weights."""
    spec, method, factors = resolve_weights(c)
    q, p = c.query(), c.data.preferences
    before = {r.item: r.rank for r in compute_consensus(c, spec)[q]}
    if factors:
        one = p.select([q]) if method.tags.per_query else p
        places = method.aggregate(one, c.select_features(method))[q]
    else:
        places = compute_consensus(c, spec)[q]
    return spec, method, q, factors, places, before


HEAD = ("rank", "item", "score", "label", "before")


@register_view("rank", page=False)
def build_rank_view(c: ViewContext) -> View:
    """The ranking of one query with the weights in the URL, requested by the sliders."""
    spec, method, q, factors, places, before = rank_with_factors(c)
    graded = select_grades(c, q)
    rows = [(r.rank, r.item, r.score, graded.get(r.item), before[r.item]) for r in places]
    texts = item_texts(before)
    state = [("q", id_text(q, c.data.preferences.queries)), ("m", spec)]
    state += [(MARK + id_text(e, c.data.preferences.experts), f"{f:g}") for e, f in factors.items()]
    # for screen readers
    moved = sum(r.rank != before[r.item] for r in places)
    text, first = "The weights do not change the order.", places[0]
    if moved:
        was = f" (was {before[first.item]})" if before[first.item] != 1 else ", unchanged"
        text = f"{moved} of {len(places)} items changed rank; {first.item} is first{was}."
    document = {
        "method": repr(method),
        "query": q,
        "weights": [{"expert": e, "factor": f} for e, f in factors.items()],
        "text": text,
        "rows": [
            {**dict(zip(HEAD, r, strict=True)), "why": c.build_link("why", *state, ("item", texts[r[1]]))}
            | dict(zip(("name", "note"), name_item(r[1], c.texts), strict=True))
            for r in rows[:SHOWN]
        ],
    }
    return View("Ranking", document, HEAD, rows)


@register_view("why", "Why", 60, goal="Explain")
def build_why_view(c: ViewContext) -> View:
    """Contributions per expert, what would swap two items, and sliders for the weights."""
    spec, method, q, factors, places, _ = rank_with_factors(c)
    texts = item_texts(r.item for r in places)
    by_text = {text: item for item, text in texts.items()}
    item, over = resolve_item(c, "item", by_text, q), resolve_item(c, "over", by_text, q)
    explanation = explain_item(c, method, q, item, over)
    ranked = build_rank_view(c)
    document = {
        **explanation.to_dict(),
        "weights": ranked.document["weights"],
        "ranking": ranked.document["rows"],
    }
    can = method.tags.weighted or isinstance(getattr(method, "weights_", None), Mapping)
    more = {
        "spec": spec, "query": id_text(q, c.data.preferences.queries), "item": texts[explanation.item.item],
        "over": "" if explanation.over is None else texts[explanation.over.item], "items": list(by_text)[:500],
        "lines": explanation.lines, "sliders": build_sliders(c, q, factors) if can else [],
        "words": ranked.document["text"],
        "ranking": ranked.document["rows"], "total": len(places), "methods": c.methods(), "models": c.models(),
        "left": c.build_link("query", ("q", id_text(q, c.data.preferences.queries)), ("m", spec)),
    }  # fmt: skip
    how = "score minus the score without the expert"
    if explanation.exact:
        how = f"adds up to the {'score' if explanation.over is None else 'difference'}"
    grid = explanation.grid(unlisted="not listed", votes="{:g} for, {:g} against", digits=4)
    blocks: list[Block] = [
        Figure("contributions", explanation.chart(), f"{explanation.lines[0]}. Per expert: {how}."),
        ReportTable(replace(grid, title=f"Contributions, {explanation.method}"), 100),
    ]
    title = f"Why {explanation.item.item} has rank {explanation.item.rank} for {q}"
    return View(title, document, HEAD, ranked.rows, blocks, "why.html", more)


def explain_item(c: ViewContext, method: Aggregator, q: Id, item: Id | None, over: Id | None) -> Explanation:
    """Why the item is where it is, computed once for a page and its figure."""
    weights = tuple(pair for pair in c.parameters if pair[0].startswith(MARK))
    key = (c.data.fingerprint, "explanation", c.method()[0], q, item, over, weights)

    def compute() -> Explanation:
        return explain(method, c.data.preferences, q, item, over=over, features=c.select_features(method))

    explanation: Explanation = c.wait(c.work.result(key, compute))
    return explanation


def resolve_item(c: ViewContext, name: str, by_text: Mapping[str, Id], q: Id) -> Id | None:
    """The item of a query that a URL parameter names, if it does."""
    text = c.get_value(name)
    if not text:
        return None
    if text not in by_text:
        raise ParameterError(f"query {q!r} has no item {text[:100]!r}; choose one from the list")
    return by_text[text]


def build_sliders(c: ViewContext, q: Id, factors: Mapping[Id, float]) -> list[dict[str, Any]]:
    """The experts active on the query, those that rank most items first, then by name."""
    one = c.data.preferences.select([q])
    counts = [0] * len(one.experts)
    for e in one.lists.expert[one.lists.list_of_row].tolist() + one.comparisons.expert.tolist():
        counts[e] += 1
    most = sorted((e for e in range(len(counts)) if counts[e]), key=lambda e: -counts[e])[:SLIDERS]
    names = sorted((one.experts[e] for e in most), key=lambda e: natural_sort_key(str(e)))
    return [
        {"name": MARK + id_text(e, one.experts), "label": str(e), "value": f"{factors.get(e, 1.0):g}"}
        for e in names
    ]
