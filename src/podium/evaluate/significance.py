"""Is a difference between two results more than luck? Paired tests, an interval, a correction for many tests.

A test takes the differences by query and returns a two-sided p-value for their mean (or median) being 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, ParameterError
from podium.kernels.dispatch import F8

__all__ = [
    "TESTS",
    "bootstrap_interval",
    "bootstrap_intervals",
    "holm",
    "paired_t",
    "randomisation",
    "wilcoxon",
]

Differences = Sequence[float] | npt.NDArray[Any]
EXACT = 16  # up to so many non-zero differences all sign patterns are tried
CHUNK = 1 << 22  # random numbers held at a time


def paired_t(differences: Differences) -> float:
    """Student's paired t test; 1 when there is no difference anywhere, NaN for fewer than two queries.

    >>> round(paired_t([1.0, 2.0, 3.0]), 4)
    0.0742
    """
    d = _checked(differences)
    n = len(d)
    if n < 2:
        return math.nan
    spread = float(d.std(ddof=1)) / math.sqrt(n)
    mean = math.fsum(d.tolist()) / n
    if spread == 0:
        return 1.0 if mean == 0 else 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(n - 1, -abs(mean) / spread))


def wilcoxon(differences: Differences) -> float:
    """Wilcoxon's signed-rank test; queries without a difference are left out, 1 when none is left.

    Exact without ties up to 50 differences, else by the normal approximation with ties accounted for.
    """
    d = _checked(differences)
    d = d[d != 0]
    if not len(d):
        return 1.0
    from scipy import stats

    tied = len(np.unique(np.abs(d))) < len(d)
    method = "exact" if len(d) <= 50 and not tied else "approx"
    return float(stats.wilcoxon(d, method=method).pvalue)


def randomisation(differences: Differences, *, rounds: int = 10_000, seed: int = 0) -> float:
    """Fisher's randomisation test on the mean: how often random signs give a mean as far from 0.

    All sign patterns are tried for up to 16 non-zero differences; beyond that `rounds` random ones, with the
    observed pattern counted among them, so that p is never 0.

    >>> randomisation([1.0, 1.0, 1.0])
    0.25
    """
    d = _checked(differences)
    d = d[d != 0]
    if not len(d):
        return 1.0
    if rounds < 1:
        raise ParameterError(f"rounds is {rounds}; accepted: whole numbers from 1")
    observed = abs(math.fsum(d.tolist()))
    reach = observed - 1e-12 * float(np.abs(d).sum())  # sums in another order differ in the last bits
    if len(d) <= EXACT:
        sums = np.zeros(1)
        for value in d.tolist():
            sums = np.concatenate((sums + value, sums - value))
        return float((np.abs(sums) >= reach).mean())
    hits = sum(
        int((np.abs(s) >= reach).sum())
        for s in _in_chunks(rounds, len(d), seed, lambda r, n: _random_signs(r, n, d))
    )
    return (hits + 1) / (rounds + 1)


def bootstrap_interval(
    differences: Differences, *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the mean difference over queries drawn with replacement; NaN below two queries."""
    low, high = bootstrap_intervals(_checked(differences)[None], level=level, rounds=rounds, seed=seed)
    return float(low[0]), float(high[0])


def bootstrap_intervals(
    differences: npt.NDArray[Any], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> tuple[F8, F8]:
    """The same for many rows of differences by query at once, all over the same draws of queries.

    NaN marks queries that a row leaves out. The interval of a row with fewer than two queries is NaN: one query
    says nothing of others.
    """
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    if rounds < 1:
        raise ParameterError(f"rounds is {rounds}; accepted: whole numbers from 1")
    d = np.asarray(differences, np.float64)
    known = ~np.isnan(d)
    low, high = np.full(len(d), math.nan), np.full(len(d), math.nan)
    patterns: dict[bytes, list[int]] = {}
    for i in range(len(d)):
        patterns.setdefault(known[i].tobytes(), []).append(i)
    for rows in patterns.values():
        values = d[rows][:, known[rows[0]]]
        if values.shape[1] > 1:
            low[rows], high[rows] = _percentiles(values, level, rounds, seed)
    return low, high


def _percentiles(d: F8, level: float, rounds: int, seed: int) -> F8:
    """How often each query is drawn is a matrix, and the means of all rows are one product with it."""
    n = d.shape[1]

    def means(rng: np.random.Generator, k: int) -> F8:
        drawn = rng.integers(0, n, (k, n)) + n * np.arange(k)[:, None]
        counts = np.bincount(drawn.reshape(-1), minlength=k * n).reshape(k, n)
        product: F8 = counts.astype(np.float64) @ d.T / n
        return product

    whole = np.concatenate(_in_chunks(rounds, n, seed, means))
    bounds: F8 = np.quantile(whole, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return bounds


def holm(p_values: Sequence[float] | npt.NDArray[Any]) -> F8:
    """Holm's step-down correction: adjusted p-values in the order given; NaN stays and does not count.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    adjusted = p.copy()
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factor = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factor), 1.0) if len(order) else p[order]
    return adjusted


TESTS: dict[str, Callable[..., float]] = {"t": paired_t, "wilcoxon": wilcoxon, "randomisation": randomisation}


def _checked(differences: Differences) -> F8:
    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not np.isfinite(d).all():
        raise InputError(
            "the differences are not one finite number per query", remedy="leave undefined queries out"
        )
    return d


def _random_signs(rng: np.random.Generator, patterns: int, d: F8) -> F8:
    bits = np.unpackbits(
        rng.integers(0, 256, (patterns, (len(d) + 7) // 8), dtype=np.uint8), axis=1, count=len(d)
    )
    sums: F8 = 2.0 * (bits @ d) - d.sum()
    return sums


def _in_chunks(rounds: int, n: int, seed: int, draw: Callable[[np.random.Generator, int], F8]) -> list[F8]:
    """Draws in blocks whose size depends on the data alone, so that the same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    block = max(1, CHUNK // max(n, 1))
    return [draw(rng, min(block, rounds - done)) for done in range(0, rounds, block)]
