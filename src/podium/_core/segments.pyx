"""Loops over the rows of lists: list l has the rows starts[l] .. starts[l + 1]."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t

import numpy as np


def find_first_repeat(const int64_t[::1] group, const int32_t[::1] slot, int64_t width):
    """Smallest row whose slot was seen before in its group, or -1; groups are contiguous."""
    cdef int64_t[::1] seen = np.full(width, -1, np.int64)
    cdef Py_ssize_t row, repeat = -1
    with nogil:
        for row in range(group.shape[0]):
            if seen[slot[row]] == group[row]:
                repeat = row
                break
            seen[slot[row]] = group[row]
    return repeat


def sum_points(
    int64_t first, int64_t last, const int64_t[::1] query_starts, const int64_t[::1] starts,
    const int32_t[::1] item, const int32_t[::1] rank, const double[::1] points,
    const double[::1] list_weight, double[::1] total,
):
    """total[item] += list_weight * points[rank] over the lists of a range of queries."""
    cdef int64_t lst, row
    cdef double w
    with nogil:
        for lst in range(query_starts[first], query_starts[last]):
            w = list_weight[lst]
            for row in range(starts[lst], starts[lst + 1]):
                total[item[row]] += w * points[rank[row]]


def sum_affine(
    int64_t first, int64_t last, const int64_t[::1] query_starts, const int64_t[::1] starts,
    const int32_t[::1] item, const double[::1] value, const double[::1] base, const double[::1] slope,
    double[::1] total,
):
    """total[item] += base + slope * value over the lists of a range of queries; without value, base alone."""
    cdef int64_t lst, row
    cdef double a, b
    cdef bint constant = value is None
    with nogil:
        for lst in range(query_starts[first], query_starts[last]):
            a = base[lst]
            b = slope[lst]
            if constant:
                for row in range(starts[lst], starts[lst + 1]):
                    total[item[row]] += a
            else:
                for row in range(starts[lst], starts[lst + 1]):
                    total[item[row]] += a + b * value[row]


def compute_list_statistics(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[::1] value,
    double[::1] low, double[::1] high, double[::1] mean, double[::1] deviation,
):
    """Smallest, largest, mean and standard deviation of each list."""
    cdef int64_t lst, row, a, b
    cdef double lo, hi, v, m, total, spread, off, square
    with nogil:
        for lst in range(first, last):
            a = starts[lst]
            b = starts[lst + 1]
            if a == b:
                continue
            lo = hi = value[a]
            total = 0.0
            for row in range(a, b):
                v = value[row]
                lo = min(lo, v)
                hi = max(hi, v)
                total += v
            m = total / (b - a)
            # dividing by the spread keeps squares from overflowing
            spread = hi - lo if hi > lo else 1.0
            square = 0.0
            for row in range(a, b):
                off = (value[row] - m) / spread
                square += off * off
            low[lst] = lo
            high[lst] = hi
            mean[lst] = m
            deviation[lst] = sqrt(square / (b - a)) * spread


def fractional_ranks(
    int64_t first, int64_t last, const int64_t[::1] starts, const int32_t[::1] rank, double[::1] place
):
    """Positions 1..n in each list, ties sharing their mean."""
    cdef int64_t lst, row, a, b, i, j
    cdef double mean
    with nogil:
        for lst in range(first, last):
            a = starts[lst]
            b = starts[lst + 1]
            i = a
            while i < b:
                j = i + 1
                while j < b and rank[j] == rank[i]:
                    j += 1
                mean = (i + j - 1) * 0.5 - a + 1.0
                for row in range(i, j):
                    place[row] = mean
                i = j
