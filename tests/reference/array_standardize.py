"""Normalization of columns within each group as numpy expressions."""

from __future__ import annotations

import numpy as np

FLAT = 1e-9  # a spread below this fraction of the largest value is rounding


def standardize_by_group(starts, values, by_range):
    sizes = np.diff(starts)
    filled = np.flatnonzero(sizes)
    begins, group = starts[:-1][filled], np.repeat(np.arange(len(filled)), sizes[filled])
    known = ~np.isnan(values)
    count = np.maximum(np.add.reduceat(known.astype(np.float64), begins, axis=0), 1.0)
    mean = np.add.reduceat(np.where(known, values, 0.0), begins, axis=0) / count
    off = np.where(known, values - mean[group], 0.0)
    if by_range:
        spread = np.maximum.reduceat(off, begins, axis=0) - np.minimum.reduceat(off, begins, axis=0)
    else:
        spread = np.sqrt(np.add.reduceat(off * off, begins, axis=0) / count)
    largest = np.maximum.reduceat(np.where(known, np.abs(values), 0.0), begins, axis=0)
    return np.asarray(off / np.where(spread > FLAT * largest, spread, np.inf)[group])
