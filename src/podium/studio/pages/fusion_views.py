"""Fuse with one method, and download the whole result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from podium.core.tables import Grid
from podium.data.consensus import Consensus
from podium.reporting.blocks import ReportTable
from podium.studio.limits import check_pairs
from podium.studio.pages.view_context import View, ViewContext, id_text, register_view

SHOWN, TOP = 50, 5  # queries on the page, items per query
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
    """The top ranks of the first queries; the CSV has all of them."""
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
    links = {
        str(q): c.build_link("query", ("q", id_text(q, result.queries)), ("m", spec))
        for q in result.queries[:SHOWN]
    }
    lines = []
    for query in result.queries[:SHOWN]:
        places = result.ranking(query)
        first = [str(item) for item in places[:TOP]]
        lines.append((str(query), str(len(places)), *first, *[""] * (TOP - len(first))))
    head = ("query", "items", *(f"place {n}" for n in range(1, TOP + 1)))
    caption = f"Top ranks by {result.method}, {len(lines):,} of {len(result.queries):,} queries"
    blocks, title = [ReportTable(Grid(head, tuple(lines), len(head), caption))], f"Fused by {result.method}"
    more = {"about": about, "spec": spec, "methods": c.methods(), "models": c.models()}
    return View(title, document, HEAD, _iterate_rows(result), blocks, "fuse.html", more, links)


HEAD = ("query", "rank", "item", "score", "tied")


def _iterate_rows(result: Consensus) -> Iterator[Sequence[Any]]:
    for query in result.queries:
        for r in result[query]:
            yield query, r.rank, r.item, r.score, r.tied
