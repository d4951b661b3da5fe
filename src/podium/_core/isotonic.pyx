"""Pool-adjacent-violators algorithm, query by query."""

from libc.stdint cimport int64_t

import numpy as np


def fit_falling(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[::1] values, double[::1] out
):
    """out: the nearest non-increasing values, in each of a range of queries."""
    cdef int64_t query, row, n, k, pool, top, longest = 0
    cdef double s, mean
    for query in range(first, last):
        longest = max(longest, starts[query + 1] - starts[query])
    cdef double[::1] total = np.empty(longest)
    cdef int64_t[::1] size = np.empty(longest, np.int64)
    with nogil:
        for query in range(first, last):
            top = 0  # pools so far
            for row in range(starts[query], starts[query + 1]):
                s = values[row]
                n = 1
                # a pool that would exceed the one before it merges with it
                while top > 0 and s * size[top - 1] > total[top - 1] * n:
                    top -= 1
                    s += total[top]
                    n += size[top]
                total[top] = s
                size[top] = n
                top += 1
            row = starts[query]
            for pool in range(top):
                mean = total[pool] / size[pool]
                for k in range(size[pool]):
                    out[row] = mean
                    row += 1
