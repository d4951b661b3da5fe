"""Fuse with one method, and download the whole result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from podium.core.tables import Grid, format_decimal
from podium.data.consensus import Consensus
from podium.reporting.blocks import ReportTable
from podium.studio.limits import check_pairs
from podium.studio.pages.view_context import View, ViewContext, id_text, item_texts, register_view

SHOWN, TOP = 5_000, 5  # queries in the table, items per query; a single query is shown with all its items
MOST = 20_000  # rows in a JSON document


def compute_consensus(c: ViewContext, spec: str) -> Consensus:
    """A method's result on all queries, computed once."""

    def compute() -> Consensus:
        method = c.work.method(spec)
        check_pairs(c.work.settings.limits, c.data.preferences, method)
        consensus: Consensus = method.aggregate(c.data.preferences, c.select_features(method))
        return consensus

    result: Consensus = c.wait(c.work.result((c.data.fingerprint, spec), compute))
    return result


@register_view("fuse", "Fuse", 20)
def build_fuse_view(c: ViewContext) -> View:
    """The first items of every query, or all items of a single one; the CSV has all of them."""
    spec, _ = c.method()
    result = compute_consensus(c, spec)
    d = result.diagnostics
    about = {
        "method": result.method,
        "fingerprint": c.data.preferences.fingerprint,
        "converged": d.converged,
        "seconds": round(d.seconds, 4),
        "notes": list(d.notes),
    }
    rows = list(itertools.islice(_iterate_rows(result), MOST))
    records = [dict(zip(HEAD, r, strict=True)) for r in rows]
    document = {**about, "complete": len(rows) == len(result.order), "rows": records}
    table, links = (_tabulate_query if len(result.queries) == 1 else _tabulate_queries)(c, spec, result)
    title = f"Fused by {result.method}"
    more = {"about": about, "spec": spec, "methods": c.methods(), "models": c.models()}
    return View(title, document, HEAD, _iterate_rows(result), [table], "fuse.html", more, links)


def _tabulate_query(c: ViewContext, spec: str, result: Consensus) -> tuple[ReportTable, dict[str, str]]:
    """All items of the only query, and the address that says why an item has its rank."""
    query = result.queries[0]
    here, every = id_text(query, result.queries), list(result[query])
    texts = item_texts(row.item for row in every)
    links = {
        str(row.item): c.build_link("why", ("q", here), ("item", texts[row.item]), ("m", spec))
        for row in every
    }
    lines = tuple(
        (str(row.item), f"{row.rank:g}", format_decimal(row.score), "yes" if row.tied else "")
        for row in every
    )
    title = f"All {len(lines):,} items by {result.method}"
    return ReportTable(Grid(("item", "rank", "score", "tied"), lines, 1, title), items=(0,)), links


def _tabulate_queries(c: ViewContext, spec: str, result: Consensus) -> tuple[ReportTable, dict[str, str]]:
    """The first items of every query, and the address of the query."""
    queries = result.queries[:SHOWN]
    links = {str(q): c.build_link("query", ("q", id_text(q, result.queries)), ("m", spec)) for q in queries}
    lines = []
    for query in queries:
        places = result.ranking(query)
        first = [str(item) for item in places[:TOP]]
        lines.append((str(query), str(len(places)), *first, *[""] * (TOP - len(first))))
    head = ("query", "items", *(f"place {n}" for n in range(1, TOP + 1)))
    count = f"{len(lines):,} of " if len(lines) < len(result.queries) else ""
    caption = f"The first {TOP} by {result.method}, {count}{len(result.queries):,} queries"
    return ReportTable(Grid(head, tuple(lines), len(head), caption), items=tuple(range(2, 2 + TOP))), links


HEAD = ("query", "rank", "item", "score", "tied")


def _iterate_rows(result: Consensus) -> Iterator[Sequence[Any]]:
    for query in result.queries:
        for r in result[query]:
            yield query, r.rank, r.item, r.score, r.tied
