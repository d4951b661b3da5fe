"""LanceDB: a reranker that fuses vector and full-text results, Arrow in and out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from podium.core.errors import InputError
from podium.core.optional import require_module
from podium.integrations.list_fusion import ListFusion, RankSource
from podium.methods.base import Aggregator

if TYPE_CHECKING:
    from lancedb.rerankers import Reranker
else:
    Reranker = require_module("lancedb.rerankers").Reranker

__all__ = ["PodiumReranker"]


class PodiumReranker(Reranker):
    """Fuses a hybrid search (experts `vector`, `fts`) or several vector searches (`vector1`, `vector2`, ...).

    `method` is a name such as `"rrf(k=20)"` or an aggregator, with `weights` by expert; or `model` is the
    file of a tuned or fitted one. Results have the fused score in `_relevance_score`; `return_score="all"`
    keeps `_distance` and `_score`. Where scores are used, that of a vector result is its distance, negated.
    """

    def __init__(
        self,
        method: str | Aggregator = "rrf",
        *,
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        return_score: Literal["relevance", "all"] = "relevance",
    ) -> None:
        super().__init__(return_score)
        self._fusion = ListFusion(method, weights, model, ranks)

    def __str__(self) -> str:
        return f"PodiumReranker({self._fusion.aggregator!r})"

    def rerank_hybrid(self, query: str, vector_results: Any, fts_results: Any) -> Any:
        """The rows of both tables, best first, each once."""
        return self._fuse({"vector": vector_results, "fts": fts_results})

    def rerank_multivector(
        self, vector_results: Sequence[Any], query: str | None = None, deduplicate: bool = True
    ) -> Any:
        """The rows of several vector searches, tables or queries not yet run; each row once."""
        tables = [r if hasattr(r, "column_names") else r.to_arrow() for r in vector_results]
        return self._fuse({f"vector{number}": table for number, table in enumerate(tables, 1)})

    def _fuse(self, tables: Mapping[str, Any]) -> Any:
        pa = require_module("pyarrow")
        # an empty table lacks columns, and has nothing to add
        combined = pa.concat_tables(
            [table for table in tables.values() if table.num_rows] or [*tables.values()][:1],
            promote_options="default",
        )
        lists = _read_hits(tables)
        fused = self._fusion.fuse(lists, lambda hit: hit.row_id, lambda hit: hit.score, contributions=False)
        if not fused:
            return self._handle_empty_results(combined)
        results = combined.take(pa.array([hit.document.row for hit in fused]))
        for name in {"_distance", "_score"} & set(results.column_names):
            at = results.column_names.index(name)
            if self.score == "relevance":
                results = results.remove_column(at)
                continue
            # the kept row may come from the search that has no such score
            pairs = zip(combined["_rowid"].to_pylist(), combined[name].to_pylist(), strict=True)
            known = {row_id: value for row_id, value in pairs if value is not None}
            values = pa.array(
                [known.get(hit.document.row_id) for hit in fused], results.schema.field(at).type
            )
            results = results.set_column(at, name, values)
        scores = pa.array([hit.score for hit in fused], pa.float32())
        return results.append_column("_relevance_score", scores)


class LanceHit(NamedTuple):
    """A row of a table: its number in all tables together, its id, and its score, larger is better."""

    row: int
    row_id: int
    score: float | None


def _read_hits(tables: Mapping[str, Any]) -> dict[str, list[LanceHit]]:
    lists: dict[str, list[LanceHit]] = {}
    first = 0
    for expert, table in tables.items():
        names, rows = table.column_names, table.num_rows
        if rows and "_rowid" not in names:
            raise InputError(
                f"the results of {expert!r} have no column '_rowid'",
                remedy="search with `.with_row_id(True)`",
            )
        scores = [None] * rows
        if "_distance" in names:
            scores = [None if value is None else -value for value in table["_distance"].to_pylist()]
        elif "_score" in names:
            scores = table["_score"].to_pylist()
        ids = table["_rowid"].to_pylist() if rows else []
        lists[expert] = [*map(LanceHit, range(first, first + rows), ids, scores)]
        first += rows
    return lists
