"""Loops over segments."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def first_repeat(group, slot, width):
    """Smallest row whose slot was seen before in its group, or -1."""
    seen = np.full(width, -1, np.int64)
    for row in range(len(group)):
        if seen[slot[row]] == group[row]:
            return row
        seen[slot[row]] = group[row]
    return -1


@njit(cache=True, nogil=True)
def sum_values(item, value, total):
    """total[item] += value."""
    for row in range(len(item)):
        total[item[row]] += value[row]


@njit(cache=True, nogil=True)
def sum_points(first, last, query_starts, starts, item, rank, points, list_weight, total):
    """total[item] += list_weight * points[rank] over the lists of a range of queries."""
    for lst in range(query_starts[first], query_starts[last]):
        w = list_weight[lst]
        for row in range(starts[lst], starts[lst + 1]):
            total[item[row]] += w * points[rank[row]]
