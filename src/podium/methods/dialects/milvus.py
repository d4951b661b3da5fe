"""Milvus: RRFRanker and WeightedRanker of a hybrid search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import Choice, Range, Tune
from podium.data.ids import Id
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_arctangent, normalize_by_cosine
from podium.methods.dialects.dialect import (
    DIALECT_TAGS,
    Dialect,
    ReciprocalRankDialect,
    ScoreDialect,
    apply_rules,
    check_rules,
)
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Milvus", "MilvusRrf", "MilvusWeightedSum"]

METRICS = ("IP", "COSINE", "BM25")
VERIFIED = "milvus-lite 3.2.2 with pymilvus 3.0.2"


@dataclass(kw_only=True, eq=False, repr=False)
class MilvusRrf(ReciprocalRankDialect):
    """Reciprocal rank fusion as in Milvus: sum of 1 / (k + rank), without weights.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="milvus_rrf").ranking
    ['b', 'a', 'c']
    """

    name = "milvus_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Milvus"
    tags = replace(DIALECT_TAGS, weighted=False)
    dialect = Dialect(
        engine="milvus",
        call="RRFRanker",
        formula="1 / (k + r)",
        weights="none",
        depth="limit of each AnnSearchRequest",
        verified=VERIFIED,
    )

    k: Annotated[
        float, Range(0, 16_384, True, True), Tune(1, 200, log=True), "larger values flatten the top"
    ] = 60


@dataclass(kw_only=True, eq=False, repr=False)
class MilvusWeightedSum(ScoreDialect):
    """Weighted sum of scores as in Milvus, each normalized by the metric of its field.

    `metric` is that of all fields but those in `metrics`, a metric by expert: `IP` gives 1/2 + arctan(x) / pi,
    `COSINE` (1 + x) / 2, `BM25` 2 arctan(x) / pi, and `none` the raw scores of all (`norm_score=False`). Milvus
    takes weights up to 1; `podium deploy` scales them, which does not change the order.

    >>> from podium import fuse
    >>> fuse([{"a": 1, "b": 0}, {"b": 1}], method="milvus_weighted").scores
    [1.25, 0.75]
    """

    name = "milvus_weighted"
    citation = "the WeightedRanker of Milvus"
    dialect = Dialect(
        engine="milvus",
        call="WeightedRanker",
        formula="w (1/2 + arctan(x) / pi); w (1 + x) / 2; w 2 arctan(x) / pi; or w x",
        weights="unit",
        flat="as any list",
        depth="limit of each AnnSearchRequest",
        verified=VERIFIED,
    )

    metric: Annotated[str, Choice(*METRICS, "none"), "metric of the fields"] = "IP"
    metrics: Mapping[Id, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rules(self.name, "the metric", self.metrics, METRICS)
        if self.metrics and self.metric == "none":
            raise ParameterError(f"{self.name}: raw scores have no metrics; omit metrics, or choose a metric")

    def _normalize(self, lists: Lists, score: F8) -> F8:
        return _normalize_by_metric(self.metric, score)

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        normalize = partial(_normalize_by_metric, score=self._read_scores(preferences))
        return weight * apply_rules(preferences, self.metric, self.metrics, normalize)

    def get_textbook(self) -> Textbook | None:
        return None if self.metric != "none" else Textbook("scores", normalizer="none", weights=self.weights)


def _normalize_by_metric(metric: str, score: F8) -> F8:
    if metric == "IP":
        return normalize_by_arctangent(score)
    if metric == "COSINE":
        return normalize_by_cosine(score)
    return 2.0 * np.arctan(score) / np.pi if metric == "BM25" else score


class Milvus(FusionEngine):
    """Milvus 2.5 or later, through pymilvus."""

    name = "milvus"
    title = "Milvus"
    repeats = True
    was_run = True
    first = "milvus_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            k = min(max(rule.k, 0.001), 16_383)
            reason = f"Milvus takes k between 0 and 16384, both excluded, and k is {rule.k:g}"
            return Rewriting(MilvusRrf(k=k), "" if k == rule.k else reason)
        if rule.normalizer == "none":
            return Rewriting(MilvusWeightedSum(metric="none"))
        return Rewriting(MilvusWeightedSum(), f"Milvus has no form of {rule.describe()}")

    def write_config(self, form: EngineForm, depth: int) -> str:
        method = form.method
        metrics: Mapping[Id, str] = {}
        metric = "IP"
        if isinstance(method, MilvusWeightedSum):
            metric, metrics = method.metric if method.metric != "none" else "IP", method.metrics or {}
            raw = ", norm_score=False" if method.metric == "none" else ""
            ranker = f"WeightedRanker({', '.join(map(repr, form.weights))}{raw})"
        else:
            assert isinstance(method, MilvusRrf)
            ranker = f"RRFRanker({method.k!r})"
        requests = "\n".join(
            f"        AnnSearchRequest([queries[{s.expert!r}]], {s.name!r}, "
            f'{{"metric_type": {metrics.get(s.expert, metric)!r}}}, limit={depth}),'
            for s in form.requests
        )
        return f"""from pymilvus import AnnSearchRequest, {ranker.partition("(")[0]}


def search(client, collection, queries):
    # queries: a vector (or a text, for a BM25 field) by expert
    requests = [
{requests}
    ]
    return client.hybrid_search(collection, requests, {ranker}, limit=10)
"""
