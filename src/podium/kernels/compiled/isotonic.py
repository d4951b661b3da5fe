"""Pool-adjacent-violators algorithm, query by query."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fit_falling(first, last, starts, values, out):
    """out: the nearest non-increasing values, in each of a range of queries."""
    longest = 0
    for query in range(first, last):
        longest = max(longest, starts[query + 1] - starts[query])
    total, size = np.empty(longest), np.empty(longest, np.int64)
    for query in range(first, last):
        a, b = starts[query], starts[query + 1]
        top = 0  # pools so far
        for row in range(a, b):
            s, n = values[row], 1
            # a pool that would exceed the one before it merges with it
            while top > 0 and s * size[top - 1] > total[top - 1] * n:
                top -= 1
                s += total[top]
                n += size[top]
            total[top], size[top] = s, n
            top += 1
        row = a
        for pool in range(top):
            mean = total[pool] / size[pool]
            for _ in range(size[pool]):
                out[row] = mean
                row += 1
