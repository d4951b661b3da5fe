"""Normalization of columns within each group, for a range of groups."""

from __future__ import annotations

import numpy as np
from numba import njit

FLAT = 1e-9


@njit(cache=True, nogil=True)
def standardize_by_group(first, last, starts, values, shift, by_range, out):
    """See `podium.kernels.standardize_columns`; rows are visited in memory order."""
    width = values.shape[1]
    unit = np.empty(width)
    for c in range(width):
        unit[c] = np.ldexp(1.0, shift[c])
    for g in range(first, last):
        a, b = starts[g], starts[g + 1]
        mean, count, largest = np.zeros(width), np.zeros(width), np.zeros(width)
        for i in range(a, b):
            for c in range(width):
                x = values[i, c] * unit[c]
                if x == x:
                    mean[c] += x
                    count[c] += 1.0
                    largest[c] = max(largest[c], abs(x))
        for c in range(width):
            mean[c] /= max(count[c], 1.0)
        low, high, square = np.zeros(width), np.zeros(width), np.zeros(width)
        for i in range(a, b):
            for c in range(width):
                x = values[i, c] * unit[c]
                off = x - mean[c] if x == x else 0.0
                out[i, c] = off
                low[c], high[c] = min(low[c], off), max(high[c], off)
                square[c] += off * off
        for c in range(width):
            spread = high[c] - low[c] if by_range else np.sqrt(square[c] / max(count[c], 1.0))
            low[c] = 1.0 / spread if spread > FLAT * largest[c] else 0.0
        for i in range(a, b):
            for c in range(width):
                out[i, c] *= low[c]
