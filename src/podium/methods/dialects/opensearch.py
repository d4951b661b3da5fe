"""OpenSearch: the processors score-ranker and normalization of hybrid queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import Choice, Fixed, Range, Tune
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import (
    combine_by_geometric_mean,
    combine_by_harmonic_mean,
    normalize_by_bounds,
    normalize_by_length,
    round_to_single,
    sum_by_item,
)
from podium.kernels.segments import compute_list_statistics
from podium.methods.dialects.dialect import (
    DIALECT_TAGS,
    Dialect,
    ReciprocalRankDialect,
    ScoreDialect,
    sum_weights_by_query,
)
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine, format_request, split_kind
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["OpenSearch", "OpenSearchNormalization", "OpenSearchRrf"]

VERIFIED = "its sources (neural-search: normalization, combination, bounds); not run"
FLOOR = 0.001  # instead of a normalized score of 0, or of a negative z-score
MOST_LISTS = 5  # sub-queries of a hybrid query
Bound = Annotated[float | None, Range(-10_000, 10_000), Fixed()]


@dataclass(kw_only=True, eq=False, repr=False)
class OpenSearchRrf(ReciprocalRankDialect):
    """Reciprocal rank fusion as in OpenSearch: sum of weight / (k + rank).

    `k` is its `rank_constant`. OpenSearch takes weights that sum to 1; `podium deploy` scales them, which
    does not change the order.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="opensearch_rrf").ranking
    ['b', 'a', 'c']
    """

    name = "opensearch_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of OpenSearch"
    dialect = Dialect(
        engine="opensearch",
        call="score-ranker-processor",
        formula="w / (k + r)",
        weights="simplex",
        depth="pagination_depth",
        most_lists=MOST_LISTS,
        verified=VERIFIED,
    )

    k: Annotated[int, Range(1, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60


@dataclass(kw_only=True, eq=False, repr=False)
class OpenSearchNormalization(ScoreDialect):
    """Weighted mean of normalized scores, as the normalization processor of OpenSearch computes it.

    A min-max score of exactly 0 becomes 0.001, and so do z-scores below 0; a score equal to the mean becomes
    the largest score of its list. The arithmetic mean counts a list without the item as 0; the other means
    leave it out. Z-scores have the arithmetic mean only. `lower` and `upper` replace the range of each list;
    scores beyond them keep that range (`bounds="apply"`) or become 0.001 and 1 (`"clip"`).

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="opensearch_normalization").scores
    [0.75, 0.5, 0.001]
    """

    name = "opensearch_normalization"
    citation = "the normalization processor of OpenSearch"
    tags = replace(DIALECT_TAGS, additive=False)
    dialect = Dialect(
        engine="opensearch",
        call="normalization-processor",
        formula="w (x - min) / (max - min), 0 becomes 0.001; w x / length; w (x - mean) / sd",
        weights="simplex",
        absent="0 in the arithmetic mean, else left out",
        flat="1 (min_max), its score (z_score)",
        depth="pagination_depth",
        most_lists=MOST_LISTS,
        verified=VERIFIED,
    )

    normalizer: Annotated[str, Choice("min_max", "l2", "z_score"), "how the scores of a list are scaled"] = (
        "min_max"
    )
    combination: Annotated[
        str, Choice("arithmetic_mean", "geometric_mean", "harmonic_mean"), "the mean of an item's scores"
    ] = "arithmetic_mean"
    lower: Annotated[Bound, "lower bound of the scores of every list (min_max only)"] = None
    upper: Annotated[Bound, "upper bound of the scores of every list (min_max only)"] = None
    bounds: Annotated[str, Choice("apply", "clip"), Fixed(), "what happens to scores beyond a bound"] = (
        "apply"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalizer == "z_score" and self.combination != "arithmetic_mean":
            raise ParameterError(
                f"{self.name}: z_score has the arithmetic_mean only, and combination is {self.combination!r}"
            )
        if self.normalizer != "min_max" and (self.lower, self.upper) != (None, None):
            raise ParameterError(f"{self.name}: bounds belong to min_max; omit lower and upper")

    def _normalize(self, lists: Lists, score: F8) -> F8:
        if self.normalizer == "l2":
            return normalize_by_length(lists.starts, score)
        if self.normalizer == "z_score":
            stats, lengths = compute_list_statistics(lists.starts, score), lists.lengths
            n = np.maximum(lengths, 1)
            # a list of equal scores has its score as mean, whatever the rounding of their sum
            flat = np.repeat(stats.high == stats.low, lengths)
            mean = np.where(flat, score, np.repeat(round_to_single(stats.mean), lengths))
            deviation = np.repeat(stats.deviation * np.sqrt(n / np.maximum(n - 1, 1)), lengths)
            scaled = (score - mean) / np.where(flat, 1.0, deviation)
            scaled = np.where(scaled <= 0, FLOOR, scaled)
            return np.where(score == mean, np.repeat(stats.high, lengths), scaled)
        clip = self.bounds == "clip"
        return normalize_by_bounds(lists.starts, score, self.lower, self.upper, clip=clip, floor=FLOOR)

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        # the weights enter with the mean
        return np.where(weight > 0, self._normalize(preferences.lists, self._read_scores(preferences)), 0.0)

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        lists, slots = preferences.lists, len(preferences.index.items)
        weight = weights[lists.expert][lists.list_of_row]
        if self.combination == "geometric_mean":
            return combine_by_geometric_mean(lists.item, term, weight, slots)
        if self.combination == "harmonic_mean":
            return combine_by_harmonic_mean(lists.item, term, weight, slots)
        # negative scores are left out of the mean, whose divisor then lacks their weight
        low = term < 0
        skipped = sum_by_item(lists.item, np.where(low, weight, 0.0), slots)
        total = sum_weights_by_query(preferences, weights) - skipped
        sums = sum_by_item(lists.item, np.where(low, 0.0, weight * term), slots)
        return np.where(total > 1e-12, sums / np.where(total > 1e-12, total, 1.0), 0.0)


class OpenSearch(FusionEngine):
    """OpenSearch 3 or later: a search pipeline for hybrid queries; knn:NAME is a vector field."""

    name = "opensearch"
    title = "OpenSearch"
    syntax = "request"
    first = "opensearch_normalization"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            k = min(max(round(rule.k), 1), 10_000)
            reason = f"OpenSearch takes whole numbers from 1 to 10000 as rank_constant, and k is {rule.k:g}"
            return Rewriting(OpenSearchRrf(k=k), "" if k == rule.k else reason)
        reason = f"OpenSearch has no form of {rule.describe()}"
        if rule.normalizer == "minmax":
            reason = "the min_max of OpenSearch turns a normalized score of 0 into 0.001"
        return Rewriting(OpenSearchNormalization(), reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        method, parameters = form.method, {"weights": form.weights}
        if isinstance(method, OpenSearchRrf):
            combination = {"technique": "rrf", "rank_constant": method.k, "parameters": parameters}
            processor: Any = {"score-ranker-processor": {"combination": combination}}
        else:
            assert isinstance(method, OpenSearchNormalization)
            lists, normalization = len(form.sources), {"technique": method.normalizer}
            bounds: dict[str, Any] = {}
            if method.lower is not None:
                bounds["lower_bounds"] = [{"mode": method.bounds, "min_score": method.lower}] * lists
            if method.upper is not None:
                bounds["upper_bounds"] = [{"mode": method.bounds, "max_score": method.upper}] * lists
            processor = {
                "normalization-processor": {
                    "normalization": normalization | ({"parameters": bounds} if bounds else {}),
                    "combination": {"technique": method.combination, "parameters": parameters},
                }
            }
        pipeline = format_request(
            "PUT", "/_search/pipeline/podium", {"phase_results_processors": [processor]}
        )
        queries: list[Any] = []
        for source in form.sources:
            is_vector, field = split_kind(source.name)
            query = f"<query of {source.expert}>"
            queries.append(
                {"knn": {field: {"vector": query, "k": depth}}} if is_vector else {"match": {field: query}}
            )
        hybrid = {"query": {"hybrid": {"queries": queries, "pagination_depth": depth}}, "size": 10}
        return f"{pipeline}\n{format_request('GET', '/<index>/_search?search_pipeline=podium', hybrid)}"
