"""The gain of tuning on held-out queries, and its uncertainty.

Every fold is held out in turn, and the whole search, including the choice of method and weights, runs on the
others. Values on the held-out queries are paired by query with those of the baseline and of the best expert.

They are not independent: each query also influences what the other folds choose, and an unstable choice
repeats the same information. Tests that assume independence find differences in random labels far too often.
So the bootstrap resamples the queries and repeats all choices, fold by fold (all copies of a query stay in
its fold), and the interval is as wide as the spread of the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.evaluate.significance import assess_differences
from podium.evaluate.tuning.score_table import ScoreTable, TuningTask, find_best
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import student_cdf, student_quantile

__all__ = [
    "BEST_EXPERT",
    "ChoiceRule",
    "NestedEstimate",
    "TuningRow",
    "choose_best",
    "choose_simplest",
    "compute_tuning_row",
    "estimate_nested",
]

BEST_EXPERT = "best expert in training"  # a row of the result
CHUNK = 1 << 22  # counts in memory at a time
# from values (row, query) and counts (resample, query) to the row that each resample chooses
ChoiceRule = Callable[[F8, F8], I8]


@dataclass(frozen=True)
class TuningRow:
    """One mean compared with that of the tuned configuration."""

    name: str
    mean: float
    difference: float | None = None  # tuned minus this one
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True, eq=False)
class NestedEstimate:
    """Values on held-out queries, and the mean differences of the bootstrap resamples."""

    tuned: F8  # by query
    others: dict[str, F8]  # name -> by query
    chosen: I8  # selected row of the table, by fold
    spread: dict[str, F8]  # name -> mean difference by round


def choose_best(values: F8, counts: F8) -> I8:
    """For every resample the row with the largest mean."""
    return find_best(counts @ values.T / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def choose_simplest(levels: I8, added: float = 0.0) -> ChoiceRule:
    """The one-standard-error rule: of the rows not worse than the best, those of the lowest level; the best of them.

    A row is not worse if its mean is below that of the best row by at most one standard error of their paired
    difference. Rows of level 0 have the benefit of the doubt: they count as not worse up to 1 + `added` / n standard
    errors with n queries, as if the difference came with `added` more queries on which there is none.

    >>> values = np.array([[0.5, 0.7, 0.6, 0.4], [0.6, 0.6, 0.6, 0.5], [0.9, 0.9, 0.8, 0.7]])
    >>> [int(choose_simplest(np.array(levels))(values, np.ones((1, 4)))[0]) for levels in ([0, 1, 2], [0, 2, 1])]
    [2, 2]
    >>> int(choose_simplest(np.array([0, 1, 2]))(values[:2], np.ones((1, 4)))[0])
    0
    >>> [int(choose_simplest(np.array([0, 1, 2]), added)(values, np.ones((1, 4)))[0]) for added in (10, 30)]
    [2, 0]
    """

    def choose_rows(values: F8, counts: F8) -> I8:
        own_levels = levels[: len(values)]
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
        means = counts @ values.T / total
        best = find_best(means)
        picks = best.copy()
        for row in np.unique(best).tolist():
            at = np.flatnonzero(best == row)
            gap = means[at, row][:, None] - means[at]
            square = counts[at] @ ((values[row] - values) ** 2).T / total[at]
            error = np.sqrt(np.maximum(square - gap * gap, 0.0) / np.maximum(total[at] - 1, 1))
            allowed = error * np.where(own_levels == 0, 1 + added / total[at], 1.0)
            is_near = gap <= allowed + 1e-12
            lowest = np.where(is_near, own_levels, own_levels.max()).min(axis=1, keepdims=True)
            picks[at] = find_best(np.where(is_near & (own_levels == lowest), means[at], -np.inf))
        return picks

    return choose_rows


def estimate_nested(
    table: ScoreTable,
    finalists: Sequence[I8],
    baseline: str,
    rounds: int,
    seed: int,
    choose: ChoiceRule = choose_best,
) -> NestedEstimate:
    """Held-out values of the search, and the same for bootstrap resamples of the queries."""
    problem = table.problem
    each = [table.values[rows, o] for o, rows in enumerate(finalists)]
    once = np.ones((1, len(problem)))
    chosen = _choose_by_fold(problem, each, once, choose)[:, 0]
    tuned = _collect_held_out(problem, each, chosen)
    rivals = {baseline: [table.values[:1, o] for o in range(problem.fold_count)]}
    if len(problem.expert_values):
        best = int(find_best(problem.expert_values.mean(axis=1)))
        name = problem.data.preferences.experts[best]
        rivals[BEST_EXPERT] = [problem.expert_values] * problem.fold_count
        rivals[f"oracle expert ({name})"] = [problem.expert_values[best : best + 1]] * problem.fold_count
    others = {
        name: _collect_held_out(
            problem, matrices, _choose_by_fold(problem, matrices, once, choose_best)[:, 0]
        )
        for name, matrices in rivals.items()
    }
    spread: dict[str, list[F8]] = {name: [] for name in rivals}
    # counts of each query per resample, in blocks whose size depends only on the data
    random, n = np.random.default_rng(seed), len(problem)
    block = max(1, CHUNK // max(n, 1))
    for done in range(0, rounds, block):
        drawn = random.multinomial(n, np.full(n, 1 / n), size=min(block, rounds - done))
        counts = drawn.astype(np.float64)
        ours = _repeat_choices(problem, each, counts, choose)
        for name, matrices in rivals.items():
            spread[name].append(ours - _repeat_choices(problem, matrices, counts, choose_best))
    rows = np.array([finalists[o][c] for o, c in enumerate(chosen.tolist())])
    return NestedEstimate(
        tuned, others, rows, {name: np.concatenate(parts) for name, parts in spread.items()}
    )


def _choose_by_fold(problem: TuningTask, each: Sequence[F8], counts: F8, choose: ChoiceRule) -> I8:
    """For every fold and resample, the row that the queries outside the fold choose."""
    free = [problem.fold != fold for fold in range(len(each))]
    return np.array(
        [
            choose(values[:, f], np.ascontiguousarray(counts[:, f]))
            for values, f in zip(each, free, strict=True)
        ]
    )


def _collect_held_out(problem: TuningTask, each: Sequence[F8], picks: I8) -> F8:
    out = np.empty(len(problem))
    for o, values in enumerate(each):
        inside = problem.fold == o
        out[inside] = values[picks[o], inside]
    return out


def _repeat_choices(problem: TuningTask, each: Sequence[F8], counts: F8, choose: ChoiceRule) -> F8:
    """Mean on held-out queries for every resample, with all choices repeated."""
    total = np.zeros(len(counts))
    for o, (values, picks) in enumerate(
        zip(each, _choose_by_fold(problem, each, counts, choose), strict=True)
    ):
        inside = problem.fold == o
        held = counts[:, inside] @ values[:, inside].T
        total += held[np.arange(len(counts)), picks]
    means: F8 = total / counts.sum(axis=1)
    return means


def compute_tuning_row(estimate: NestedEstimate, name: str, level: float, seed: int) -> TuningRow:
    """The difference from one rival, its interval and p.

    One interval is the difference plus and minus Student's quantile times the bootstrap spread; the other
    holds all values that the randomization test does not reject (few queries cannot show much, however
    similar). The result extends to the wider one on either side, and p is the larger of the two, so the
    interval excludes 0 exactly if p is at most 1 - level. Below six queries no value is rejected at 95 %, and
    the interval is unbounded.
    """
    d = estimate.tuned - estimate.others[name]
    n, mean = len(d), math.fsum(d.tolist()) / len(d)
    there = math.fsum(estimate.others[name].tolist()) / n
    if n < 2:
        return TuningRow(name, there, mean)
    # the bootstrap variance of a mean is too small by the factor (n - 1) / n
    error = float(estimate.spread[name].std()) * math.sqrt(n / (n - 1))
    reach = float(student_quantile(n - 1, (1 + level) / 2)) * error
    p = float(2 * student_cdf(n - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    plain = assess_differences(d[None], test="randomization", level=level, seed=seed)
    low, high = min(mean - reach, float(plain.low[0])), max(mean + reach, float(plain.high[0]))
    return TuningRow(name, there, mean, low, high, max(p, float(plain.p[0])))
