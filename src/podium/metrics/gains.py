"""Metrics with graded relevance: DCG and NDCG in three dialects, and ERR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Choice, Range
from podium.kernels.dispatch import F8
from podium.kernels.ranking_measures import CASCADE
from podium.metrics.base import WalkMetric
from podium.metrics.judgements import Judgements

__all__ = ["DCG", "ERR", "NDCG"]

LARGEST_GRADE = 1000  # 2 to this power is still a finite double


@dataclass(frozen=True, kw_only=True, repr=False)
class NDCG(WalkMetric):
    """Discounted gain divided by that of the ideal ranking of all judged items, retrieved or not.

    Dialects: `trec` gain = grade, discount 1 / log2(place + 1), as trec_eval; `exp` gain 2^grade - 1, same
    discount; `letor` gain 2^grade - 1, discount 1 at place 1 and 1 / log2(place) below, as LETOR's script.
    Negative grades and unjudged items gain nothing; a query without relevant items counts as 0.
    """

    name = "ndcg"
    citation = "Jarvelin & Kekalainen, TOIS 2002"
    divides_by_ideal = True

    dialect: Annotated[str, Choice("trec", "exp", "letor"), "gain and discount"] = "trec"

    def compute_gains(self, judgements: Judgements) -> F8:
        """The grade, or 2^grade - 1."""
        positive = np.maximum(judgements.levels, 0.0)
        if self.dialect != "trec":
            if positive.max(initial=0.0) > LARGEST_GRADE:
                raise InputError(
                    f"a grade is {positive.max():g}, and the gain 2^grade - 1 of {self} would overflow",
                    remedy=f"use grades up to {LARGEST_GRADE}, or the dialect trec",
                )
            positive = np.exp2(positive) - 1.0
        return judgements.add_unjudged(positive)

    def compute_discounts(self, width: int) -> F8:
        """Logarithmic in the place."""
        place = np.arange(1, width + 1, dtype=np.float64)
        return 1.0 / np.log2(np.maximum(place, 2.0) if self.dialect == "letor" else place + 1.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class DCG(NDCG):
    """Discounted gain, not divided by that of the ideal ranking; dialects as those of NDCG."""

    name = "dcg"
    divides_by_ideal = False


@dataclass(frozen=True, kw_only=True, repr=False)
class ERR(WalkMetric):
    """Expected reciprocal rank: the user stops at an item with probability (2^grade - 1) / 2^max_grade.

    `max_grade` is the top of the grading scale; by default, the highest grade among the labels.
    """

    name = "err"
    citation = "Chapelle, Metzler, Zhang & Grinspan, CIKM 2009"
    kind = CASCADE

    max_grade: Annotated[float | None, Range(0, 1000), "top of the grading scale"] = None

    def compute_gains(self, judgements: Judgements) -> F8:
        """The probability that the user stops at the item."""
        top = self.max_grade if self.max_grade is not None else float(judgements.levels.max(initial=0.0))
        if top > LARGEST_GRADE:
            raise InputError(f"a grade is {top:g}", remedy=f"{self} takes grades up to {LARGEST_GRADE}")
        return judgements.add_unjudged((np.exp2(np.clip(judgements.levels, 0.0, top)) - 1.0) / np.exp2(top))

    def compute_discounts(self, width: int) -> F8:
        """1 / place."""
        return 1.0 / np.arange(1, width + 1)
