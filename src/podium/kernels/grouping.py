"""Distinct values of each group, numbered in order."""

from __future__ import annotations

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import I4, I8, is_large, run_in_threads

__all__ = ["number_pairs"]


def number_pairs(group: I8, value: I8, groups: int, width: int) -> tuple[I8, I8, I4, I8]:
    """Number the distinct (group, value) pairs by group, then value, both below `groups` and `width`.

    Returns the offsets of the groups, the value of each pair, its position in the order in which its group's
    values first occur, and the number of each row's pair.
    """
    if not is_large(len(group)):
        return _number_by_sorting(group, value, groups, width)
    from podium.kernels.compiled.grouping import count_distinct, number_distinct

    grouped = not (group[1:] < group[:-1]).any()
    order = None if grouped else np.argsort(group, kind="stable")
    row_starts = segments.offsets(np.bincount(group, minlength=groups))
    sizes = np.zeros(groups, np.int64)
    run_in_threads(count_distinct, row_starts, row_starts, order, value, width, sizes)
    starts = segments.offsets(sizes)
    pair = np.empty(len(group), np.int64)
    distinct, arrival = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int32)
    run_in_threads(
        number_distinct, row_starts, row_starts, order, value, width, starts, distinct, arrival, pair
    )
    return starts, distinct, arrival, pair


def _number_by_sorting(group: I8, value: I8, groups: int, width: int) -> tuple[I8, I8, I4, I8]:
    keys, first, pair = np.unique(group * width + value, return_index=True, return_inverse=True)
    group_of_pair = keys // width
    starts = np.searchsorted(group_of_pair, np.arange(groups + 1)).astype(np.int64)
    order = np.lexsort((first, group_of_pair))
    arrival = np.empty(len(keys), np.int32)
    arrival[order] = np.arange(len(keys)) - starts[group_of_pair]
    return starts, keys % width, arrival, pair.astype(np.int64)
