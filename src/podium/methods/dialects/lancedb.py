"""LanceDB: RRFReranker over several searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from podium.core.params import Range, Tune
from podium.methods.dialects.dialect import DIALECT_TAGS, Dialect, ReciprocalRankDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["LanceDb", "LanceDbRrf"]


@dataclass(kw_only=True, eq=False, repr=False)
class LanceDbRrf(ReciprocalRankDialect):
    """Reciprocal rank fusion as in LanceDB: sum of 1 / (k + rank), without weights.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="lancedb_rrf").ranking
    ['b', 'a', 'c']
    """

    name = "lancedb_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of LanceDB"
    tags = replace(DIALECT_TAGS, weighted=False)
    dialect = Dialect(
        engine="lancedb",
        call="RRFReranker",
        formula="1 / (k + r)",
        weights="none",
        depth="limit of each search",
        verified="lancedb 0.40.0",
    )

    k: Annotated[int, Range(1, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60


class LanceDb(FusionEngine):
    """LanceDB, through its Python package."""

    name = "lancedb"
    title = "LanceDB"
    repeats = True
    was_run = True
    first = "lancedb_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "scores":
            return Rewriting(LanceDbRrf(), f"LanceDB has no form of {rule.describe()}")
        k = min(max(round(rule.k), 1), 10_000)
        reason = f"LanceDB takes whole numbers from 1 as K, and k is {rule.k:g}"
        return Rewriting(LanceDbRrf(k=k), "" if k == rule.k else reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        assert isinstance(form.method, LanceDbRrf)
        searches = "\n".join(
            f"        table.search(queries[{s.expert!r}], vector_column_name={s.name!r})"
            f".with_row_id(True).limit({depth}).to_arrow(),"
            for s in form.requests
        )
        return f"""from lancedb.rerankers import RRFReranker


def search(table, queries):
    # queries: a vector by expert; a full-text search is table.search(text, query_type="fts")
    results = [
{searches}
    ]
    return RRFReranker(K={form.method.k}).rerank_multivector(results).slice(0, 10)
"""
