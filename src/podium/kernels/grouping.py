"""Rows numbered, merged and summed by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium._core import grouping as core
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8, run_in_threads

__all__ = ["number_pairs", "number_rows", "sum_by_group", "sum_rows"]

LARGEST_KEY = 2**62


def number_rows(*columns: npt.NDArray[Any]) -> tuple[tuple[I8, ...], I8]:
    """The distinct rows of columns of codes (integers from 0) in order, and the number of each row among them.

    >>> number_rows(np.array([1, 0, 1]), np.array([5, 7, 5]))
    ((array([0, 1]), array([7, 5])), array([1, 0, 1]))
    """
    key, top = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        # the next product would overflow: number the keys so far, which are then at most one per row
        if top > LARGEST_KEY // width:
            count, key = _number_keys(key, top)
            top = max(count, 1)
        key, top = key * width + column, top * width
    count, number = _number_keys(key, top)
    example = np.zeros(count, np.int64)
    example[number] = np.arange(len(number))
    return tuple(column[example].astype(np.int64, copy=False) for column in columns), number


def _number_keys(key: I8, top: int) -> tuple[int, I8]:
    """How many keys below `top` differ, and the number of each in order; small keys are marked, not sorted."""
    if top > 4 * len(key) + 1000:
        distinct, number = np.unique(key, return_inverse=True)
        return len(distinct), np.asarray(number, np.int64)
    used: B1 = np.zeros(top, np.bool_)
    used[key] = True
    return int(used.sum()), (np.cumsum(used) - 1)[key]


def sum_rows(
    keys: Sequence[npt.NDArray[Any]], values: Sequence[npt.NDArray[Any]]
) -> tuple[tuple[I8, ...], tuple[F8, ...]]:
    """Merge the rows with equal keys: the distinct keys in order, and the sums of the values."""
    distinct, number = number_rows(*keys)
    return distinct, tuple(sum_by_group(number, column, len(distinct[0])) for column in values)


def sum_by_group(group: npt.NDArray[Any], values: npt.NDArray[Any], count: int) -> F8:
    """Sums of the values by group; floats even when there are none."""
    return np.bincount(group, weights=values, minlength=count).astype(np.float64, copy=False)


def number_pairs(group: I8, value: I8, groups: int, width: int) -> tuple[I8, I8, I4, I8]:
    """Number the distinct (group, value) pairs by group, then value, both below `groups` and `width`.

    Returns the offsets of the groups, the value of each pair, its position in the order in which its group's
    values first occur, and the number of each row's pair.
    """
    grouped = not (group[1:] < group[:-1]).any()
    order = None if grouped else np.argsort(group, kind="stable")
    row_starts = segments.offsets(np.bincount(group, minlength=groups))
    sizes = np.zeros(groups, np.int64)
    run_in_threads(core.count_distinct, row_starts, row_starts, order, value, width, sizes)
    starts = segments.offsets(sizes)
    pair = np.empty(len(group), np.int64)
    distinct, arrival = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int32)
    given = (row_starts, order, value, width, starts, distinct, arrival, pair)
    run_in_threads(core.number_distinct, row_starts, *given)
    return starts, distinct, arrival, pair
