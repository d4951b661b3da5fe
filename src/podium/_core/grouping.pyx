"""Distinct values per group, with one array of marks instead of a sort of all rows.

`order` lists the rows by group; it is None where they are already grouped.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from podium._core.sorting cimport count_bits, merge_sort, radix_sort


# values from which sorting by digits is faster than by comparison
cdef enum:
    DIGITS_PAY = 64


def count_distinct(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const int64_t[::1] order,
    const int64_t[::1] value, int64_t width, int64_t[::1] sizes,
):
    """Number of distinct values in each group."""
    cdef int64_t[::1] seen = np.full(width, -1, np.int64)
    cdef int64_t g, at, v, count
    cdef bint grouped = order is None
    with nogil:
        for g in range(first, last):
            count = 0
            for at in range(row_starts[g], row_starts[g + 1]):
                v = value[at if grouped else order[at]]
                if seen[v] != g:
                    seen[v] = g
                    count += 1
            sizes[g] = count


def number_distinct(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const int64_t[::1] order,
    const int64_t[::1] value, int64_t width, const int64_t[::1] starts, int64_t[::1] distinct,
    int32_t[::1] arrival, int64_t[::1] pair,
):
    """Distinct values of each group in order, their first appearance, and the number of each row's pair."""
    cdef int64_t[::1] seen = np.full(width, -1, np.int64)
    cdef int64_t[::1] number = np.empty(width, np.int64)
    cdef int64_t[::1] spare_value = np.empty(width, np.int64)
    cdef int32_t[::1] came = np.empty(width, np.int32), spare_came = np.empty(width, np.int32)
    cdef int64_t g, at, v, i, row, count, begin
    cdef bint grouped = order is None, ascending
    cdef int bits = count_bits(width)
    with nogil:
        for g in range(first, last):
            begin = starts[g]
            count = 0
            ascending = True
            for at in range(row_starts[g], row_starts[g + 1]):
                v = value[at if grouped else order[at]]
                if seen[v] != g:
                    seen[v] = g
                    came[count] = <int32_t>count
                    ascending &= count == 0 or v > distinct[begin + count - 1]
                    distinct[begin + count] = v
                    count += 1
            if not ascending:
                if count < DIGITS_PAY:
                    merge_sort(&distinct[begin], &came[0], count, &spare_value[0], &spare_came[0])
                else:
                    radix_sort(&distinct[begin], &came[0], count, &spare_value[0], &spare_came[0], 0, bits)
            for i in range(count):
                arrival[begin + i] = came[i]
                number[distinct[begin + i]] = begin + i
            for at in range(row_starts[g], row_starts[g + 1]):
                row = at if grouped else order[at]
                pair[row] = number[value[row]]
