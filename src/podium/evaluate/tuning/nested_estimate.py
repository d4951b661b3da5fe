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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.evaluate.significance import assess_differences
from podium.evaluate.tuning.score_table import ScoreTable, TuningTask, find_best
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import student_cdf, student_quantile

__all__ = ["NestedEstimate", "TuningRow", "compute_tuning_row", "estimate_nested"]

CHUNK = 1 << 22  # counts in memory at a time


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


def estimate_nested(
    table: ScoreTable, finalists: Sequence[I8], baseline: str, rounds: int, seed: int
) -> NestedEstimate:
    """Held-out values of the search, and the same for bootstrap resamples of the queries."""
    problem = table.problem
    each = [table.values[rows, o] for o, rows in enumerate(finalists)]
    once = np.ones((1, len(problem)))
    chosen = np.array([int(_pick_best(problem, v, o, once)[0]) for o, v in enumerate(each)])
    tuned = _collect_held_out(problem, each, chosen)
    rivals = {baseline: [table.values[:1, o] for o in range(problem.fold_count)]}
    if len(problem.expert_values):
        best = int(find_best(problem.expert_values.mean(axis=1)))
        name = problem.data.preferences.experts[best]
        rivals["best expert in training"] = [problem.expert_values] * problem.fold_count
        rivals[f"oracle expert ({name})"] = [problem.expert_values[best : best + 1]] * problem.fold_count
    first = {
        name: np.array([int(_pick_best(problem, v, o, once)[0]) for o, v in enumerate(matrices)])
        for name, matrices in rivals.items()
    }
    others = {name: _collect_held_out(problem, rivals[name], picks) for name, picks in first.items()}
    spread: dict[str, list[F8]] = {name: [] for name in rivals}
    # counts of each query per resample, in blocks whose size depends only on the data
    random, n = np.random.default_rng(seed), len(problem)
    block = max(1, CHUNK // max(n, 1))
    for done in range(0, rounds, block):
        drawn = random.multinomial(n, np.full(n, 1 / n), size=min(block, rounds - done))
        counts = drawn.astype(np.float64)
        ours = _repeat_choices(problem, each, counts)
        for name, matrices in rivals.items():
            spread[name].append(ours - _repeat_choices(problem, matrices, counts))
    rows = np.array([finalists[o][c] for o, c in enumerate(chosen.tolist())])
    return NestedEstimate(
        tuned, others, rows, {name: np.concatenate(parts) for name, parts in spread.items()}
    )


def _pick_best(problem: TuningTask, values: F8, fold: int, counts: F8) -> I8:
    """For every resample, the row that is best on the queries outside the fold."""
    free = problem.fold != fold
    return find_best(counts[:, free] @ values[:, free].T / max(1, len(problem)))


def _collect_held_out(problem: TuningTask, each: Sequence[F8], picks: I8) -> F8:
    out = np.empty(len(problem))
    for o, values in enumerate(each):
        inside = problem.fold == o
        out[inside] = values[picks[o], inside]
    return out


def _repeat_choices(problem: TuningTask, each: Sequence[F8], counts: F8) -> F8:
    """Mean on held-out queries for every resample, with all choices repeated."""
    total = np.zeros(len(counts))
    for o, values in enumerate(each):
        inside = problem.fold == o
        picks = _pick_best(problem, values, o, counts)
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
