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
        self.levels = _find_levels(labels.grades)
        self.level = self._encode_grades(labels.grades)
        self._by_index: weakref.WeakKeyDictionary[ItemIndex, tuple[I4, I8]] = weakref.WeakKeyDictionary()
        self.by_query: dict[object, F8] = {}  # values per query that depend on the labels alone

    @classmethod
    def for_labels(cls, labels: Labels) -> Judgements:
        """The judgements of these labels, cached."""
        found = labels.memo.get(cls)
        if not isinstance(found, cls):
            found = labels.memo[cls] = cls(labels)
        return found

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
        level, query = self._match_index(consensus.index)
        return Rankings(query, consensus.index.starts, consensus.order, level)

    def _match_index(self, index: ItemIndex) -> tuple[I4, I8]:
        """The level of every slot of an index, and the code there of every query here, or -1."""
        found = self._by_index.get(index)
        if found is None:
            # a missing item has position -1, where the level of unjudged items is stored
            level = np.append(self.level, np.int32(len(self.levels)))[index.locate(self.labels.index)]
            found = self._by_index[index] = (level, index.queries.codes_of(self.labels.queries))
        return found

    def _encode_grades(self, grades: F8) -> I4:
        known = ~np.isnan(grades)
        level = np.full(len(grades), len(self.levels), np.int32)
        if _is_range(self.levels):
            level[known] = grades[known] - self.levels[0]
        elif len(self.levels):
            level[known] = np.searchsorted(self.levels, grades[known])
        return level


def _is_range(levels: F8) -> bool:
    return bool(len(levels)) and np.array_equal(levels, np.floor(levels[0]) + np.arange(len(levels)))


def _find_levels(grades: F8) -> F8:
    """Distinct grades in ascending order, or the whole range when they are nearby integers."""
    known = grades[~np.isnan(grades)]
    if not len(known):
        return known
    low, high = known.min(), known.max()
    if high - low < OFFSET_LEVELS and np.array_equal(known, np.floor(known)):
        return np.arange(low, high + 1)
    return np.unique(known)
