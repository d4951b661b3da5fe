"""The assignment problem: rows to columns at the least total cost, by shortest augmenting paths."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

import numpy as np


def assign_rows(
    const double[:, ::1] cost, int64_t[::1] column, double[::1] row_price, double[::1] column_price,
):
    """Assign every row of a square table to its own column; prices u, v have u + v <= cost, = where assigned."""
    cdef int64_t size = cost.shape[0], row, j, k, free, best, before
    cdef double delta, reduced
    # column 0 stands for the row that is being assigned; the columns of the table count from 1
    cdef int64_t[::1] row_of = np.full(size + 1, -1, np.int64), previous = np.zeros(size + 1, np.int64)
    cdef double[::1] distance = np.empty(size + 1), v = np.zeros(size + 1)
    cdef unsigned char[::1] visited = np.empty(size + 1, np.uint8)
    with nogil:
        for row in range(size):
            row_price[row] = 0.0
        for row in range(size):
            for j in range(size + 1):
                distance[j] = INFINITY
                visited[j] = 0
            row_of[0] = row
            free = 0
            while row_of[free] >= 0:
                visited[free] = 1
                k = row_of[free]
                delta = INFINITY
                best = 0
                for j in range(1, size + 1):
                    if visited[j]:
                        continue
                    reduced = cost[k, j - 1] - row_price[k] - v[j]
                    if reduced < distance[j]:
                        distance[j] = reduced
                        previous[j] = free
                    if distance[j] < delta:
                        delta = distance[j]
                        best = j
                for j in range(size + 1):
                    if visited[j]:
                        row_price[row_of[j]] += delta
                        v[j] -= delta
                    else:
                        distance[j] -= delta
                free = best
            while free != 0:
                before = previous[free]
                row_of[free] = row_of[before]
                free = before
        for j in range(1, size + 1):
            column[row_of[j]] = j - 1
            column_price[j - 1] = v[j]
