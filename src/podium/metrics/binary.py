"""Binary metrics: an item is relevant if its grade is at least `relevant`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Range
from podium.kernels.dispatch import F8, I8
from podium.kernels.ranking_measures import BPREF, CASCADE, PRECISION
from podium.metrics.base import DEEP, MeasuredQueries, Relevant, WalkMetric
from podium.metrics.judgements import Judgements

__all__ = [
    "F1",
    "MAP",
    "MRR",
    "RBP",
    "Bpref",
    "Hits",
    "Judged",
    "Precision",
    "RPrecision",
    "Recall",
    "Success",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class BinaryMetric(WalkMetric):
    """Gain 1 for relevant items, 0 for all others, including unjudged ones."""

    relevant: Relevant = 1

    def compute_gains(self, judgements: Judgements) -> F8:
        """1 from the threshold on."""
        return judgements.add_unjudged(judgements.levels >= self.relevant)

    def count_relevant(self, seen: MeasuredQueries) -> F8:
        """Number of relevant items among the labels."""
        return seen.judgements.count_graded(self.relevant)[seen.which]


@dataclass(frozen=True, kw_only=True, repr=False)
class Precision(BinaryMetric):
    """Relevant items among the first k, divided by k even when fewer were retrieved."""

    name = "p"
    aliases = ("precision",)
    cutoff_rule = "required"

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """k."""
        return np.full(len(seen.which), self.cutoff, np.float64)


@dataclass(frozen=True, kw_only=True, repr=False)
class Recall(BinaryMetric):
    """Fraction of the relevant items that are among the first k (or anywhere in the ranking)."""

    name = "recall"
    aliases = ("r",)
    compute_divisor = BinaryMetric.count_relevant


@dataclass(frozen=True, kw_only=True, repr=False)
class F1(BinaryMetric):
    """Harmonic mean of precision and recall at k: relevant items found, divided by the mean of k and R."""

    name = "f1"
    cutoff_rule = "required"

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """(k + R) / 2."""
        assert self.cutoff is not None
        return (self.cutoff + self.count_relevant(seen)) / 2.0


@dataclass(frozen=True, kw_only=True, repr=False)
class Hits(BinaryMetric):
    """Number of relevant items among the first k (or anywhere in the ranking)."""

    name = "hits"
    aliases = ("num_rel_ret",)


@dataclass(frozen=True, kw_only=True, repr=False)
class RPrecision(BinaryMetric):
    """Precision at R, the number of relevant items."""

    name = "rprec"
    aliases = ("r_precision",)
    cutoff_rule = "none"
    compute_divisor = BinaryMetric.count_relevant

    def compute_limits(self, judgements: Judgements) -> I8:
        """R for every query."""
        return judgements.count_graded(self.relevant).astype(np.int64)


@dataclass(frozen=True, kw_only=True, repr=False)
class RBP(BinaryMetric):
    """Rank-biased precision: (1 - p) times the sum of p^(place - 1) over relevant places."""

    name = "rbp"
    citation = "Moffat & Zobel, TOIS 2008"

    p: Annotated[float, Range(0, 0.9999), "probability of continuing to the next item"] = 0.8

    def compute_discounts(self, width: int) -> F8:
        """Geometric."""
        return (1.0 - self.p) * self.p ** np.arange(width, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, repr=False)
class MAP(BinaryMetric):
    """Average precision: the mean over relevant items of the precision at their place (or 0)."""

    name = "map"
    aliases = ("ap",)
    kind = PRECISION
    compute_divisor = BinaryMetric.count_relevant

    def compute_discounts(self, width: int) -> F8:
        """The places, by which the number of relevant items so far is divided."""
        return np.arange(1.0, width + 1)


@dataclass(frozen=True, kw_only=True, repr=False)
class MRR(BinaryMetric):
    """Reciprocal rank of the first relevant item."""

    name = "mrr"
    aliases = ("recip_rank", "rr")
    kind = CASCADE  # ends at the first relevant item

    def compute_discounts(self, width: int) -> F8:
        """1 / place."""
        return 1.0 / np.arange(1, width + 1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Success(BinaryMetric):
    """1 when a relevant item is among the first k."""

    name = "success"
    aliases = ("hit_rate",)
    kind = CASCADE


@dataclass(frozen=True, kw_only=True, repr=False)
class Bpref(BinaryMetric):
    """How rarely judged non-relevant items rank above relevant ones; unjudged items do not count.

    As in trec_eval, negative grades mean "not in the pool" and are skipped like unjudged items.
    """

    name = "bpref"
    citation = "Buckley & Voorhees, SIGIR 2004"
    cutoff_rule = "none"
    kind = BPREF
    compute_divisor = BinaryMetric.count_relevant

    def compute_gains(self, judgements: Judgements) -> F8:
        """1 for relevant, 0 for judged as not relevant, -1 for the rest."""
        grades = judgements.levels
        pooled = np.where(grades >= 0, 0.0, -1.0)
        return judgements.add_unjudged(np.where(grades >= self.relevant, 1.0, pooled), -1.0)

    def compute_limits(self, judgements: Judgements) -> I8:
        """The smaller of the numbers of relevant and of non-relevant items."""
        counts = judgements.count_graded(self.relevant), judgements.count_graded(0.0, self.relevant)
        return np.minimum(*counts).astype(np.int64)


@dataclass(frozen=True, kw_only=True, repr=False)
class Judged(WalkMetric):
    """Fraction of the first k items that have a grade: how much of the ranking the labels cover."""

    name = "judged"

    def compute_gains(self, judgements: Judgements) -> F8:
        """1 for every grade."""
        return judgements.add_unjudged(np.ones_like(judgements.levels))

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The number of places."""
        return np.minimum(seen.sizes, self.cutoff or DEEP).astype(np.float64)
