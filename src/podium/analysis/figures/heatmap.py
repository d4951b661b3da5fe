"""Ranks of a query's items by expert, next to the consensus and the labels [volkovs2012, figure 4]."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import charts

__all__ = ["build_slanted_axis", "disambiguate_names", "natural_sort_key", "rank_heatmap"]

ITEMS, EXPERTS = 30, 60  # default number drawn
FEW = 2  # experts that rank none of the items are drawn unless more than this many do
UPRIGHT = 16  # minimum column width for slanted names
BELOW = 6  # relevant items further down that are also shown
WIDTH = 620  # total width of the expert columns in pixels
GRADED = 11  # up to this many distinct ratings are drawn instead of ranks
NUMBERED = 18  # minimum cell width for printed ranks
RANKS = ["#08306b", "#2171b5", "#6baed6", "#d3e3f3"]  # top to bottom; distinguishable in grayscale
GRADES = ["#fdf3e6", "#f1a340", "#8c4a03"]
QUIET = "#9a9a9a"


class HeatmapData(NamedTuple):
    """The parts of the figure: cells, and the names in order."""

    cells: list[dict[str, Any]]
    places: list[dict[str, Any]]
    grades: list[dict[str, Any]]
    items: list[str]
    experts: list[str]
    ends: tuple[float, float]  # the smallest and the largest value
    rated: bool  # cells hold ratings (larger is better) instead of ranks
    below: int  # relevant items further down that are also shown


def rank_heatmap(
    preferences: Preferences,
    query: Id,
    consensus: Consensus | Mapping[str, Consensus],
    labels: Labels | None = None,
    *,
    items: int = ITEMS,
    experts: int = EXPERTS,
) -> Any:
    """An Altair chart of experts x items in the order of the (first) consensus; a dot marks unlisted items.

    Next to it are the places in every consensus, and the labels of the query if there are any.
    """
    alt = charts.import_altair()
    named = consensus if isinstance(consensus, Mapping) else {consensus.method: consensus}
    one = preferences.select([query])
    if not one.lists.rows:
        raise ParameterError(f"no expert has a list for query {query!r}, so there are no ranks to draw")
    grid = _build_heatmap_data(one, query, named, labels, items, experts)
    y = alt.Y("item:N", sort=grid.items, title=None, axis=alt.Axis(labelLimit=180, ticks=False, domain=False))
    silent = alt.Y("item:N", sort=grid.items, title=None, axis=None)
    parts = [_draw_ranks(alt, grid, y), _draw_places(alt, grid, silent, list(named))]
    if grid.grades:
        parts.append(_draw_grades(alt, grid, silent))
    total, active = len(one.index.items), int(one.active_experts.sum())
    selection = f"items in the order of {next(iter(named))}"
    if len(grid.items) < total:
        selection += f", the first {len(grid.items) - grid.below} of {total}"
        selection += f" and {grid.below} relevant ones further down" if grid.below else ""
    if len(grid.experts) < active:
        selection += f"; the {len(grid.experts)} of {active} experts that list most of them"
    what = "how {} experts rate {} items" if grid.rated else "where {} experts put {} items"
    dark = "a high rating; a dot: not rated" if grid.rated else "near the top; a dot: not listed"
    title = {
        "text": f"Query {query}: {what.format(len(grid.experts), len(grid.items))}",
        "subtitle": [selection, f"dark: {dark}"],
        "anchor": "start",
    }
    chart = alt.hconcat(*parts, spacing=10, title=title).resolve_scale(y="shared", color="independent")
    return chart.configure_view(stroke=None).configure_axis(grid=False)


def disambiguate_names(ids: Sequence[Id]) -> list[str]:
    """Ids as drawn; ids that would look the same are disambiguated."""
    plain = [str(i) for i in ids]
    twice = {name for name in plain if plain.count(name) > 1} if len(set(plain)) < len(plain) else set()
    return [repr(i) if name in twice else name for i, name in zip(ids, plain, strict=True)]


def natural_sort_key(name: str) -> tuple[Any, ...]:
    """A sort key that puts expert-9 before expert-10."""
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in re.split(r"(\d+)", name) if p)


def _build_heatmap_data(
    one: Preferences,
    query: Id,
    named: Mapping[str, Consensus],
    labels: Labels | None,
    items: int,
    experts: int,
) -> HeatmapData:
    whole, grade = next(iter(named.values())).ranking(query), {}
    if labels is not None and labels.queries.code_of(query) is not None:
        here = labels.select([query])
        grade = dict(zip(here.index.items.tolist(), here.grades.tolist(), strict=True))
    # the first items, followed by a few relevant ones that the cut would remove
    good = sorted((i for i in whole[items:] if grade.get(i, 0.0) > 0), key=lambda i: -grade[i])[:BELOW]
    order = whole[:items] + [i for i in whole[items:] if i in set(good)]
    slots = {one.index.slot(query, item): place for place, item in enumerate(order)}
    lists = one.lists
    kept = np.isin(lists.item, list(slots))
    who = lists.expert[lists.list_of_row]
    listed_count = np.bincount(who[kept], minlength=len(one.experts))
    active = np.flatnonzero((listed_count > 0) if (listed_count > 0).sum() > FEW else one.active_experts)
    chosen = active[np.argsort(-listed_count[active], kind="stable")][:experts]
    names = dict(zip(chosen.tolist(), disambiguate_names([one.experts[int(c)] for c in chosen]), strict=True))
    rows = disambiguate_names(order)
    rated = lists.score is not None and len(np.unique(lists.score)) <= GRADED
    column = lists.score if rated and lists.score is not None else lists.rank
    value = {
        (names[e], rows[slots[s]]): v
        for e, s, v, k in zip(who.tolist(), lists.item.tolist(), column.tolist(), kept, strict=True)
        if k and e in names
    }
    places: list[dict[str, Any]] = []
    for method, consensus in named.items():
        place = {r.item: r.rank for r in consensus[query]}
        places += [
            {"method": method, "item": row, "place": place.get(i)} for i, row in zip(order, rows, strict=True)
        ]
    grades: list[dict[str, Any]] = []
    if labels is not None and labels.queries.code_of(query) is not None:
        for i, row in zip(order, rows, strict=True):
            g = grade.get(i, math.nan)
            shown = (None, "?") if math.isnan(g) else (g, f"{g:g}")
            grades.append({"item": row, "label": "label", "grade": shown[0], "text": shown[1]})
    across = sorted(names.values(), key=natural_sort_key)
    cells = [{"expert": e, "item": i, "value": value.get((e, i))} for e in across for i in rows]
    return HeatmapData(
        cells,
        places,
        grades,
        rows,
        across,
        (min(value.values(), default=1), max(value.values(), default=1))
        if rated
        else (1, max(2, *value.values(), 2)),
        rated,
        len(order) - len(whole[:items]),
    )


def build_slanted_axis(alt: Any, step: int) -> Any:
    """Axis labels above columns: slanted, or vertical where they would overlap."""
    size = max(7, min(11, step - 1))
    angle = -60 if step >= UPRIGHT else -90
    return alt.Axis(
        orient="top", labelAngle=angle, labelFontSize=size, labelLimit=110, ticks=False, domain=False
    )


def _draw_ranks(alt: Any, grid: HeatmapData, y: Any) -> Any:
    width = max(7, min(22, WIDTH // max(len(grid.experts), 1)))
    base = alt.Chart(alt.Data(values=grid.cells)).encode(
        x=alt.X("expert:N", sort=grid.experts, title=None, axis=build_slanted_axis(alt, width)), y=y
    )
    low, high = grid.ends
    if grid.rated:
        word, deep = "rating", f"datum.value > {(low + high) / 2}"
        scale = alt.Scale(domain=[low, high], range=RANKS[::-1], interpolate="lab")
    else:
        word, deep = "rank", f"datum.value <= {math.sqrt(high)}"
        scale = alt.Scale(type="log", domain=[low, high], range=RANKS, interpolate="lab")
    legend = alt.Legend(title=word, orient="bottom", direction="horizontal", gradientLength=160)
    listed = (
        base.transform_filter("isValid(datum.value)")
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            color=alt.Color("value:Q", scale=scale, legend=legend),
            tooltip=["expert:N", "item:N", alt.Tooltip("value:Q", title=word)],
        )
    )
    missing = base.transform_filter("!isValid(datum.value)").mark_point(
        shape="circle", size=4, filled=True, color=QUIET
    )
    layers = listed + missing
    if width >= NUMBERED and high < 1000:
        ink = alt.condition(deep, alt.value("white"), alt.value("#1a1a1a"))
        layers += (
            base.transform_filter("isValid(datum.value)")
            .mark_text(fontSize=9)
            .encode(text="value:Q", color=ink)
        )
    return layers.properties(width={"step": width}, height={"step": 18})


def _draw_places(alt: Any, grid: HeatmapData, y: Any, methods: list[str]) -> Any:
    last = max([2, *(c["place"] for c in grid.places if c["place"])])
    axis = alt.Axis(orient="top", labelAngle=-60, labelLimit=110, ticks=False, domain=False)
    base = (
        alt.Chart(alt.Data(values=grid.places))
        .transform_filter("isValid(datum.place)")
        .encode(x=alt.X("method:N", sort=methods, title=None, axis=axis), y=y)
    )
    scale = alt.Scale(type="log", domain=[1, last], range=RANKS, interpolate="lab")
    cells = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=alt.Color("place:Q", scale=scale, legend=None), tooltip=["method:N", "item:N", "place:Q"]
    )
    ink = alt.condition(f"datum.place <= {math.sqrt(last)}", alt.value("white"), alt.value("#1a1a1a"))
    text = base.mark_text(fontSize=10).encode(text="place:Q", color=ink)
    return (cells + text).properties(width={"step": 28}, height={"step": 18})


def _draw_grades(alt: Any, grid: HeatmapData, y: Any) -> Any:
    best = max((c["grade"] for c in grid.grades if c["grade"] is not None), default=0.0)
    axis = alt.Axis(orient="top", labelAngle=-60, labelFontWeight="bold", ticks=False, domain=False)
    base = alt.Chart(alt.Data(values=grid.grades)).encode(
        x=alt.X("label:N", title=None, axis=axis), y=y, tooltip=["item:N", "text:N"]
    )
    scale = alt.Scale(domain=[0, max(best, 1)], range=GRADES, clamp=True)
    cells = (
        base.transform_filter("isValid(datum.grade)")
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(color=alt.Color("grade:Q", scale=scale, legend=None))
    )
    high = f"isValid(datum.grade) && datum.grade > {0.6 * max(best, 1)}"
    ink = alt.condition(high, alt.value("white"), alt.value("#1a1a1a"))
    text = base.mark_text(fontSize=10, fontWeight="bold").encode(text="text:N", color=ink)
    return (cells + text).properties(width={"step": 28}, height={"step": 18})
