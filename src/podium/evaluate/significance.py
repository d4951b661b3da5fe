"""Significance of differences between two results: paired tests, intervals, correction for multiple tests.

A test takes the differences by query and returns a two-sided p-value for their mean (or median) being 0. An
interval of the mean excludes 0 exactly if its test has a p-value of at most 1 - level: Student's interval
belongs to the t test, the randomization interval to the randomization test. `benchmarks/few_queries.py`
measures coverage.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.evaluate.evaluation import mean_of
from podium.kernels.dispatch import F8
from podium.kernels.distributions import normal_cdf, student_cdf, student_quantile

__all__ = [
    "TESTS",
    "Assessment",
    "PairedOutcome",
    "assess_differences",
    "assess_pairs",
    "holm",
    "mean_interval",
    "paired_t",
    "randomization",
    "resolve_test",
    "wilcoxon",
]

Differences = Sequence[float] | npt.NDArray[Any]
EXACT = 16  # all sign patterns are enumerated up to this many queries
CHUNK = 1 << 22  # numbers in memory at a time
NEAR = 1e-12  # size below which a number or a relative difference is 0 up to rounding


class Assessment(NamedTuple):
    """p-values and intervals of the means, for rows of differences by query."""

    p: F8
    low: F8
    high: F8


def paired_t(differences: Differences) -> float:
    """Student's paired t test; 1 without any difference, NaN for fewer than two queries.

    Equal differences other than 0 have no variance to estimate. Then p is that of the randomization test, 2 /
    2^n for n queries.

    >>> round(paired_t([1.0, 2.0, 3.0]), 4)
    0.0742
    >>> paired_t([0.5, 0.5, 0.5])
    0.25
    """
    return float(_assess_by_student(_check_differences(differences)[None], 0.95).p[0])


def wilcoxon(differences: Differences) -> float:
    """Wilcoxon's signed-rank test; queries without a difference are dropped, 1 if none is left.

    Exact without ties up to 50 differences, otherwise the normal approximation corrected for ties.
    """
    d = _check_differences(differences)
    d = d[d != 0]
    if not len(d):
        return 1.0
    n = len(d)
    size, group, count = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[group]
    positive = float(rank[d > 0].sum())
    lower = min(positive, n * (n + 1) / 2 - positive)
    if n <= 50 and len(size) == n:
        # how many of the 2^n sets of ranks have each sum: exact integers in double precision
        sets = np.zeros(n * (n + 1) // 2 + 1)
        sets[0] = 1.0
        for r in range(1, n + 1):
            sets[r:] += sets[:-r].copy()
        return float(min(1.0, 2 * sets[: int(lower) + 1].sum() / 2.0**n))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((count**3 - count).sum()) / 48
    return float(2 * normal_cdf((lower - n * (n + 1) / 4) / math.sqrt(variance)))


def randomization(differences: Differences, *, rounds: int = 10_000, seed: int = 0) -> float:
    """Fisher's randomization test of the mean: the share of random signs with a mean at least as far from 0.

    All sign patterns are enumerated for up to 16 queries; beyond that `rounds` random ones are drawn, with
    the observed pattern counted among them, so that p is never 0.

    >>> randomization([1.0, 1.0, 1.0])
    0.25
    """
    d = _check_differences(differences)
    return float(_assess_by_signs(d[None], 0.95, rounds, seed).p[0]) if len(d) else 1.0


TESTS: dict[str, Callable[..., float]] = {"t": paired_t, "wilcoxon": wilcoxon, "randomization": randomization}


def resolve_test(name: str) -> str:
    """The name of a paired test; the spelling of earlier versions works for one more release."""
    if name == "randomisation":
        warnings.warn("the test randomisation is now randomization", DeprecationWarning, stacklevel=3)
        return "randomization"
    if name not in TESTS:
        raise ParameterError(f"test is {name!r}; accepted: {', '.join(TESTS)}")
    return name


def mean_interval(
    differences: Differences, *, test: str = "t", level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Interval of the mean difference: the values that the test does not reject; NaN below two queries.

    >>> [round(end, 4) for end in mean_interval([1.0, 2.0, 3.0])]
    [-0.4841, 4.4841]
    """
    d = _check_differences(differences)
    assessment = assess_differences(d[None], test=test, level=level, rounds=rounds, seed=seed)
    return float(assessment.low[0]), float(assessment.high[0])


def assess_differences(
    differences: npt.NDArray[Any],
    *,
    test: str = "t",
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
) -> Assessment:
    """p-value and interval of the mean for each row of differences by query; NaN marks missing queries.

    A row with fewer than two queries has neither. Wilcoxon's test concerns the median, so its accompanying
    interval of the mean is Student's, and the two may disagree about 0.
    """
    test = resolve_test(test)
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    d = np.asarray(differences, np.float64)
    known = ~np.isnan(d)
    out = Assessment(*(np.full(len(d), math.nan) for _ in range(3)))
    for row in range(len(d)) if test == "wilcoxon" else ():
        values = d[row, known[row]]
        out.p[row] = wilcoxon(values) if len(values) > 1 else math.nan
    # rows that lack the same queries share one set of sign patterns
    patterns: dict[bytes, list[int]] = {}
    for i in range(len(d)):
        patterns.setdefault(known[i].tobytes(), []).append(i)
    for rows in patterns.values():
        values = d[rows][:, known[rows[0]]]
        if values.shape[1] < 2:
            continue
        exact = test == "randomization"
        assessment = (
            _assess_by_signs(values, level, rounds, seed) if exact else _assess_by_student(values, level)
        )
        out.low[rows], out.high[rows] = assessment.low, assessment.high
        if test != "wilcoxon":
            out.p[rows] = assessment.p
    return out


class PairedOutcome(NamedTuple):
    """Summary of two results' differences by query."""

    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int


def assess_pairs(differences: F8, **settings: Any) -> list[PairedOutcome]:
    """One outcome per row of differences by query, with the settings of `assess_differences`.

    NaN marks queries where the metric is undefined; values of a query closer than 1e-12 are tied.
    """
    assessed = assess_differences(differences, **settings)
    outcomes = []
    for row, p, low, high in zip(differences, *(column.tolist() for column in assessed), strict=True):
        d = row[~np.isnan(row)]
        near = np.abs(d) <= NEAR
        counts = int((d[~near] > 0).sum()), int(near.sum()), int((d[~near] < 0).sum())
        outcomes.append(PairedOutcome(mean_of(d), low, high, p, *counts))
    return outcomes


# -- Student -------------------------------------------------------------------------------------------------


def _assess_by_student(d: F8, level: float) -> Assessment:
    """The t test and its interval for rows of at least two differences; NaN for shorter rows."""
    n = d.shape[1]
    if n < 2:
        return Assessment(*(np.full(len(d), math.nan) for _ in range(3)))
    # exactly rounded sums do not depend on the order of the queries
    mean = np.array([math.fsum(row) / n for row in d.tolist()])
    error = d.std(axis=1, ddof=1) / math.sqrt(n)
    flat = error <= NEAR * np.abs(mean)
    error[flat] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        p: F8 = 2 * student_cdf(n - 1, -np.abs(mean) / error)
    reach = student_quantile(n - 1, (1 + level) / 2) * error
    p[flat] = np.where(mean[flat] == 0, 1.0, 2.0 ** (1 - n))
    if 2.0 ** (1 - n) > 1 - level:
        reach[flat & (mean != 0)] = math.nan  # the variance is unknown
    return Assessment(p, mean - reach, mean + reach)


# -- random signs --------------------------------------------------------------------------------------------


def _assess_by_signs(d: F8, level: float, rounds: int, seed: int) -> Assessment:
    """The randomization test and the values that it does not reject.

    With a sign pattern s, the mean of s (d - v) is at least as far from 0 as that of d - v if
    |mean(s d) - v mean(s)| >= |mean(d) - v|. That holds for v in an interval around mean(d), unbounded if all
    signs are equal. p(v) is the share of patterns whose interval contains v: the ends are order statistics.
    """
    if rounds < 1:
        raise ParameterError(f"rounds is {rounds}; accepted: whole numbers from 1")
    n = d.shape[1]
    # sign patterns in rows, the observed one first: all of them (up to a common factor) or random ones
    if n <= EXACT:
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1).astype(np.uint8)
    else:
        drawn = np.random.default_rng(seed).integers(0, 256, (rounds + 1, (n + 7) // 8), dtype=np.uint8)
        drawn[0] = 0
        bits = np.unpackbits(drawn, axis=1, count=n)
    signs = 1.0 - 2.0 * bits.astype(np.float64)
    share = signs.mean(axis=1)[:, None]
    rejected = math.floor((1 - level) * len(signs) + 1e-9)  # patterns that may contain a rejected value
    out = Assessment(*(np.full(len(d), math.nan) for _ in range(3)))
    block = max(1, CHUNK // len(signs))
    for first in range(0, len(d), block):
        part = slice(first, first + block)
        mean = np.array([math.fsum(row) / n for row in d[part].tolist()])
        moved = signs @ d[part].T / n - mean * share
        lean = np.where(moved >= 0, share, -share)
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = np.abs(moved) / (1 + lean), np.abs(moved) / (1 - lean)
        whole = np.abs(share[:, 0]) == 1
        up[whole], down[whole] = math.inf, math.inf
        tiny = NEAR * np.abs(d[part]).max(axis=1)  # sums in another order differ in the last bits
        out.p[part] = (np.where(mean < 0, up, down) >= np.abs(mean) - tiny).mean(axis=0)
        kth = len(signs) - 1 - rejected
        out.low[part] = _snap_to_zero(mean - np.partition(down, kth, axis=0)[kth], tiny)
        out.high[part] = _snap_to_zero(mean + np.partition(up, kth, axis=0)[kth], tiny)
    return out


def _snap_to_zero(ends: F8, tiny: F8) -> F8:
    return np.where(np.abs(ends) <= tiny, 0.0, ends)


# -- multiple tests ------------------------------------------------------------------------------------------


def holm(p_values: Sequence[float] | npt.NDArray[Any]) -> F8:
    """Holm's step-down correction: adjusted p-values in the given order; NaN stays and is not counted.

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


def _check_differences(differences: Differences) -> F8:
    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not np.isfinite(d).all():
        raise InputError(
            "the differences are not one finite number per query", remedy="exclude undefined queries"
        )
    return d
