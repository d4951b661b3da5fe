"""Duplicate items in a list: reduced to one row each by an explicit policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8

__all__ = ["ListRows", "merge_duplicates"]


@dataclass(frozen=True)
class ListRows:
    """List rows with integer codes (slots for items), in any order."""

    query: I8
    expert: I8
    slot: I8
    rank: I4 | None
    score: F8 | None

    def take(self, order: I8) -> ListRows:
        """The rows in another order, or a subset of them."""
        rank = None if self.rank is None else self.rank[order]
        score = None if self.score is None else self.score[order]
        return ListRows(self.query[order], self.expert[order], self.slot[order], rank, score)

    def prepend_rows(self, other: ListRows) -> ListRows:
        """Other rows with the same columns, followed by these."""
        rank = None if self.rank is None or other.rank is None else np.concatenate((other.rank, self.rank))
        score = (
            None if self.score is None or other.score is None else np.concatenate((other.score, self.score))
        )
        query, expert, slot = (
            np.concatenate(pair)
            for pair in ((other.query, self.query), (other.expert, self.expert), (other.slot, self.slot))
        )
        return ListRows(query, expert, slot, rank, score)


def merge_duplicates(rows: ListRows, list_key: I8, policy: str, sizes: I8) -> tuple[ListRows, I8]:
    """One row per item in lists with duplicates, which are then renumbered; other lists are unchanged.

    Rows are sorted by list and position. `first` keeps the copy with the best rank, `best` the one with the
    best score, `sum` adds the scores of the copies and orders by the sums. Row order does not matter.
    """
    if rows.rank is None:
        assert rows.score is not None
        ranks = segments.competition_ranks(list_key, -rows.score)
        rows = ListRows(rows.query, rows.expert, rows.slot, ranks, rows.score)
    lists, code = np.unique(list_key, return_inverse=True)
    width = int(rows.slot.max()) + 1
    pairs, count = np.unique(code * width + rows.slot, return_counts=True)
    repeating = np.zeros(len(lists), np.bool_)
    repeating[pairs[count > 1] // width] = True
    # lists without duplicates keep their ranks, gaps included
    touched = np.flatnonzero(repeating[code])
    rest = np.flatnonzero(~repeating[code])
    merged, kept = _merge_lists(rows.take(touched), code[touched], policy, sizes)
    return merged.prepend_rows(rows.take(rest)), np.concatenate((list_key[rest], lists[kept]))


def _merge_lists(rows: ListRows, code: I8, policy: str, sizes: I8) -> tuple[ListRows, I8]:
    assert rows.rank is not None
    last_rank = np.zeros(int(code.max()) + 1, np.int64)
    np.maximum.at(last_rank, code, rows.rank)
    value = segments.implied_scores(rows.rank, last_rank[code], sizes[rows.query])
    if rows.score is not None:
        value = np.where(np.isnan(rows.score), value, rows.score)
    last = (rows.slot, rows.rank, -value, code) if policy == "best" else (rows.slot, -value, rows.rank, code)
    # the copy to keep comes first; the slot as last key makes the order independent of the input
    order = np.lexsort(last)
    key = (code * (int(rows.slot.max()) + 1) + rows.slot)[order]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    kept = order[first]
    total = np.bincount(which, weights=value[order]).astype(np.float64)
    worth = -total if policy == "sum" else rows.rank[kept].astype(np.float64)
    again = np.lexsort((rows.slot[kept], worth, code[kept]))
    kept, worth, total = kept[again], worth[again], total[again]
    score = None if rows.score is None else rows.score[kept]
    # lists without scores keep NaN, although their implied scores were summed
    if score is not None and policy == "sum":
        score = np.where(np.isnan(score), np.nan, total)
    ranks = segments.competition_ranks(code[kept], worth)
    return ListRows(rows.query[kept], rows.expert[kept], rows.slot[kept], ranks, score), code[kept]
