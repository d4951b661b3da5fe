"""The walk down each ranking, for many queries, and counts of earlier rows."""

from libc.stdint cimport int32_t, int64_t

import numpy as np


def walk_rankings(
    int64_t first, int64_t last, const int64_t[::1] query, const int64_t[::1] starts,
    const int32_t[::1] order, const int32_t[::1] level, const int64_t[::1] depth, const int64_t[::1] kind,
    const double[:, ::1] gain, const double[:, ::1] discount, const int64_t[:, ::1] limit, double[:, ::1] out,
):
    """All measures of a range of queries; the levels of a ranking are gathered once."""
    cdef int64_t j, m, n, i, k, a, most = 1
    for j in range(first, last):
        most = max(most, depth[j])
    cdef int32_t[::1] seen = np.empty(most, np.int32)
    with nogil:
        for j in range(first, last):
            n = depth[j]
            if n == 0:
                continue
            a = starts[query[j]]
            for i in range(n):
                seen[i] = level[order[a + i]]
            for m in range(kind.shape[0]):
                k = min(n, limit[m, j])
                if kind[m] == 0:
                    out[m, j] = sum_gains(&seen[0], k, &gain[m, 0], &discount[m, 0])
                elif kind[m] == 1:
                    out[m, j] = sum_precisions(&seen[0], k, &gain[m, 0], &discount[m, 0])
                elif kind[m] == 2:
                    out[m, j] = sum_cascade(&seen[0], k, &gain[m, 0], &discount[m, 0])
                else:
                    out[m, j] = sum_bpref(&seen[0], n, &gain[m, 0], limit[m, j])


cdef inline double sum_gains(
    const int32_t* seen, int64_t k, const double* gain, const double* discount
) noexcept nogil:
    """Gains times discounts."""
    cdef double total = 0.0
    cdef int64_t i
    for i in range(k):
        total += gain[seen[i]] * discount[i]
    return total


cdef inline double sum_precisions(
    const int32_t* seen, int64_t k, const double* gain, const double* discount
) noexcept nogil:
    """The precision at each relevant place."""
    cdef double g, total = 0.0, hits = 0.0
    cdef int64_t i
    for i in range(k):
        g = gain[seen[i]]
        if g > 0:
            hits += g
            total += g * hits / discount[i]
    return total


cdef inline double sum_cascade(
    const int32_t* seen, int64_t k, const double* gain, const double* discount
) noexcept nogil:
    """Discounts times the probability that reading stops at each place."""
    cdef double g, total = 0.0, left = 1.0
    cdef int64_t i
    for i in range(k):
        g = gain[seen[i]]
        total += discount[i] * g * left
        left *= 1.0 - g
        if left <= 0.0:
            break
    return total


cdef inline double sum_bpref(
    const int32_t* seen, int64_t n, const double* gain, int64_t bound
) noexcept nogil:
    """For each relevant place the fraction of the judged non-relevant items below it."""
    cdef double g, total = 0.0, above = 0.0
    cdef int64_t i
    for i in range(n):
        g = gain[seen[i]]
        if g == 0.0:
            above += 1.0
        elif g > 0.0:
            total += 1.0 - min(above, <double>bound) / bound if bound > 0 else 1.0
    return total


def count_earlier(
    int64_t first, int64_t last, const int64_t[::1] starts, const int64_t[::1] value, int64_t[::1] smaller,
    int64_t[::1] larger,
):
    """Rows before each row of its segment with a smaller and with a larger value, by a tree of counts."""
    cdef int64_t q, a, row, at, width, most = 0
    for row in range(starts[first], starts[last]):
        most = max(most, value[row])
    cdef int64_t[::1] tree = np.empty(most + 2, np.int64)
    with nogil:
        for q in range(first, last):
            a = starts[q]
            if starts[q + 1] - a < 2:
                continue
            width = 0
            for row in range(a, starts[q + 1]):
                width = max(width, value[row] + 1)
            for at in range(width + 1):
                tree[at] = 0
            for row in range(a, starts[q + 1]):
                smaller[row] = sum_prefix(tree, value[row])
                larger[row] = row - a - sum_prefix(tree, value[row] + 1)
                at = value[row] + 1
                while at <= width:
                    tree[at] += 1
                    at += at & -at


cdef inline int64_t sum_prefix(const int64_t[::1] tree, int64_t end) noexcept nogil:
    """The number of values below `end` so far (a Fenwick tree)."""
    cdef int64_t total = 0
    while end > 0:
        total += tree[end]
        end -= end & -end
    return total
