"""Elasticsearch: the retrievers rrf and linear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from podium.core.params import Choice, Range, Tune
from podium.data.ids import Id
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_length, normalize_by_range
from podium.methods.dialects.dialect import (
    Dialect,
    ReciprocalRankDialect,
    ScoreDialect,
    apply_rules,
    check_rules,
)
from podium.methods.dialects.fusion_engine import (
    EngineForm,
    FusionEngine,
    format_request,
    format_weight,
    split_kind,
)
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Elasticsearch", "ElasticsearchLinear", "ElasticsearchRrf"]

VERIFIED = "its sources (RRFRetrieverBuilder, MinMaxScoreNormalizer, L2ScoreNormalizer); not run"
TIES = "by shard, then by internal document number"
NORMALIZERS = ("minmax", "l2_norm", "none")
SMALLEST = 1e-6  # ranges and lengths below count as 0


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticsearchRrf(ReciprocalRankDialect):
    """Reciprocal rank fusion as in Elasticsearch: sum of weight / (k + rank).

    `k` is its `rank_constant`, a whole number.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="elasticsearch_rrf").ranking
    ['b', 'a', 'c']
    """

    name = "elasticsearch_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Elasticsearch"
    dialect = Dialect(
        engine="elasticsearch",
        call="rrf retriever",
        formula="w / (k + r)",
        weights="free",
        ties=TIES,
        depth="rank_window_size",
        verified=VERIFIED,
    )

    k: Annotated[int, Range(1, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticsearchLinear(ScoreDialect):
    """Weighted sum of normalized scores, as the linear retriever of Elasticsearch computes it.

    `normalizer` is that of all lists but those in `normalizers`, a normalizer by expert. A list whose scores
    lie within 1e-6 of each other counts as equal scores.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="elasticsearch_linear").scores
    [1.5, 1.0, 0.0]
    """

    name = "elasticsearch_linear"
    citation = "the linear retriever of Elasticsearch"
    dialect = Dialect(
        engine="elasticsearch",
        call="linear retriever",
        formula="w (x - min) / (max - min); w x / length; or w x",
        weights="free",
        flat="1 (minmax)",
        ties=TIES,
        depth="rank_window_size",
        verified=VERIFIED,
    )

    normalizer: Annotated[str, Choice(*NORMALIZERS), "how the scores of a list are scaled"] = "minmax"
    normalizers: Mapping[Id, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rules(self.name, "the normalizer", self.normalizers, NORMALIZERS)

    def _normalize(self, lists: Lists, score: F8) -> F8:
        return _normalize_by_rule(self.normalizer, lists, score)

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        score = self._read_scores(preferences)
        normalize = partial(_normalize_by_rule, lists=preferences.lists, score=score)
        return weight * apply_rules(preferences, self.normalizer, self.normalizers, normalize)

    def get_textbook(self) -> Textbook | None:
        if self.normalizer == "l2_norm" or self.normalizers:
            return None
        return Textbook("scores", normalizer=self.normalizer, weights=self.weights)


def _normalize_by_rule(rule: str, lists: Lists, score: F8) -> F8:
    if rule == "minmax":
        return normalize_by_range(lists.starts, score, 1.0, smallest_range=SMALLEST)
    return normalize_by_length(lists.starts, score, smallest_length=SMALLEST) if rule == "l2_norm" else score


class Elasticsearch(FusionEngine):
    """Elasticsearch 9.2 or later: a retriever tree; knn:NAME is a vector field, any other name a text field."""

    name = "elasticsearch"
    title = "Elasticsearch"
    syntax = "request"
    first = "elasticsearch_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            k = min(max(round(rule.k), 1), 10_000)
            reason = f"Elasticsearch takes whole numbers from 1 as rank_constant, and k is {rule.k:g}"
            return Rewriting(ElasticsearchRrf(k=k), "" if k == rule.k else reason)
        if rule.normalizer in ("minmax", "none"):
            return Rewriting(ElasticsearchLinear(normalizer=rule.normalizer))
        return Rewriting(ElasticsearchLinear(), f"Elasticsearch has no form of {rule.describe()}")

    def write_config(self, form: EngineForm, depth: int) -> str:
        method, retrievers = form.method, []
        for source in form.sources:
            is_vector, field = split_kind(source.name)
            query = f"<query of {source.expert}>"
            retriever: Any = {"standard": {"query": {"match": {field: query}}}}
            if is_vector:
                knn = {"field": field, "query_vector": query, "k": depth, "num_candidates": 2 * depth}
                retriever = {"knn": knn}
            entry: dict[str, Any] = {"retriever": retriever, "weight": format_weight(source.weight)}
            if isinstance(method, ElasticsearchLinear):
                entry["normalizer"] = (method.normalizers or {}).get(source.expert, method.normalizer)
            retrievers.append(entry)
        if isinstance(method, ElasticsearchRrf):
            fusion: Any = {
                "rrf": {"retrievers": retrievers, "rank_constant": method.k, "rank_window_size": depth}
            }
        else:
            fusion = {"linear": {"retrievers": retrievers, "rank_window_size": depth}}
        return format_request("GET", "/<index>/_search", {"retriever": fusion, "size": 10})
