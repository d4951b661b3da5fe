"""LlamaIndex: QueryFusionRetriever."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_deviation
from podium.kernels.segments import compute_list_statistics
from podium.methods.dialects.dialect import (
    DIALECT_TAGS,
    Dialect,
    RankDialect,
    ScoreDialect,
    sum_weights_by_query,
)
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["LlamaIndex", "LlamaIndexDbsf", "LlamaIndexRrf"]

VERIFIED = "llama-index-core 0.14.25"
K = 59  # of ranks from 1
TIES = "in the order of the lists"


@dataclass(kw_only=True, eq=False, repr=False)
class LlamaIndexRrf(RankDialect):
    """Reciprocal rank fusion as in LlamaIndex: sum of 1 / (59 + rank); it ignores `retriever_weights`.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="llamaindex_rrf").ranking
    ['b', 'a', 'c']
    """

    name = "llamaindex_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of LlamaIndex"
    tags = replace(DIALECT_TAGS, weighted=False)
    dialect = Dialect(
        engine="llamaindex",
        call="reciprocal_rerank",
        formula="1 / (59 + r)",
        weights="none",
        ties=TIES,
        precision="double",
        depth="similarity_top_k of each retriever",
        verified=VERIFIED,
    )

    def _points(self, rank: F8) -> F8:
        return 1.0 / (K + rank)

    def get_textbook(self) -> Textbook | None:
        return Textbook("ranks", k=K, weights=self.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class LlamaIndexDbsf(ScoreDialect):
    """Distribution-based fusion as in LlamaIndex: population deviation, weights that sum to 1.

    A list of equal scores gives 1 to each item if they are above 0, else 0. LlamaIndex divides the result by
    its number of generated queries, which does not change the order; here it is 1.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="llamaindex_dist_based").ranking
    ['b', 'a', 'c']
    """

    name = "llamaindex_dist_based"
    citation = "Mazzeschi 2023; the form of LlamaIndex"
    tags = replace(DIALECT_TAGS, additive=False)  # a mean, so an expert's share depends on the other experts
    dialect = Dialect(
        engine="llamaindex",
        call="dist_based_score",
        formula="w (1/2 + (x - mean) / (6 sd)), sd of the population",
        weights="simplex",
        flat="1 if above 0, else 0",
        ties=TIES,
        precision="double",
        depth="similarity_top_k of each retriever",
        verified=VERIFIED,
    )

    def _normalize(self, lists: Lists, score: F8) -> F8:
        scaled, varies = normalize_by_deviation(lists.starts, score)
        scaled = np.where(varies, scaled, (score > 0).astype(np.float64))
        starts, lengths = lists.starts, lists.lengths
        stats = compute_list_statistics(starts, score)
        for number in np.flatnonzero((lengths > 1) & (stats.high == stats.low)).tolist():
            # in LlamaIndex the mean of equal scores may differ from them in its last bits
            rows, count = slice(starts[number], starts[number + 1]), int(lengths[number])
            equal = float(score[rows][0])
            mean = sum([equal] * count) / count
            deviation = (sum([(equal - mean) ** 2] * count) / count) ** 0.5
            low, high = mean - 3 * deviation, mean + 3 * deviation
            scaled[rows] = float(high > 0) if high == low else (equal - low) / (high - low)
        return scaled

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        return super()._combine_terms(preferences, term, weights) / sum_weights_by_query(preferences, weights)


class LlamaIndex(FusionEngine):
    """LlamaIndex, in Python."""

    name = "llamaindex"
    title = "LlamaIndex"
    repeats = True
    was_run = True
    first = "llamaindex_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            return self.rewrite_with_fixed_k(rule, LlamaIndexRrf(), K)
        reason = f"LlamaIndex has no form of {rule.describe()}"
        if rule.normalizer == "dbsf_population":
            reason = "LlamaIndex gives 1, not 1/2, to lists of equal scores above 0"
        return Rewriting(LlamaIndexDbsf(), reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        ranks = isinstance(form.method, LlamaIndexRrf)
        names = ", ".join(f"retrievers[{s.name!r}]" for s in form.requests)
        weights = "" if ranks else f"        retriever_weights={form.weights},\n"
        return f"""from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever


def build_retriever(retrievers):
    # retrievers: by name, each with similarity_top_k={depth}; one query needs no language model
    return QueryFusionRetriever(
        [{names}],
        mode={"reciprocal_rerank" if ranks else "dist_based_score"!r},
{weights}        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=10,
        use_async=False,
    )
"""
