"""Qdrant: reciprocal rank fusion with weights inside the rank, distribution-based fusion, and formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from podium.core.params import Range, Tune
from podium.data.ids import Id
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_running_deviation
from podium.methods.dialects.dialect import DIALECT_TAGS, Dialect, RankDialect, ScoreDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine, ListSource, format_request
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Qdrant", "QdrantDbsf", "QdrantFormula", "QdrantRrf"]

VERIFIED = "qdrant-edge-py 0.9.0 and qdrant-client 1.20.0"


@dataclass(kw_only=True, eq=False, repr=False)
class QdrantRrf(RankDialect):
    """Reciprocal rank fusion as in Qdrant: sum of 1 / (rank / weight + k - 1).

    The weight divides the rank, so with a large `k` it changes little: with k = 61 a first place of weight 3
    gets 1/60.33 instead of 1/61. Without weights it is `rrf` with k one lower.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="qdrant_rrf").scores
    [0.8333333333333333, 0.5, 0.3333333333333333]
    """

    name = "qdrant_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Qdrant"
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "weight_two": "the weight divides the rank, so weight 2 gives less than twice the points"
    }
    dialect = Dialect(
        engine="qdrant",
        call="rrf",
        formula="1 / (r / w + k - 1)",
        weights="inside",
        depth="limit of each prefetch",
        verified=VERIFIED,
    )

    k: Annotated[int, Range(1, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 2

    def _points(self, rank: F8) -> F8:
        return 1.0 / (rank + (self.k - 1))

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        rank = preferences.lists.rank.astype(np.float64)
        counted = weight > 0
        return np.where(counted, self._points(rank / np.where(counted, weight, 1.0)), 0.0)

    def get_textbook(self) -> Textbook | None:
        if self.weights is None:
            return Textbook("ranks", k=self.k - 1)
        named = self.weights if isinstance(self.weights, Mapping) else dict(enumerate(self.weights))
        # a factor that gives first places the points that the weight inside the rank gives them
        factors = {e: self.k * w / (1 + (self.k - 1) * w) for e, w in named.items()}
        weights = factors if isinstance(self.weights, Mapping) else list(factors.values())
        return Textbook(
            "ranks", k=self.k - 1, weights=weights, reason="only Qdrant divides the rank by the weight"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class QdrantDbsf(ScoreDialect):
    """Distribution-based score fusion as in Qdrant: mean - 3 sd becomes 0, mean + 3 sd becomes 1, summed.

    The standard deviation is that of the sample, in single precision as in Qdrant. There are no weights.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="qdrant_dbsf").ranking
    ['b', 'c', 'a']
    """

    name = "qdrant_dbsf"
    citation = "Mazzeschi 2023; the form of Qdrant"
    tags = replace(DIALECT_TAGS, weighted=False)
    dialect = Dialect(
        engine="qdrant",
        call="dbsf",
        formula="1/2 + (x - mean) / (6 sd), sd of the sample",
        weights="none",
        flat="1/2",
        depth="limit of each prefetch",
        verified=VERIFIED,
    )

    def _normalize(self, lists: Lists, score: F8) -> F8:
        return normalize_by_running_deviation(lists.starts, score)

    def get_textbook(self) -> Textbook | None:
        return Textbook("scores", normalizer="dbsf", weights=self.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class QdrantFormula(ScoreDialect):
    """Weighted sum of the raw scores, as a formula query of Qdrant computes it.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5}, {"b": 2}], method="qdrant_formula", weights=[1, 3]).scores
    [11.0, 9.0]
    """

    name = "qdrant_formula"
    dialect = Dialect(
        engine="qdrant",
        call="formula",
        formula="w x",
        weights="free",
        absent="0 (the default of $score)",
        flat="its scores",
        depth="limit of each prefetch",
        verified=VERIFIED,
    )

    def _normalize(self, lists: Lists, score: F8) -> F8:
        return score

    def get_textbook(self) -> Textbook | None:
        return Textbook("scores", normalizer="none", weights=self.weights)


class Qdrant(FusionEngine):
    """Qdrant 1.17 or later: a query with a prefetch per expert."""

    name = "qdrant"
    title = "Qdrant"
    syntax = "request"
    repeats = True
    was_run = True
    first = "qdrant_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            k = min(max(round(rule.k) + 1, 1), 10_000)
            reason = "" if k == rule.k + 1 else f"Qdrant takes whole numbers as k, and k is {rule.k:g}"
            return Rewriting(QdrantRrf(k=k), reason)
        if rule.normalizer == "none":
            return Rewriting(QdrantFormula())
        if rule.normalizer == "dbsf":
            return Rewriting(QdrantDbsf())
        return Rewriting(QdrantDbsf(), f"Qdrant has no form of {rule.describe()}")

    def _repeat_requests(
        self, rewriting: Rewriting, sources: tuple[ListSource, ...], weights: Mapping[Id, float]
    ) -> EngineForm:
        form, method = super()._repeat_requests(rewriting, sources, weights), rewriting.method
        if not form.reason or not isinstance(method, QdrantRrf):
            return form
        # inside the rank, this weight gives first places the points of the factor w, the largest being 1
        shares = [weights[s.expert] / max(weights.values()) for s in sources]
        inside = [w / (method.k - (method.k - 1) * w) for w in shares]
        placed = tuple(replace(s, weight=w) for s, w in zip(sources, inside, strict=True))
        reason = rewriting.reason or f"Qdrant divides the rank by the weight, and {form.reason}"
        return EngineForm(method, placed, reason.replace("and Qdrant", "and it"), rewriting.notes)

    def write_config(self, form: EngineForm, depth: int) -> str:
        method, requests = form.method, form.requests
        prefetch = [{"query": f"<query of {s.expert}>", "using": s.name, "limit": depth} for s in requests]
        query: Any = {"fusion": "dbsf"}
        if isinstance(method, QdrantRrf):
            weights = {"weights": form.weights} if form.is_weighted else {}
            query = {"rrf": {"k": method.k, **weights}}
        elif isinstance(method, QdrantFormula):
            scores = [f"$score[{i}]" for i in range(len(requests))]
            terms = [{"mult": [w, s]} for w, s in zip(form.weights, scores, strict=True)]
            query = {"formula": {"sum": terms}, "defaults": dict.fromkeys(scores, 0.0)}
        body = {"prefetch": prefetch, "query": query, "limit": 10}
        return format_request("POST", "/collections/<collection>/points/query", body)
