"""The walk down each ranking, for many queries."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def walk_rankings(first, last, query, starts, order, level, depth, kind, gain, discount, limit, out):
    """All measures of a range of queries; the levels of a ranking are gathered once."""
    seen = np.empty(max(1, np.max(depth[first:last])), np.int32)
    for j in range(first, last):
        n = depth[j]
        if n == 0:
            continue
        a = starts[query[j]]
        for i in range(n):
            seen[i] = level[order[a + i]]
        for m in range(len(kind)):
            k = min(n, limit[m, j])
            if kind[m] == 0:
                out[m, j] = _sum_gains(seen, k, gain[m], discount[m])
            elif kind[m] == 1:
                out[m, j] = _sum_precisions(seen, k, gain[m], discount[m])
            elif kind[m] == 2:
                out[m, j] = _sum_cascade(seen, k, gain[m], discount[m])
            else:
                out[m, j] = _sum_bpref(seen, n, gain[m], limit[m, j])


@njit(cache=True, nogil=True, inline="always")
def _sum_gains(seen, k, gain, discount):
    total = 0.0
    for i in range(k):
        total += gain[seen[i]] * discount[i]
    return total


@njit(cache=True, nogil=True, inline="always")
def _sum_precisions(seen, k, gain, discount):
    total, hits = 0.0, 0.0
    for i in range(k):
        g = gain[seen[i]]
        if g > 0:
            hits += g
            total += g * hits / discount[i]
    return total


@njit(cache=True, nogil=True, inline="always")
def _sum_cascade(seen, k, gain, discount):
    total, left = 0.0, 1.0
    for i in range(k):
        g = gain[seen[i]]
        total += discount[i] * g * left
        left *= 1.0 - g
        if left <= 0.0:
            break
    return total


@njit(cache=True, nogil=True, inline="always")
def _sum_bpref(seen, n, gain, bound):
    total, above = 0.0, 0.0
    for i in range(n):
        g = gain[seen[i]]
        if g == 0.0:
            above += 1.0
        elif g > 0.0:
            total += 1.0 - min(above, bound) / bound if bound > 0 else 1.0
    return total


@njit(cache=True, nogil=True)
def count_earlier(first, last, starts, value, smaller, larger):
    """Rows before each row of its segment with a smaller and with a larger value, by a tree of counts."""
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        if b - a < 2:
            continue
        width = np.max(value[a:b]) + 1
        tree = np.zeros(width + 1, np.int64)
        for row in range(a, b):
            below = _sum_prefix(tree, value[row])
            smaller[row] = below
            larger[row] = row - a - _sum_prefix(tree, value[row] + 1)
            at = value[row] + 1
            while at <= width:
                tree[at] += 1
                at += at & -at


@njit(cache=True, nogil=True, inline="always")
def _sum_prefix(tree, end):
    total = 0
    while end > 0:
        total += tree[end]
        end -= end & -end
    return total
