"""Binary metrics: an item is relevant if its grade is at least `relevant`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Range
from podium.kernels.dispatch import F8, I8
from podium.kernels.ranking_measures import BPREF, CASCADE, PRECISION, SUM, RankingWalk
from podium.metrics.base import DEEP, MeasuredQueries, Relevant, WalkMetric
from podium.metrics.judgements import Judgements

__all__ = ["MAP", "MRR", "RBP", "Bpref", "Judged", "Precision", "RPrecision", "Recall", "Success"]


@dataclass(frozen=True, kw_only=True, repr=False)
class BinaryMetric(WalkMetric):
    """Gain 1 for relevant items, 0 for all others, including unjudged ones."""

    relevant: Relevant = 1

    def gain_by_level(self, judgements: Judgements) -> F8:
        """1 from the threshold on."""
        return judgements.tabulate_by_level(lambda grade: (grade >= self.relevant).astype(np.float64))

    def count_relevant(self, seen: MeasuredQueries) -> F8:
        """Number of relevant items among the labels."""
        return seen.judgements.count_graded(self.relevant)[seen.which]


@dataclass(frozen=True, kw_only=True, repr=False)
class SumMetric(BinaryMetric):
    """The sum over relevant places of a discount."""

    def build_walk(self, judgements: Judgements, width: int) -> RankingWalk:
        """Sum of gain times discount."""
        return RankingWalk(
            SUM, self.gain_by_level(judgements), self.compute_discount(width), self.compute_limits(judgements)
        )

    def compute_discount(self, width: int) -> F8:
        """1 at every place."""
        return np.ones(width)


@dataclass(frozen=True, kw_only=True, repr=False)
class Precision(SumMetric):
    """Relevant items among the first k, divided by k even when fewer were retrieved."""

    name = "p"
    aliases = ("precision",)
    cutoff_rule = "required"

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """k."""
        return np.full(len(seen.which), self.cutoff, np.float64)


@dataclass(frozen=True, kw_only=True, repr=False)
class Recall(SumMetric):
    """Fraction of the relevant items that are among the first k (or anywhere in the ranking)."""

    name = "recall"
    aliases = ("r",)

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The number of relevant items."""
        return self.count_relevant(seen)


@dataclass(frozen=True, kw_only=True, repr=False)
class RPrecision(SumMetric):
    """Precision at R, the number of relevant items."""

    name = "rprec"
    cutoff_rule = "none"

    def compute_limits(self, judgements: Judgements) -> I8:
        """R for every query."""
        return judgements.count_graded(self.relevant).astype(np.int64)

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """R."""
        return self.count_relevant(seen)


@dataclass(frozen=True, kw_only=True, repr=False)
class RBP(SumMetric):
    """Rank-biased precision: (1 - p) times the sum of p^(place - 1) over relevant places."""

    name = "rbp"
    citation = "Moffat & Zobel, TOIS 2008"

    p: Annotated[float, Range(0, 0.9999), "probability of continuing to the next item"] = 0.8

    def compute_discount(self, width: int) -> F8:
        """Geometric."""
        return (1.0 - self.p) * self.p ** np.arange(width, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, repr=False)
class MAP(BinaryMetric):
    """Average precision: the mean over relevant items of the precision at their place (or 0)."""

    name = "map"
    aliases = ("ap",)

    def build_walk(self, judgements: Judgements, width: int) -> RankingWalk:
        """Sum of precisions."""
        return RankingWalk(
            PRECISION,
            self.gain_by_level(judgements),
            np.arange(1.0, width + 1),
            self.compute_limits(judgements),
        )

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The number of relevant items."""
        return self.count_relevant(seen)


@dataclass(frozen=True, kw_only=True, repr=False)
class FirstMetric(BinaryMetric):
    """A function of the place of the first relevant item."""

    def build_walk(self, judgements: Judgements, width: int) -> RankingWalk:
        """A cascade that ends at the first relevant item."""
        return RankingWalk(
            CASCADE,
            self.gain_by_level(judgements),
            self.compute_discount(width),
            self.compute_limits(judgements),
        )

    @abstractmethod
    def compute_discount(self, width: int) -> F8:
        """The value of the first relevant item at each place."""


@dataclass(frozen=True, kw_only=True, repr=False)
class MRR(FirstMetric):
    """Reciprocal rank of the first relevant item."""

    name = "mrr"
    aliases = ("rr",)

    def compute_discount(self, width: int) -> F8:
        """1 / place."""
        return 1.0 / np.arange(1, width + 1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Success(FirstMetric):
    """1 when a relevant item is among the first k."""

    name = "success"

    def compute_discount(self, width: int) -> F8:
        """1 at every place."""
        return np.ones(width)


@dataclass(frozen=True, kw_only=True, repr=False)
class Bpref(BinaryMetric):
    """How rarely judged non-relevant items rank above relevant ones; unjudged items do not count.

    As in trec_eval, negative grades mean "not in the pool" and are skipped like unjudged items.
    """

    name = "bpref"
    citation = "Buckley & Voorhees, SIGIR 2004"
    cutoff_rule = "none"

    def gain_by_level(self, judgements: Judgements) -> F8:
        """1 for relevant, 0 for judged as not relevant, -1 for the rest."""
        pooled = judgements.tabulate_by_level(lambda grade: np.where(grade >= 0, 0.0, -1.0), -1.0)
        return np.where(BinaryMetric.gain_by_level(self, judgements) > 0, 1.0, pooled)

    def build_walk(self, judgements: Judgements, width: int) -> RankingWalk:
        """The bound is the smaller of the numbers of relevant and of non-relevant items."""
        bound = np.minimum(
            judgements.count_graded(self.relevant), judgements.count_graded(0.0, self.relevant)
        )
        return RankingWalk(BPREF, self.gain_by_level(judgements), np.ones(width), bound.astype(np.int64))

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The number of relevant items."""
        return self.count_relevant(seen)


@dataclass(frozen=True, kw_only=True, repr=False)
class Judged(WalkMetric):
    """Fraction of the first k items that have a grade: how much of the ranking the labels cover."""

    name = "judged"

    def build_walk(self, judgements: Judgements, width: int) -> RankingWalk:
        """Count the places with a grade."""
        return RankingWalk(
            SUM, judgements.tabulate_by_level(np.ones_like), np.ones(width), self.compute_limits(judgements)
        )

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The number of places."""
        return np.minimum(seen.sizes, self.cutoff or DEEP).astype(np.float64)
