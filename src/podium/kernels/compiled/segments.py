"""Loops over the rows of lists."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def find_first_repeat(group, slot, width):
    """Smallest row whose slot was seen before in its group, or -1."""
    seen = np.full(width, -1, np.int64)
    for row in range(len(group)):
        if seen[slot[row]] == group[row]:
            return row
        seen[slot[row]] = group[row]
    return -1


@njit(cache=True, nogil=True)
def sum_points(first, last, query_starts, starts, item, rank, points, list_weight, total):
    """total[item] += list_weight * points[rank] over the lists of a range of queries."""
    for lst in range(query_starts[first], query_starts[last]):
        w = list_weight[lst]
        items, ranks = item[starts[lst] : starts[lst + 1]], rank[starts[lst] : starts[lst + 1]]
        for row in range(len(items)):
            # unsigned: avoids the check for negative indices, which halves the time
            total[np.uint32(items[row])] += w * points[np.uint32(ranks[row])]


@njit(cache=True, nogil=True)
def sum_affine(first, last, query_starts, starts, item, value, base, slope, total):
    """total[item] += base + slope * value over the lists of a range of queries."""
    for lst in range(query_starts[first], query_starts[last]):
        a, b = base[lst], slope[lst]
        items = item[starts[lst] : starts[lst + 1]]
        if value is None:
            for row in range(len(items)):
                total[np.uint32(items[row])] += a
        else:
            values = value[starts[lst] : starts[lst + 1]]
            for row in range(len(items)):
                total[np.uint32(items[row])] += a + b * values[row]


@njit(cache=True, nogil=True)
def compute_list_statistics(first, last, starts, value, low, high, mean, deviation):
    """Smallest, largest, mean and standard deviation of each list."""
    for lst in range(first, last):
        a, b = starts[lst], starts[lst + 1]
        if a == b:
            continue
        lo = hi = value[a]
        total = 0.0
        for row in range(a, b):
            v = value[row]
            lo, hi = min(lo, v), max(hi, v)
            total += v
        m = total / (b - a)
        spread = hi - lo if hi > lo else 1.0
        square = 0.0
        for row in range(a, b):
            off = (value[row] - m) / spread
            square += off * off
        low[lst], high[lst], mean[lst], deviation[lst] = lo, hi, m, np.sqrt(square / (b - a)) * spread


@njit(cache=True, nogil=True)
def fractional_ranks(first, last, starts, rank, place):
    """Positions 1..n in each list, ties sharing their mean."""
    for lst in range(first, last):
        a, b = starts[lst], starts[lst + 1]
        i = a
        while i < b:
            j = i + 1
            while j < b and rank[j] == rank[i]:
                j += 1
            mean = (i + j - 1) * 0.5 - a + 1.0
            for row in range(i, j):
                place[row] = mean
            i = j
