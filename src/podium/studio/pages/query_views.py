"""Views of single queries: ranks by experts and methods, and labels."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.analysis.figures import rank_heatmap
from podium.analysis.figures.heatmap import disambiguate_names, natural_sort_key
from podium.core.errors import ParameterError
from podium.core.tables import Grid, format_decimal
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.studio.pages.fusion_views import compute_consensus
from podium.studio.pages.view_context import View, ViewContext, id_text, item_texts, register_view

ITEMS = (120, 2_000)  # default and maximum number of items drawn
EXPERTS = 60
COLUMNS = 4  # methods in the heatmap


@register_view("queries", "Queries", 50, applies=lambda data: len(data.preferences) > 1, goal="Explain")
def build_queries_view(c: ViewContext) -> View:
    """All queries with their statistics, in the requested order."""
    p = c.data.preferences
    inputs = c.collect_inputs()
    names = list(inputs.results)
    table = None
    what = "mean RBO of the methods"
    if inputs.comparison is not None:
        what = inputs.comparison.metrics[0]
        at_code = inputs.comparison.evaluations[names[0]].queries.codes_of(inputs.preferences.queries)
        columns = [inputs.comparison.evaluations[n][what] for n in names]
        table = [[float(v[k]) if k >= 0 else float("nan") for v in columns] for k in at_code.tolist()]
    votes = p.comparisons
    starts = votes.query_starts
    expert_counts = [
        int(lists) if lists else len(set(votes.expert[a:b].tolist()))
        for lists, a, b in zip(np.diff(p.lists.query_starts), starts[:-1], starts[1:], strict=True)
    ]
    sizes = p.index.sizes.tolist()
    alike = inputs.compute_similarity().tolist()
    rows: list[tuple[Any, ...]] = []
    for code, q in enumerate(p.queries.tolist()):
        values = [alike[code]] if table is None else table[code]
        rows.append((q, sizes[code], expert_counts[code], *values))
    head = ("query", "items", "experts", *(names if table is not None else [what]))
    rows = _sort_rows(rows, c.get_value("sort", "none"))
    lines = tuple((str(r[0]), f"{r[1]:,}", f"{r[2]:,}", *(format_decimal(v, 3) for v in r[3:])) for r in rows)
    links = {str(r[0]): c.build_link("query", ("q", id_text(r[0], p.queries))) for r in rows}
    title = f"{len(rows):,} queries; values: {what}"
    document = {"what": what, "rows": [dict(zip(head, r, strict=True)) for r in rows]}
    blocks = [ReportTable(Grid(head, lines, 1, title))]
    more = {"sort": c.get_value("sort", "none")}
    return View("Queries", document, head, rows, blocks, "queries.html", more, links)


def _sort_rows(rows: list[tuple[Any, ...]], by: str) -> list[tuple[Any, ...]]:
    def spread(row: tuple[Any, ...]) -> float:
        known = [v for v in row[3:] if v == v]
        return max(known) - min(known) if len(known) > 1 else -known[0] if known else -9.0

    keys = {"none": None, "size": lambda r: -r[1], "spread": lambda r: -spread(r),
            "worst": lambda r: min((v for v in r[3:] if v == v), default=9.0)}  # fmt: skip
    if by not in keys:
        raise ParameterError(f"sort is {by[:50]!r}; accepted: {', '.join(keys)}")
    key = keys[by]
    return rows if key is None else sorted(rows, key=key)


# -- one query ---------------------------------------------------------------------------------------------------


@register_view("query", within="queries")
def build_query_view(c: ViewContext) -> View:
    """A heatmap of experts and items with the consensus and the labels; also as a table."""
    p, q = c.data.preferences, c.query()
    usual = dict.fromkeys((c.default_method, *c.work.choose_methods(c.data)))
    specs = c.get_values("m") or list(usual)[:COLUMNS]
    if len(specs) > COLUMNS * 2:
        raise ParameterError(f"{len(specs)} methods are selected; accepted: up to {COLUMNS * 2}")
    most = c.get_whole_number("items", ITEMS[0], 1, ITEMS[1])
    results = {spec: compute_consensus(c, spec) for spec in specs}
    cells = _build_query_table(c, q, results)
    ids, texts = p.queries, item_texts(r[0] for r in cells.rows)
    here = id_text(q, ids)
    links = {
        i: c.build_link("why", ("q", here), ("item", text), ("m", specs[0]))
        for i, text in list(texts.items())[:most]
    }
    document: dict[str, Any] = {"query": q, "methods": specs, "rows": cells.to_records()}
    at, state = ids.code_of(q) or 0, [("m", s) for s in c.get_values("m")]
    steps = {
        k: c.build_link("query", ("q", id_text(ids[n], ids)), *state) if 0 <= n < len(ids) else None
        for k, n in (("before", at - 1), ("after", at + 1))
    }
    more = {
        "query": here, "specs": specs, "steps": steps, "items": most,
        "rows": document["rows"][:most], "why": links, "experts": cells.select_experts(most),
        "total": len(cells.rows), "listed_experts": len(cells.experts),
        "methods": c.methods(), "models": c.models(), "queries": [id_text(i, ids) for i in ids[:2000]],
    }  # fmt: skip
    heatmap: Block = "The data are votes without lists, so there are no ranks to draw."
    if p.select([q]).lists.rows:
        # drawn on request
        draw = functools.partial(rank_heatmap, p, q, results, c.data.labels, items=most, experts=EXPERTS)
        order = f"ordered by {specs[0]}; a dot: not listed"
        heatmap = Figure("heatmap", draw, f"Query {q}: ranks of its items by expert, {order}.")
    return View(f"Query {q}", document, cells.list_columns(), cells.rows, [heatmap], "query.html", more)


def select_grades(c: ViewContext, q: Id) -> dict[Id, float]:
    """The labels of a query."""
    labels = c.data.labels
    if labels is None or labels.queries.code_of(q) is None:
        return {}
    here = labels.select([q])
    return dict(zip(here.index.items.tolist(), here.grades.tolist(), strict=True))


@dataclass(frozen=True)
class _QueryTable:
    """Items in the order of the first method: ranks by method, label, and rank in every expert's list."""

    methods: list[str]
    experts: list[str]
    rows: list[tuple[Any, ...]]

    def list_columns(self) -> list[str]:
        """Unambiguous column names."""
        places, ranks = [f"place: {m}" for m in self.methods], [f"rank: {e}" for e in self.experts]
        return ["item", *places, "label", *ranks]

    def select_experts(self, most: int) -> list[str]:
        """The experts on a page: those that list most of its items, in input order."""
        n = len(self.methods) + 2
        counts = [sum(row[n + e] is not None for row in self.rows[:most]) for e in range(len(self.experts))]
        seen = sorted(range(len(counts)), key=lambda e: -counts[e])[:EXPERTS]
        return [self.experts[e] for e in sorted(seen)]

    def to_records(self) -> list[dict[str, Any]]:
        """Plain values."""
        n = len(self.methods)
        return [
            {
                "item": row[0],
                "places": dict(zip(self.methods, row[1 : n + 1], strict=True)),
                "label": row[n + 1],
                "ranks": dict(zip(self.experts, row[n + 2 :], strict=True)),
            }
            for row in self.rows
        ]


def _build_query_table(c: ViewContext, q: Id, results: dict[str, Consensus]) -> _QueryTable:
    one = c.data.preferences.select([q])
    lists, known = one.lists, select_grades(c, q)
    who = lists.expert[lists.list_of_row].tolist()
    rank = {(e, s): r for e, s, r in zip(who, lists.item.tolist(), lists.rank.tolist(), strict=True)}
    experts = sorted(set(who), key=lambda e: natural_sort_key(str(one.experts[e])))
    places = {n: {r.item: r.rank for r in result[q]} for n, result in results.items()}
    slots = {item: slot for slot, item in enumerate(one.index.items.tolist())}
    rows = []
    for item in next(iter(results.values())).ranking(q):
        ranks = [rank.get((e, slots[item])) for e in experts]
        rows.append((item, *(p.get(item) for p in places.values()), known.get(item), *ranks))
    return _QueryTable(list(places), disambiguate_names([one.experts[e] for e in experts]), rows)
