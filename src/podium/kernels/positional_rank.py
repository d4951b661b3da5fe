"""Points by rank, summed and ordered directly from columns grouped by query.

The same sums in the same order as `segments.sum_points` and `ordering.rank_order` compute from preferences,
so bit-identical, without building preferences; both ways are tested together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium._core import positional_rank as core
from podium.kernels.dispatch import B1, F8, I4, I8, run_in_threads
from podium.kernels.local_items import TextColumn
from podium.kernels.ordering import TOLERANCE

__all__ = ["RankedItems", "compute_ranks_by_score", "rank_by_points"]


class RankedItems(NamedTuple):
    """Results query by query, best first."""

    item: npt.NDArray[Any]  # the id; for texts, the number of the text
    rank: I4
    score: F8
    tied: B1
    counts: I8  # of each query


def rank_by_points(
    row_starts: I8,
    list_starts: I8,
    item: npt.NDArray[Any] | TextColumn,
    rank: I4,
    points: F8,
    weight: F8,
    top: int | None,
) -> RankedItems | None:
    """Items by falling sum of weight[list] * points[rank], ties by id; None if a list repeats an item.

    Query q has the rows row_starts[q] .. row_starts[q + 1], list l the rows list_starts[l] .. list_starts[l +
    1].
    """
    n, queries = len(rank), len(row_starts) - 1
    if isinstance(item, np.ndarray):
        ids, plain = item, False
        data, at, length = np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int32)
    else:
        plain = item.codes is None  # the rows are texts
        ids = np.zeros(0, np.int64) if item.codes is None else item.codes
        data, at, length = item.buffer, item.offsets[:-1], np.diff(item.offsets).astype(np.int32)
    items, places = np.empty(n, ids.dtype), np.empty(n, np.int32)
    scores, tied = np.empty(n), np.empty(n, np.bool_)
    begins, counts, bad = (
        np.empty(queries, np.int64),
        np.empty(queries, np.int64),
        np.zeros(queries, np.bool_),
    )
    given = (row_starts, np.searchsorted(list_starts, row_starts), list_starts, ids, plain, data, at, length)
    made = (items, places, scores, tied, begins, counts, bad)
    run_in_threads(core.rank_by_points, row_starts, *given, rank, points, weight, TOLERANCE, top or n, *made)
    if bad.any():
        return None
    total = int(counts.sum())
    if begins[-1] + counts[-1] == total:  # one range, without gaps
        return RankedItems(items[:total], places[:total], scores[:total], tied[:total], counts)
    where = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(total)
    return RankedItems(items[where], places[where], scores[where], tied[where], counts)


def compute_ranks_by_score(list_starts: I8, score: F8, rank: I4 | None) -> I4 | None:
    """The ranks of lists with falling scores, derived from the scores if missing; None if they disagree."""
    bad = np.empty(len(list_starts) - 1, np.bool_)
    if rank is not None:
        run_in_threads(
            core.find_contradictions,
            list_starts,
            list_starts,
            score,
            rank,
            bad,
        )
    else:
        rank = np.empty(len(score), np.int32)
        run_in_threads(core.rank_scores, list_starts, list_starts, score, rank, bad)
    return None if bad.any() else rank
