"""The two tables of preferences: lists (rankings, ratings) and comparisons."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8

__all__ = ["Comparisons", "Lists"]


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows sorted by query, then expert, then rank, then item; one list is one expert's ranking of one query.

    `score` is None if no list has scores; if only some lists have scores, the others have NaN.
    """

    query_starts: I8  # lists of query q: query_starts[q] .. query_starts[q + 1]
    expert: I4  # expert code of each list
    starts: I8  # rows of list l: starts[l] .. starts[l + 1]
    item: I4  # slot of each row
    rank: I4  # 1 = top; equal ranks are ties; gaps are allowed
    score: F8 | None

    @classmethod
    def empty(cls, queries: int) -> Lists:
        """Empty lists."""
        empty = np.zeros(0, np.int32)
        return cls(np.zeros(queries + 1, np.int64), empty, np.zeros(1, np.int64), empty, empty, None)

    def __len__(self) -> int:
        return len(self.expert)

    @property
    def rows(self) -> int:
        """Number of (expert, item) entries."""
        return len(self.item)

    @property
    def lengths(self) -> I8:
        """Rows per list."""
        return np.diff(self.starts)

    @functools.cached_property
    def list_of_row(self) -> I8:
        """The list of each row."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @functools.cached_property
    def query_of_list(self) -> I8:
        """Query code of each list."""
        return np.repeat(np.arange(len(self.query_starts) - 1), np.diff(self.query_starts))

    @functools.cached_property
    def row_starts(self) -> I8:
        """Rows of query q: row_starts[q] .. row_starts[q + 1]."""
        return self.starts[self.query_starts]

    @functools.cached_property
    def last_rank(self) -> I8:
        """The largest rank of each list, 0 when it is empty."""
        last = np.zeros(len(self), np.int64)
        filled = self.lengths > 0
        last[filled] = self.rank[self.starts[1:][filled] - 1]
        return last

    def fill_scores(self, sizes: I8) -> F8:
        """Scores of all rows; a rank R without score gives max(M, last rank) - R + 1, M items per query."""
        if self.score is not None and not np.isnan(self.score).any():
            return self.score
        which = self.list_of_row
        implied = segments.implied_scores(self.rank, self.last_rank[which], sizes[self.query_of_list][which])
        return implied if self.score is None else np.where(np.isnan(self.score), implied, self.score)

    def sum_affine(self, value: F8 | None, base: F8, slope: F8, slots: int) -> F8:
        """Sum by slot of base + slope * value (by row; without it, of base); base and slope are by list."""
        return segments.sum_affine(self.query_starts, self.starts, self.item, value, base, slope, slots)

    def select(self, queries: I8, slot_map: I8) -> Lists:
        """The lists of a subset of the queries, with slots renumbered by `slot_map`."""
        query_starts, which = segments.gather_segments(self.query_starts, queries)
        starts, rows = segments.gather_segments(self.starts, which)
        score = None if self.score is None else self.score[rows]
        item = slot_map[self.item[rows]].astype(np.int32)
        return Lists(query_starts, self.expert[which], starts, item, self.rank[rows], score)

    def keep(self, wanted: B1, expert_map: I8) -> Lists:
        """The selected lists, with experts renumbered."""
        which = np.flatnonzero(wanted)
        kept = segments.offsets(wanted)
        starts, rows = segments.gather_segments(self.starts, which)
        score = None if self.score is None else self.score[rows]
        expert = expert_map[self.expert[which]].astype(np.int32)
        return Lists(kept[self.query_starts], expert, starts, self.item[rows], self.rank[rows], score)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Votes sorted by query, then expert, otherwise in input order; `tie` marks votes without a winner.

    `side` is the order in which the items were shown: 1 if the winner (in a tie: the item named first) was
    shown first, -1 if the other item was, 0 if unknown. It is metadata, not part of the content.
    """

    query_starts: I8
    expert: I4
    winner: I4  # slot
    loser: I4  # slot
    tie: B1
    weight: F8
    side: I4 | None = None

    @classmethod
    def empty(cls, queries: int) -> Comparisons:
        """Empty comparisons."""
        empty = np.zeros(0, np.int32)
        return cls(np.zeros(queries + 1, np.int64), empty, empty, empty, np.zeros(0, np.bool_), np.zeros(0))

    def __len__(self) -> int:
        return len(self.expert)

    @functools.cached_property
    def query_of_row(self) -> I8:
        """Query code of each vote."""
        return np.repeat(np.arange(len(self.query_starts) - 1), np.diff(self.query_starts))

    def select(self, queries: I8, slot_map: I8) -> Comparisons:
        """The votes of a subset of the queries, with slots renumbered by `slot_map`."""
        query_starts, rows = segments.gather_segments(self.query_starts, queries)
        winner, loser = (slot_map[c[rows]].astype(np.int32) for c in (self.winner, self.loser))
        side = None if self.side is None else self.side[rows]
        expert, tie, weight = self.expert[rows], self.tie[rows], self.weight[rows]
        return Comparisons(query_starts, expert, winner, loser, tie, weight, side)

    def keep(self, wanted: B1, expert_map: I8) -> Comparisons:
        """The selected votes, with experts renumbered."""
        kept = segments.offsets(wanted)
        expert = expert_map[self.expert[wanted]].astype(np.int32)
        return Comparisons(
            kept[self.query_starts],
            expert,
            self.winner[wanted],
            self.loser[wanted],
            self.tie[wanted],
            self.weight[wanted],
            None if self.side is None else self.side[wanted],
        )
