"""Normalization of columns within each group of rows."""

from __future__ import annotations

import numpy as np

from podium._core import standardize_columns as core
from podium.kernels.dispatch import F8, I8, run_in_threads

__all__ = ["standardize_by_group"]


def standardize_by_group(starts: I8, values: F8, *, by_range: bool) -> F8:
    """Every column minus its group mean, divided by its range or deviation there; NaN and constants become 0.

    Values are first divided by a power of two that brings the largest of their column to about 1, which is
    exact and keeps sums and squares finite.
    """
    size = np.zeros(values.shape[1])
    if len(values):
        size = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    shift = np.minimum(-np.frexp(size)[1].astype(np.int64), 1000)  # 2 ** 1000 is finite
    out = np.empty(values.shape)
    table = np.ascontiguousarray(values, np.float64)
    run_in_threads(
        core.standardize_by_group, starts * max(values.shape[1], 1), starts, table, shift, by_range, out
    )
    return out
