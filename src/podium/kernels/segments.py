"""Rows grouped in consecutive segments (lists): sums, statistics, ranks, repeats."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium._core import segments as core
from podium.kernels.dispatch import F8, I4, I8, run_in_threads

__all__ = [
    "ListStatistics",
    "competition_ranks",
    "compute_list_statistics",
    "compute_median_by_item",
    "find_extreme_by_item",
    "find_first_repeat",
    "fractional_ranks",
    "gather_segments",
    "implied_scores",
    "is_sorted",
    "offsets",
    "put_last",
    "sum_affine",
    "sum_points",
]

Ints = npt.NDArray[np.integer[Any]]


def offsets(lengths: npt.ArrayLike) -> npt.NDArray[Any]:
    """The first row of each of consecutive segments, then the number of rows.

    >>> offsets(np.array([3, 0, 2])).tolist()
    [0, 3, 3, 5]
    """
    return np.concatenate(([0], np.cumsum(lengths)))


def gather_segments(starts: I8, which: I8) -> tuple[I8, I8]:
    """Offsets and rows of the chosen segments, concatenated."""
    lengths = np.diff(starts)[which]
    chosen: I8 = offsets(lengths)
    return chosen, np.repeat(starts[:-1][which] - chosen[:-1], lengths) + np.arange(chosen[-1])


def is_sorted(group: I8, value: npt.NDArray[Any], then: Ints) -> bool:
    """Whether rows are in order of group, then value, then a last key."""
    if len(group) < 2:
        return True
    a, b = group[1:], group[:-1]
    if (a < b).any():
        return False
    same = a == b
    v, w = value[1:], value[:-1]
    return not (same & ((v < w) | ((v == w) & (then[1:] < then[:-1])))).any()


def find_first_repeat(group: I8, slot: Ints) -> int | None:
    """A row whose (group, slot) occurred earlier in the same group, or None; groups are contiguous."""
    at = int(core.find_first_repeat(group, slot.astype(np.int32, copy=False), int(slot.max()) + 1))
    return None if at < 0 else at


def competition_ranks(group: I8, value: F8) -> I4:
    """Ranks 1, 2, 2, 4 by rising value inside each group; rows are sorted by group, then value."""
    n = len(group)
    if n == 0:
        return np.zeros(0, np.int32)
    new_group = np.concatenate(([True], group[1:] != group[:-1]))
    new_value = new_group | np.concatenate(([True], value[1:] != value[:-1]))
    at = np.arange(n)
    # the running maximum is the row at which the current group (or value) began
    group_at = np.maximum.accumulate(np.where(new_group, at, 0))
    value_at = np.maximum.accumulate(np.where(new_value, at, 0))
    return (value_at - group_at + 1).astype(np.int32)


def fractional_ranks(starts: I8, rank: I4) -> F8:
    """Positions 1..n inside each list with ties sharing their mean: 1, 2.5, 2.5, 4."""
    shared = np.empty(len(rank))
    run_in_threads(core.fractional_ranks, starts, starts, rank, shared)
    return shared


def implied_scores(rank: I4, last: I8, size: I8) -> F8:
    """Scores of lists with ranks only: the larger of last rank and number of items, minus rank, plus one."""
    return (np.maximum(last, size) - rank + 1).astype(np.float64)


class ListStatistics(NamedTuple):
    """Per list: smallest and largest value, mean and standard deviation (population)."""

    low: F8
    high: F8
    mean: F8
    deviation: F8


def compute_list_statistics(starts: I8, value: F8) -> ListStatistics:
    """Statistics of each list; an empty list gives zeros."""
    lists = len(starts) - 1
    stats = ListStatistics(*(np.zeros(lists) for _ in range(4)))
    run_in_threads(core.compute_list_statistics, starts, starts, value, *stats)
    return stats


def sum_points(
    query_starts: I8, starts: I8, item: I4, rank: I4, points: F8, list_weight: F8, slots: int
) -> F8:
    """Sum over lists of `list_weight * points[rank]` for each slot."""
    total = np.zeros(slots)
    given = (query_starts, starts, item, rank, points, list_weight, total)
    run_in_threads(core.sum_points, starts[query_starts], *given)
    return total


def sum_affine(
    query_starts: I8, starts: I8, item: I4, value: F8 | None, base: F8, slope: F8, slots: int
) -> F8:
    """Sum over lists of `base + slope * value` for each slot; without `value`, of `base` alone."""
    total = np.zeros(slots)
    given = (query_starts, starts, item, value, base, slope, total)
    run_in_threads(core.sum_affine, starts[query_starts], *given)
    return total


def find_extreme_by_item(item: I4, value: F8, slots: int, *, largest: bool) -> F8:
    """The largest (or smallest) value of each slot's rows; NaN for slots without rows."""
    found = np.full(slots, -np.inf if largest else np.inf)
    (np.maximum if largest else np.minimum).at(found, item, value)
    return np.where(np.isinf(found), np.nan, found)


def compute_median_by_item(item: I4, value: F8, weight: F8, slots: int) -> F8:
    """Weighted median of each slot's rows: the mean of the lower and the upper one; NaN without rows.

    Rows of weight 0 do not count; a row of weight 2 counts as two rows. Weights are integers, so that sums
    over any number of rows are exact.
    """
    counted = weight > 0
    item, value, weight = item[counted], value[counted], weight[counted]
    order = np.lexsort((value, item))
    item, value, weight = item[order], value[order], weight[order]
    median = np.full(slots, np.nan)
    if len(item) == 0:
        return median
    first = np.flatnonzero(np.concatenate(([True], item[1:] != item[:-1])))
    size = np.diff(np.append(first, len(item)))
    running = np.cumsum(weight)
    before = np.repeat(running[first] - weight[first], size)
    twice = 2 * (running - before)
    total = np.repeat(np.add.reduceat(weight, first), size)
    # rows at which the running weight first reaches, and first exceeds, one half
    reach = first + np.add.reduceat((twice < total).astype(np.int64), first)
    exceed = np.minimum(first + np.add.reduceat((twice <= total).astype(np.int64), first), first + size - 1)
    median[item[first]] = (value[reach] + value[exceed]) / 2
    return median


def put_last(scores: F8, absent: npt.NDArray[np.bool_], starts: I8, *, if_needed: bool = False) -> F8:
    """Scores in which the absent slots of every query lie below its lowest present score.

    `if_needed` leaves queries unchanged in which they are already equal and below the others.
    """
    filled = np.flatnonzero(np.diff(starts))
    if not absent.any():
        return scores
    begins, sizes = starts[:-1][filled], np.diff(starts)[filled]
    low = np.minimum.reduceat(np.where(absent, np.inf, scores), begins)
    top = np.maximum.reduceat(np.where(absent, scores, -np.inf), begins)
    bottom = np.minimum.reduceat(np.where(absent, scores, np.inf), begins)
    with np.errstate(invalid="ignore"):  # queries in which nothing is absent
        needed = (top >= low) | (top - bottom > 1e-9 * np.maximum(np.abs(top), np.abs(bottom)))
    # a query without any present item: every value is as good
    low[np.isinf(low)] = 1.0
    # one lower, and by a clear margin among very large scores
    below = low - np.maximum(1.0, 1e-6 * np.abs(low))
    moved = absent & np.repeat(needed, sizes) if if_needed else absent
    return np.where(moved, np.repeat(below, sizes), scores)
