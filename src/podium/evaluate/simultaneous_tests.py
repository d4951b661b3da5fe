"""One result against all others, when it was selected for being the best of them.

The largest of many means is partly the largest by chance, and a test of two results selected by their means
rejects too often. Here all pairs of results form one family: random signs by query, shared by all pairs, give
the null distribution of the largest studentized difference (the single-step maxT procedure of Westfall and
Young, 1993; Romano and Wolf, 2005). Near-duplicate results cost almost no power, as their differences are
correlated, and the smallest p-value depends only on the rounds and not on the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.core.errors import ParameterError
from podium.kernels.dispatch import F8

__all__ = ["Lead", "compute_leads", "estimate_choice_value"]

NEAR = 1e-12  # smaller differences are 0
BLOCK = 1 << 21  # numbers in memory at a time


@dataclass(frozen=True)
class Lead:
    """Lead of a result over another; `low`, `high` and `p` hold simultaneously for all pairs of results."""

    over: str
    difference: float
    low: float
    high: float
    p: float
    wins: int  # queries where it is better
    losses: int


def compute_leads(
    name: str, values: Mapping[str, F8], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> tuple[Lead, ...]:
    """The result `name` against every other one, closest first; values are by query, NaN if undefined.

    An interval excludes 0 exactly if `p` is below 1 - level. A single query allows no inference: interval and
    p are NaN.

    >>> rng = np.random.default_rng(0)
    >>> base = rng.random(50)
    >>> values = {"a": base + 0.2, "b": base, "c": base + 0.01 * rng.standard_normal(50)}
    >>> [(lead.over, lead.p < 0.05) for lead in compute_leads("a", values)]
    [('c', True), ('b', True)]
    """
    if name not in values:
        raise ParameterError(f"there is no result {name!r}; there are {', '.join(values)}")
    names = [name, *(n for n in values if n != name)]
    table = np.array([values[n] for n in names], np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)]
    differences = table[:1] - table[1:]
    differences = np.where(np.abs(differences) <= NEAR, 0.0, differences)
    largest = _sample_largest_ratios(table, rounds, seed)
    # the ratio that must be exceeded for p to be below 1 - level, and the rounds that may reach it
    allowed = math.ceil((1 - level) * (1 + len(largest)) - 1 - 1e-9) - 1
    critical = float(np.sort(largest)[-1 - allowed]) if allowed >= 0 else math.inf
    leads = [_compute_lead(n, d, largest, critical) for n, d in zip(names[1:], differences, strict=True)]
    return tuple(sorted(leads, key=lambda lead: lead.difference))


def _compute_lead(over: str, d: F8, largest: F8, critical: float) -> Lead:
    n, mean = len(d), float(d.mean()) if len(d) else math.nan
    counts = int((d > 0).sum()), int((d < 0).sum())
    norm = math.sqrt(float(d @ d))
    if n < 2:
        return Lead(over, mean, math.nan, math.nan, math.nan, *counts)
    if not norm:
        return Lead(over, 0.0, 0.0, 0.0, 1.0, *counts)
    reach = abs(float(d.sum())) / norm
    p = (1 + int((largest >= reach * (1 - 1e-9)).sum())) / (1 + len(largest))
    error = float(d.std(ddof=1)) / math.sqrt(n)
    # Student's t of a sum of n differences that is `critical` times the root of their sum of squares
    squared = critical * critical
    t = math.inf if squared >= n else critical * math.sqrt((n - 1) / (n - squared))
    half = t * error if error else 0.0
    return Lead(over, mean, mean - half, mean + half, p, *counts)


def _sample_largest_ratios(table: F8, rounds: int, seed: int) -> F8:
    """Per round: the largest ratio of sum to root of sum of squares over all pairs, under random signs."""
    results, n = table.shape
    if n < 2 or results < 2:
        return np.full(1, np.inf)
    first, second = np.triu_indices(results, 1)
    apart = table[first] - table[second]
    # signs do not change sums of squares, so they are computed once
    norm = np.sqrt(np.einsum("pq,pq->p", apart, apart))
    some = norm > NEAR * math.sqrt(n)
    first, second, norm = first[some], second[some], norm[some]
    if not len(norm):
        return np.full(1, np.inf)
    rng = np.random.default_rng(seed)
    # the mean over results cancels in every difference; removing it reduces rounding errors
    centered = np.ascontiguousarray((table - table.mean(axis=0)).T)
    block = max(1, BLOCK // max(n, len(norm)))
    largest = np.empty(rounds)
    for done in range(0, rounds, block):
        size = min(block, rounds - done)
        signs = rng.choice(np.array([-1.0, 1.0]), (size, n))
        sums = signs @ centered
        largest[done : done + size] = np.max(np.abs(sums[:, first] - sums[:, second]) / norm, axis=1)
    return largest


def estimate_choice_value(values: Mapping[str, F8]) -> float:
    """Expected mean when the best of these results is selected: each query is scored by the result that is
    best on the others. NaN for fewer than two queries.

    The mean of the best result itself is biased upward, as the largest of many means.

    >>> estimate_choice_value({"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0])})
    0.0
    """
    table = np.array(list(values.values()), np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)]
    if table.shape[1] < 2:
        return math.nan
    without = table.sum(axis=1, keepdims=True) - table
    return float(np.take_along_axis(table, without.argmax(axis=0)[None], axis=0).mean())
