"""The queries of every two folds side by side, so that weights learned without them are tried in one go.

Weights depend on what may be learned from, and that differs for every pair of folds that is left out. Aggregating the
few queries of each pair by itself spends most of the time on starting; here the pairs lie in one table, each with
experts of its own, and a method that takes queries one by one ranks all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.data.consensus import Consensus, TieRule
from podium.data.dataset import Dataset
from podium.data.ids import Ids
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.methods.base import Aggregator

__all__ = ["LARGEST", "FoldGroup", "StackedFolds"]

LARGEST = 5_000_000  # rows of a stack; beyond, the pairs are taken one by one to spare memory


class FoldGroup(NamedTuple):
    """Queries that are left out together: those of folds a and b."""

    a: int
    b: int
    at: I8  # their places among the columns asked for
    part: Dataset


@dataclass(frozen=True, eq=False)
class StackedFolds:
    """All groups in one table; expert e of group g is expert g * experts + e."""

    groups: tuple[FoldGroup, ...]
    preferences: Preferences

    @classmethod
    def from_groups(cls, groups: tuple[FoldGroup, ...]) -> StackedFolds | None:
        """The stack, or None where the preferences are not lists alone or too many."""
        parts = [g.part.preferences for g in groups]
        if any(len(p.comparisons) for p in parts) or sum(p.lists.rows for p in parts) > LARGEST:
            return None
        lists, index = [p.lists for p in parts], [p.index for p in parts]
        slots = _compute_offsets(len(i.items) for i in index)
        rows, listed = _compute_offsets(t.rows for t in lists), _compute_offsets(len(t) for t in lists)
        experts = len(parts[0].experts)
        table = Lists(
            _concat_offsets([t.query_starts for t in lists], listed),
            np.concatenate([t.expert + g * experts for g, t in enumerate(lists)]).astype(np.int32),
            _concat_offsets([t.starts for t in lists], rows),
            np.concatenate([t.item + s for t, s in zip(lists, slots, strict=False)]).astype(np.int32),
            np.concatenate([t.rank for t in lists]),
            None if lists[0].score is None else np.concatenate([_scores_or_nan(t) for t in lists]),
        )
        own = ItemIndex(
            Ids(np.arange(sum(map(len, index)))),
            _concat_offsets([i.starts for i in index], slots),
            Ids(np.arange(slots[-1])),  # in the order of the true ids, so ties fall the same way
            np.concatenate([i.arrival for i in index]),
        )
        none = Comparisons.empty(len(own))
        unlisted = parts[0].unlisted
        return cls(groups, Preferences(own, Ids(np.arange(experts * len(groups))), table, none, unlisted))

    def rank_groups(self, method: Aggregator, ties: TieRule) -> list[Consensus]:
        """The consensus of every group, of a method with a weight for every expert of every group."""
        whole = method.aggregate(self.preferences, ties=ties)
        out, first = [], 0
        for group in self.groups:
            index = group.part.preferences.index
            last = first + len(index.items)
            order = whole.order[first:last] - np.int32(first)
            out.append(Consensus(index, whole.scores[first:last], order, whole.tied[first:last], ties=ties))
            first = last
        return out


def _compute_offsets(counts: Iterable[int]) -> I8:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.fromiter(counts, np.int64))))


def _concat_offsets(each: list[I8], first: I8) -> I8:
    return np.concatenate([*(o[:-1] + f for o, f in zip(each, first, strict=False)), first[-1:]])


def _scores_or_nan(lists: Lists) -> F8:
    return np.full(lists.rows, np.nan) if lists.score is None else lists.score
