"""Methods that look at positions only: a point for being near the top, summed over experts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from podium.aggregators.base import LIST_FORMS, Aggregator, Tags
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8
from podium.params import Annotated, Range, Tune

TABLE_LIMIT = 1_000_000  # ranks up to here are looked up; beyond, a table would be larger than the data

__all__ = ["InverseSquareRank", "LogInverseSquareRank", "Positional", "RankBiasedCentroids", "ReciprocalRankFusion"]


@dataclass(kw_only=True, eq=False, repr=False)
class Positional(Aggregator):
    """Score = sum over experts of weight x points(rank), perhaps times a function of how many listed the item."""

    @abstractmethod
    def _points(self, rank: F8) -> F8:
        """Points for being at these ranks (1 = top)."""

    def _scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, slots = preferences.lists, len(preferences.index.items)
        last = int(lists.rank.max(initial=0))
        if last <= TABLE_LIMIT:
            ranks = np.arange(last + 1, dtype=np.float64)
            ranks[0] = 1.0  # there is no rank 0; keep the table finite
            table = self._points(ranks)
            return segments.sum_points(
                lists.query_starts, lists.starts, lists.item, lists.rank, table, weights[lists.expert], slots
            )
        value = self._points(lists.rank.astype(np.float64)) * weights[lists.expert][lists.list_of_row]
        return segments.sum_by_item(lists.item, value, slots)


@dataclass(kw_only=True, eq=False, repr=False)
class ReciprocalRankFusion(Positional):
    """Sum of 1 / (k + rank) over experts.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a", "d"]], method="rrf").ranking
    ['a', 'b', 'c', 'd']
    """

    name = "rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _points(self, rank: F8) -> F8:
        return 1.0 / (self.k + rank)
