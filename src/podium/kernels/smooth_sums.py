"""Sums over all pairs of a smooth function of their difference, in time and memory linear in the points.

The functions are those of the logistic distribution. Their nearest singularities lie pi away from the real
axis, so on a cell of one unit a Chebyshev series of `TERMS` terms is exact to rounding (each term reduces the
error by 12.6), in the target and in the source. Sources are merged by cell as moments, moments become series
of nearby cells, and series are summed at the targets; beyond `REACH` cells the functions equal their limits
to rounding.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from podium._core import smooth_sums as core
from podium.kernels.dispatch import F8, I8

__all__ = ["HALF_TANH", "LOGISTIC_SLOPE", "LOG_COSH", "near_cells", "sums", "within_sets"]

TERMS, REACH = 16, 40
# tanh(d / 2) / 2; its derivative p (1 - p); and 2 log(2 cosh(d / 2))
HALF_TANH, LOGISTIC_SLOPE, LOG_COSH = range(3)


@cache
def near_cells(kind: int) -> F8:
    """Tables from the moments of a cell to the series of another, by their distance from -REACH to REACH."""
    # Chebyshev nodes, and the matrix from values there to coefficients
    angle = (np.arange(TERMS) + 0.5) * np.pi / TERMS
    t = np.cos(angle)
    to_series = np.cos(np.outer(np.arange(TERMS), angle)) * 2 / TERMS
    to_series[0] /= 2
    # the distance of the cells plus that of places within them, which run from -1/2 to 1/2
    d = np.arange(-REACH, REACH + 1)[:, None, None] + (t[:, None] - t) / 2
    z = np.exp(-np.abs(d))
    values = (np.tanh(d / 2) / 2, z / (1 + z) ** 2, np.abs(d) + 2 * np.log1p(z))[kind]
    # einsum, not @: a fixed summation order, independent of the number of threads
    return np.ascontiguousarray(np.einsum("ki,dij,mj->dkm", to_series, values, to_series))


def sums(kind: int, source: F8, mass: F8, target: F8) -> F8:
    """For every target: the sum over sources of their mass times the function of target minus source."""
    out = np.zeros(len(target))
    core.sums(kind, near_cells(kind), source, mass, target, np.ones(len(target)), out)
    return out


def within_sets(kind: int, starts: I8, item: I8, weight: F8, x: F8, mass: F8) -> F8:
    """By item: over the sets that hold it, their weight times the sum over the set's items (with itself)."""
    out = np.zeros(len(x))
    core.within_sets(kind, near_cells(kind), starts, item, weight, x, mass, out)
    return out
