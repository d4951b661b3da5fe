"""Sparse matrices by rows: building from entries, products with dense matrices and with themselves."""

from libc.stdint cimport int64_t

import numpy as np


def compress_rows(
    const double[::1] values, const int64_t[::1] rows, const int64_t[::1] columns, int64_t height, int64_t width,
):
    """Offsets by row, columns and values; entries of one cell are added in the order in which they are given."""
    cdef Py_ssize_t count = values.shape[0], i, k, filled = 0
    cdef int64_t row, column, begin
    # two stable counting sorts: by column, then by row
    by_column_array, order_array = np.empty(count, np.int64), np.empty(count, np.int64)
    offsets_array = np.zeros(height + 1, np.int64)
    cdef int64_t[::1] by_column = by_column_array, order = order_array, offsets = offsets_array
    cdef int64_t[::1] free = np.zeros(max(height, width) + 1, np.int64)
    out_columns_array, out_array = np.empty(count, np.int64), np.empty(count)
    cdef int64_t[::1] out_columns = out_columns_array
    cdef double[::1] out = out_array
    with nogil:
        for i in range(count):
            free[columns[i] + 1] += 1
        for i in range(width):
            free[i + 1] += free[i]
        for i in range(count):
            by_column[free[columns[i]]] = i
            free[columns[i]] += 1
        free[:] = 0
        for i in range(count):
            free[rows[i] + 1] += 1
        for i in range(height):
            free[i + 1] += free[i]
        for k in range(count):
            i = by_column[k]
            order[free[rows[i]]] = i
            free[rows[i]] += 1
        k = 0
        for row in range(height):
            begin = filled
            while k < count and rows[order[k]] == row:
                column = columns[order[k]]
                if filled > begin and out_columns[filled - 1] == column:
                    out[filled - 1] += values[order[k]]
                else:
                    out_columns[filled] = column
                    out[filled] = values[order[k]]
                    filled += 1
                k += 1
            offsets[row + 1] = filled
    return offsets_array, out_columns_array[:filled].copy(), out_array[:filled].copy()


def multiply_dense(
    const int64_t[::1] offsets, const int64_t[::1] columns, const double[::1] values, const double[:, ::1] dense,
    double[:, ::1] out,
):
    """Add the product with a dense matrix to `out`."""
    cdef Py_ssize_t row, k, j, width = dense.shape[1]
    cdef double value
    cdef int64_t column
    with nogil:
        for row in range(offsets.shape[0] - 1):
            for k in range(offsets[row], offsets[row + 1]):
                value = values[k]
                column = columns[k]
                for j in range(width):
                    out[row, j] += value * dense[column, j]


def multiply_own_transpose(
    const int64_t[::1] offsets, const int64_t[::1] columns, const double[::1] left, const double[::1] right,
    double[:, ::1] out,
):
    """Add to `out`, for all pairs of columns, the sum over rows of left times right: two arrays of one layout."""
    cdef Py_ssize_t row, k, j
    cdef double value
    cdef int64_t column
    with nogil:
        for row in range(offsets.shape[0] - 1):
            for k in range(offsets[row], offsets[row + 1]):
                value = left[k]
                column = columns[k]
                for j in range(offsets[row], offsets[row + 1]):
                    out[column, columns[j]] += value * right[j]
