"""Distinct values per group, with one array of marks instead of a sort of all rows."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_distinct(first, last, row_starts, order, value, width, sizes):
    """Number of distinct values in each group."""
    seen = np.full(width, -1, np.int64)
    for g in range(first, last):
        count = 0
        for at in range(row_starts[g], row_starts[g + 1]):
            v = value[at if order is None else order[at]]
            if seen[v] != g:
                seen[v] = g
                count += 1
        sizes[g] = count


@njit(cache=True, nogil=True)
def number_distinct(first, last, row_starts, order, value, width, starts, distinct, arrival, pair):
    """Distinct values of each group in order, their first appearance, and the number of each row's pair."""
    seen = np.full(width, -1, np.int64)
    number = np.empty(width, np.int64)
    for g in range(first, last):
        count = 0
        here = distinct[starts[g] : starts[g + 1]]
        for at in range(row_starts[g], row_starts[g + 1]):
            v = value[at if order is None else order[at]]
            if seen[v] != g:
                seen[v] = g
                number[v] = count
                here[count] = v
                count += 1
        here.sort()
        for i in range(count):
            v = here[i]
            arrival[starts[g] + i] = number[v]
            number[v] = starts[g] + i
        for at in range(row_starts[g], row_starts[g + 1]):
            row = at if order is None else order[at]
            pair[row] = number[value[row]]
