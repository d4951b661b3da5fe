"""Normalization of columns within each group of rows."""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import F8, I8, is_large, run_in_threads

__all__ = ["standardize_by_group"]

FLAT = 1e-9  # a spread below this fraction of the largest value is rounding


def standardize_by_group(starts: I8, values: F8, *, by_range: bool) -> F8:
    """Every column minus its group mean, divided by its range or deviation there; NaN and constants become 0.

    Values are first divided by a power of two that brings the largest of their column to about 1, which is
    exact and keeps sums and squares finite.
    """
    size = np.zeros(values.shape[1])
    if len(values):
        size = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    shift = np.minimum(-np.frexp(size)[1].astype(np.int64), 1000)  # 2 ** 1000 is finite
    if is_large(values.size):
        from podium.kernels.compiled.standardize_columns import standardize_by_group as kernel

        out = np.empty_like(values)
        run_in_threads(kernel, starts, starts, np.ascontiguousarray(values), shift, by_range, out)
        return out
    return _standardize_by_group(starts, np.ldexp(values, shift), by_range)


def _standardize_by_group(starts: I8, values: F8, by_range: bool) -> F8:
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
