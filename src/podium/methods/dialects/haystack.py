"""Haystack: DocumentJoiner."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import normalize_by_deviation
from podium.methods.dialects.dialect import (
    DIALECT_TAGS,
    Dialect,
    RankDialect,
    ScoreDialect,
    sum_weights_by_query,
)
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Haystack", "HaystackDbsf", "HaystackRrf"]

VERIFIED = "haystack-ai 3.4.0"
K = 60
TIES = "in the order of the lists"
DEPTH = "top_k of each retriever"


@dataclass(kw_only=True, eq=False, repr=False)
class HaystackRrf(RankDialect):
    """Reciprocal rank fusion as in Haystack: 61 times the weighted mean of 1 / (60 + rank).

    Weights are scaled to sum to 1; an item at the top of all lists gets 1.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["a"]], method="haystack_rrf").scores[0]
    1.0
    """

    name = "haystack_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Haystack"
    tags = replace(DIALECT_TAGS, additive=False)  # a mean, so an expert's share depends on the other experts
    dialect = Dialect(
        engine="haystack",
        call="reciprocal_rank_fusion",
        formula="w 61 / (60 + r)",
        weights="simplex",
        ties=TIES,
        precision="double",
        depth=DEPTH,
        verified=VERIFIED,
    )

    def _points(self, rank: F8) -> F8:
        return (K + 1) / (K + rank)

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        return super()._combine_terms(preferences, term, weights) / sum_weights_by_query(preferences, weights)

    def get_textbook(self) -> Textbook | None:
        return Textbook("ranks", k=K, weights=self.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class HaystackDbsf(ScoreDialect):
    """Distribution-based fusion as in Haystack: population deviation, and the largest of an item's scores.

    A list of equal scores keeps them. There are no weights.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="haystack_dbsf").ranking
    ['a', 'b', 'c']
    """

    name = "haystack_dbsf"
    citation = "Mazzeschi 2023; the form of Haystack"
    tags = replace(DIALECT_TAGS, weighted=False, additive=False)
    dialect = Dialect(
        engine="haystack",
        call="distribution_based_rank_fusion",
        formula="max of 1/2 + (x - mean) / (6 sd), sd of the population",
        weights="none",
        flat="its scores",
        ties=TIES,
        precision="double",
        depth=DEPTH,
        verified=VERIFIED,
    )

    def _normalize(self, lists: Lists, score: F8) -> F8:
        scaled, varies = normalize_by_deviation(lists.starts, score)
        return np.where(varies, scaled, score)

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        return self._normalize(preferences.lists, self._read_scores(preferences))

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        lists, slots = preferences.lists, len(preferences.index.items)
        used = (weights > 0)[lists.expert][lists.list_of_row]  # `explain` excludes an expert by weight 0
        best = segments.find_extreme_by_item(lists.item[used], term[used], slots, largest=True)
        return np.nan_to_num(best)


class Haystack(FusionEngine):
    """Haystack 2 or later, in Python."""

    name = "haystack"
    title = "Haystack"
    was_run = True
    first = "haystack_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            return self.rewrite_with_fixed_k(rule, HaystackRrf(), K)
        reason = f"Haystack has no form of {rule.describe()}"
        if rule.normalizer == "dbsf_population":
            reason = "Haystack takes the largest of an item's scores, not their sum"
        return Rewriting(HaystackDbsf(), reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        ranks = isinstance(form.method, HaystackRrf)
        weights = f"        weights={form.weights},\n" if ranks else ""
        names = ", ".join(s.name for s in form.sources)
        return f"""from haystack.components.joiners import DocumentJoiner


def build_joiner():
    # connect the retrievers in this order, each with top_k={depth}: {names}
    return DocumentJoiner(
        join_mode={"reciprocal_rank_fusion" if ranks else "distribution_based_rank_fusion"!r},
{weights}        top_k=10,
    )
"""
