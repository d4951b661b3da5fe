"""Weaviate: the two fusions of a hybrid query."""

from __future__ import annotations

from dataclasses import dataclass

from podium.data.lists import Lists
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_range
from podium.methods.dialects.dialect import Dialect, RankDialect, ScoreDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Weaviate", "WeaviateRankedFusion", "WeaviateRelativeScoreFusion"]

VERIFIED = "its sources (FusionRanked, FusionRelativeScore); not run"
TIES = "by the last list's score, then by id"
K = 59  # of ranks from 1


@dataclass(kw_only=True, eq=False, repr=False)
class WeaviateRankedFusion(RankDialect):
    """Ranked fusion as in Weaviate: sum of weight / (59 + rank).

    Weaviate fuses a keyword list and a vector list; the weight of the vector list is `alpha`, that of the
    other 1 - `alpha`.

    >>> from podium import fuse
    >>> [round(score, 6) for score in fuse([["a", "b"], ["b"]], method="weaviate_ranked").scores]
    [0.03306, 0.016667]
    """

    name = "weaviate_ranked"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Weaviate"
    dialect = Dialect(
        engine="weaviate",
        call="rankedFusion",
        formula="w / (59 + r)",
        weights="alpha",
        ties=TIES,
        depth="limit",
        fewest_lists=2,
        most_lists=2,
        verified=VERIFIED,
    )

    def _points(self, rank: F8) -> F8:
        return 1.0 / (K + rank)

    def get_textbook(self) -> Textbook | None:
        return Textbook("ranks", k=K, weights=self.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class WeaviateRelativeScoreFusion(ScoreDialect):
    """Relative score fusion as in Weaviate: weighted sum of min-max scores; equal scores count as 1.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="weaviate_relative_score").scores
    [1.5, 1.0, 0.0]
    """

    name = "weaviate_relative_score"
    citation = "the relative score fusion of Weaviate"
    dialect = Dialect(
        engine="weaviate",
        call="relativeScoreFusion",
        formula="w (x - min) / (max - min)",
        weights="alpha",
        flat="1",
        ties=TIES,
        depth="limit",
        fewest_lists=2,
        most_lists=2,
        verified=VERIFIED,
    )

    def _normalize(self, lists: Lists, score: F8) -> F8:
        return normalize_by_range(lists.starts, score, 1.0)

    def get_textbook(self) -> Textbook | None:
        return Textbook("scores", normalizer="minmax", weights=self.weights)


class Weaviate(FusionEngine):
    """Weaviate 1.25 or later, through its Python client; the second expert is the vector search."""

    name = "weaviate"
    title = "Weaviate"
    first = "weaviate_relative_score"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            return self.rewrite_with_fixed_k(rule, WeaviateRankedFusion(), K)
        reason = "" if rule.normalizer == "minmax" else f"Weaviate has no form of {rule.describe()}"
        return Rewriting(WeaviateRelativeScoreFusion(), reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        keyword, vector = form.sources
        fusion = "RANKED" if isinstance(form.method, WeaviateRankedFusion) else "RELATIVE_SCORE"
        return f"""from weaviate.classes.query import HybridFusion


def search(collection, text, vector):
    # alpha is the weight of {vector.expert} (vector {vector.name!r}); {keyword.expert} has the rest
    return collection.query.hybrid(
        query=text,
        query_properties=[{keyword.name!r}],
        vector={{{vector.name!r}: vector}},
        target_vector={vector.name!r},
        alpha={form.weights[1]!r},
        fusion_type=HybridFusion.{fusion},
        limit={depth},
    )
"""
