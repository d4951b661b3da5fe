"""Statistics of labels that metrics need, computed once and cached with the labels."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.data.consensus import Consensus
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.kernels import ordering
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.ranking_measures import Rankings

__all__ = ["Judgements"]

OFFSET_LEVELS = 4096  # integer grades that span less than this are coded by subtraction


class Judgements:
    """Labels with their grades as levels 0..L-1 (ascending); level L stands for items without a grade."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        # items of pairs are judged, but have no grades: metrics that need grades refuse such labels before
        grades = np.zeros(len(labels.index.items)) if labels.kind == "pairs" else labels.grades
        known = ~np.isnan(grades)
        given = grades[known]
        low, high = given.min(initial=np.inf), given.max(initial=-np.inf)
        if high - low < OFFSET_LEVELS and np.array_equal(given, np.floor(given)) and len(given):
            self.levels, codes = np.arange(low, high + 1), given - low
        else:
            self.levels = np.unique(given)
            codes = np.searchsorted(self.levels, given)
        self.level: I4 = np.full(len(grades), len(self.levels), np.int32)
        self.level[known] = codes
        self._by_index: weakref.WeakKeyDictionary[ItemIndex, tuple[I4, I8]] = weakref.WeakKeyDictionary()
        self.by_query: dict[object, F8] = {}  # values per query that depend on the labels alone

    @classmethod
    def for_labels(cls, labels: Labels) -> Judgements:
        """The judgements of these labels, cached."""
        if cls not in labels.memo:
            labels.memo[cls] = cls(labels)
        judgements: Judgements = labels.memo[cls]
        return judgements

    def __len__(self) -> int:
        return len(self.labels)

    def add_unjudged(self, by_level: npt.NDArray[Any], unjudged: float = 0.0) -> F8:
        """A table of values by level, with one more entry for items without a grade."""
        return np.append(np.asarray(by_level, np.float64), unjudged)

    def count_graded(self, low: float, high: float = np.inf) -> F8:
        """Items of each query with a grade in [low, high)."""
        key = ("count", low, high)
        if key not in self.by_query:
            inside = self.add_unjudged((self.levels >= low) & (self.levels < high))
            counts = np.bincount(self.labels.index.query_of_slot, inside[self.level], len(self))
            self.by_query[key] = counts.astype(np.float64)
        return self.by_query[key]

    @functools.cached_property
    def judged_counts(self) -> F8:
        """Items of each query that have a grade."""
        return self.count_graded(-np.inf)

    @functools.cached_property
    def ideal(self) -> Rankings:
        """The labels' own items, best grade first, unjudged ones last."""
        height = np.where(self.level == len(self.levels), -1.0, self.level)
        _, order, _ = ordering.rank_order(height, self.labels.index.starts, None, 0.0)
        return Rankings(np.arange(len(self)), self.labels.index.starts, order, self.level)

    def match_rankings(self, consensus: Consensus) -> Rankings:
        """The consensus by query of the labels."""
        index = consensus.index
        match = self._by_index.get(index)
        if match is None:
            # a missing item has position -1, where the level of unjudged items is stored
            level = np.append(self.level, np.int32(len(self.levels)))[index.locate(self.labels.index)]
            match = self._by_index[index] = (level, index.queries.codes_of(self.labels.queries))
        level, query = match
        return Rankings(query, index.starts, consensus.order, level)
