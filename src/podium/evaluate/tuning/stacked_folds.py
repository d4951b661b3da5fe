"""Queries of all pairs of folds side by side, so that weights learned without them are tried in one pass.

Weights depend on the training queries, which differ for every pair of folds that is held out. Aggregating the
few queries of each pair separately is dominated by call overhead; here all pairs share one table, each with
its own experts, and a method that treats queries independently ranks all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.data.consensus import Consensus, TieRule
from podium.data.dataset import Dataset
from podium.data.ids import Ids
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import I8
from podium.methods.base import Aggregator

__all__ = ["LARGEST", "FoldGroup", "StackedFolds"]

LARGEST = 5_000_000  # rows of a stack; beyond, pairs are processed one by one to save memory


class FoldGroup(NamedTuple):
    """Queries that are held out together: those of folds a and b."""

    a: int
    b: int
    at: I8  # their positions among the requested columns
    part: Dataset


@dataclass(frozen=True, eq=False)
class StackedFolds:
    """All groups in one table; expert e of group g is expert g * experts + e."""

    groups: tuple[FoldGroup, ...]
    preferences: Preferences

    @classmethod
    def from_groups(cls, groups: tuple[FoldGroup, ...]) -> StackedFolds | None:
        """The stack, or None if the preferences are not only lists, or too many."""
        parts = [g.part.preferences for g in groups]
        if any(len(p.comparisons) for p in parts) or sum(p.lists.rows for p in parts) > LARGEST:
            return None
        lists, index = [p.lists for p in parts], [p.index for p in parts]
        slots = segments.offsets([len(i.items) for i in index])
        rows, listed = (
            segments.offsets(sizes) for sizes in ([t.rows for t in lists], [len(t) for t in lists])
        )
        experts, scores = len(parts[0].experts), None
        if lists[0].score is not None:
            scores = np.concatenate([np.full(t.rows, np.nan) if t.score is None else t.score for t in lists])
        table = Lists(
            _concat_offsets([t.query_starts for t in lists], listed),
            np.concatenate([t.expert + g * experts for g, t in enumerate(lists)]).astype(np.int32),
            _concat_offsets([t.starts for t in lists], rows),
            np.concatenate([t.item + s for t, s in zip(lists, slots, strict=False)]).astype(np.int32),
            np.concatenate([t.rank for t in lists]),
            scores,
        )
        own = ItemIndex(
            Ids(np.arange(sum(map(len, index)))),
            _concat_offsets([i.starts for i in index], slots),
            Ids(np.arange(slots[-1])),  # in the order of the true ids, so that ties break the same way
            np.concatenate([i.arrival for i in index]),
        )
        none = Comparisons.empty(len(own))
        unlisted = parts[0].unlisted
        return cls(groups, Preferences(own, Ids(np.arange(experts * len(groups))), table, none, unlisted))

    def rank_groups(self, method: Aggregator, ties: TieRule) -> list[Consensus]:
        """The consensus of every group, from a method with one weight per expert and group."""
        whole = method.aggregate(self.preferences, ties=ties)
        out, first = [], 0
        for group in self.groups:
            index = group.part.preferences.index
            last = first + len(index.items)
            order = whole.order[first:last] - np.int32(first)
            out.append(Consensus(index, whole.scores[first:last], order, whole.tied[first:last], ties=ties))
            first = last
        return out


def _concat_offsets(each: list[I8], first: I8) -> I8:
    return np.concatenate([*(o[:-1] + f for o, f in zip(each, first, strict=False)), first[-1:]])
