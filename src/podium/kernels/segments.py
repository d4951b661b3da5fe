"""Rows grouped in consecutive segments: sums, ranks, repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.kernels.dispatch import F8, I4, I8, by_queries, large

__all__ = ["competition_ranks", "first_repeat", "gather", "implied_scores", "is_sorted", "sum_by_item", "sum_points"]

Ints = npt.NDArray[np.integer[Any]]


def gather(starts: I8, which: I8) -> tuple[I8, I8]:
    """Offsets and rows of the chosen segments, put one after the other."""
    lengths = np.diff(starts)[which]
    offsets = np.zeros(len(which) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    rows = np.repeat(starts[:-1][which] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return offsets, rows


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


def first_repeat(group: I8, slot: Ints) -> int | None:
    """A row whose (group, slot) occurred in an earlier row of the same group, or None; groups are contiguous."""
    width = int(slot.max()) + 1
    if large(len(group)):
        from podium.kernels.compiled.segments import first_repeat as kernel

        at = int(kernel(group, slot, width))
        return None if at < 0 else at
    order = np.argsort(group * width + slot, kind="stable")
    keys = (group * width + slot)[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    return None if len(again) == 0 else int(order[again + 1].min())


def competition_ranks(group: I8, value: F8) -> I4:
    """Ranks 1, 2, 2, 4 by rising value inside each group; rows are sorted by group, then value."""
    n = len(group)
    new_group = np.concatenate(([True], group[1:] != group[:-1])) if n else np.zeros(0, np.bool_)
    new_value = new_group | np.concatenate(([True], value[1:] != value[:-1])) if n else new_group
    at = np.arange(n)
    group_at = np.maximum.accumulate(np.where(new_group, at, 0)) if n else at
    value_at = np.maximum.accumulate(np.where(new_value, at, 0)) if n else at
    return (value_at - group_at + 1).astype(np.int32)


def implied_scores(group: I8, rank: I4 | None) -> F8:
    """Last rank of the group minus rank plus one; rows sorted by group."""
    assert rank is not None
    last = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(last, group, rank)
    return (last[group] - rank + 1).astype(np.float64)


def sum_by_item(item: I4, value: F8, slots: int) -> F8:
    """Sum of the values of each slot's rows, in row order."""
    if len(item) == 0:
        return np.zeros(slots)
    if large(len(item)):
        from podium.kernels.compiled.segments import sum_values

        total = np.zeros(slots)
        sum_values(item, value, total)
        return total
    return np.bincount(item, weights=value, minlength=slots)


def sum_points(
    query_starts: I8, starts: I8, item: I4, rank: I4, points: F8, list_weight: F8, slots: int
) -> F8:
    """Sum over lists of `list_weight * points[rank]` for each slot."""
    if large(len(item)):
        from podium.kernels.compiled.segments import sum_points as kernel

        total = np.zeros(slots)
        by_queries(kernel, starts[query_starts], query_starts, starts, item, rank, points, list_weight, total)
        return total
    if len(item) == 0:
        return np.zeros(slots)
    value = points[rank] * np.repeat(list_weight, np.diff(starts))
    return np.bincount(item, weights=value, minlength=slots)
