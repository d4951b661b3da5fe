"""Bootstrap resamples of votes, and the scores fitted to them.

A round is generated from its own key (seed and round number), so that rounds can be distributed over threads
and each can be reproduced alone. Single votes are resampled by pair and outcome: the count of a group of n
equal votes follows a Poisson distribution with mean n (the total then varies by its square root). Votes of
unequal weights are resampled as the number of equal votes, each of one weight, whose total has the same mean
and variance. Clusters, such as all votes of an expert, are resampled as a whole, with replacement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium._core import bootstrap as core
from podium.kernels.contest_counts import Contests
from podium.kernels.contest_models import LOGIT
from podium.kernels.contest_scores import ContestSolution, compute_hessian, fit_contests
from podium.kernels.dispatch import B1, F8, I8, THREAD_WORK, U1, run_in_threads
from podium.kernels.distributions import log_gamma, poisson_cdf

__all__ = [
    "Clusters",
    "PoissonTables",
    "Squares",
    "build_poisson_tables",
    "fit_resamples",
    "resample_contests",
    "sample_cluster_counts",
]

U8 = npt.NDArray[np.uint64]

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of splitmix64
STEPS, SHRINK = 25, 0.9  # maximum number of steps per round, and the required ratio of consecutive steps
# largest count of equal votes in the table, its length, and the guides into it
FEW, WIDE, GUIDES = (16, 64, 256)


class Clusters(NamedTuple):
    """Units resampled as a whole: cluster c adds the rows starts[c] .. starts[c + 1] to contest pairs."""

    starts: I8
    pair: I8
    won: F8
    lost: F8
    tied: F8


class Squares(NamedTuple):
    """By pair of the contests and outcome, the sum of the squared weights of the single votes."""

    won: F8
    lost: F8
    tied: F8


class PoissonTables(NamedTuple):
    """Poisson distributions: mean, CDF and probability at the floor of the mean, and weight per vote.

    For integer means below FEW: the CDF at 0, 1, 2 ..., and for each fraction of 1 / GUIDES where to start
    searching.
    """

    mean: F8
    upto: F8
    peak: F8
    unit: F8
    table: F8
    guide: U1


def build_poisson_tables(totals: F8, squares: F8 | None = None) -> PoissonTables:
    """Distributions for vote groups with these total weights and, unless all are 1, sums of squares."""
    unit = np.ones(len(totals))
    if squares is not None:
        # n votes of weight u have the total n u and the squares n u^2, so u is their ratio
        np.divide(squares, totals, out=unit, where=totals > 0)
    counts = totals / unit

    few = np.arange(FEW)[:, None]
    table = poisson_cdf(np.arange(WIDE), np.maximum(few, 1))
    # a mean of 0 draws no votes, and a last column of 1 ends every search
    table[0], table[:, -1] = 1.0, 1.0
    guide = np.array([np.searchsorted(row, np.arange(GUIDES) / GUIDES) for row in table], np.uint8)
    upto, peak = np.ones(len(counts)), np.ones(len(counts))
    many = np.flatnonzero(~_has_table(counts))
    mean, which = np.unique(counts[many], return_inverse=True)
    begin = np.floor(mean)
    upto[many] = poisson_cdf(begin, mean)[which]
    peak[many] = np.exp(begin * np.log(mean) - mean - log_gamma(begin + 1))[which]
    return PoissonTables(counts, upto, peak, unit, table, guide)


def _has_table(mean: F8) -> B1:
    """Which means have a row in the table."""
    return np.asarray((mean < FEW) & (mean == np.floor(mean)), np.bool_)


def derive_round_keys(seed: int, rounds: int) -> U8:
    """One key for every round."""
    begin = _mix_bits(np.array([seed % 2**64], np.uint64))
    return _mix_bits(begin + np.arange(1, rounds + 1, dtype=np.uint64) * np.uint64(GOLDEN))


def _mix_bits(x: U8) -> U8:
    """A number each of whose bits depends on all bits of x (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    return x ^ (x >> np.uint64(31))


def _sample_uniform(key: U8, count: int) -> F8:
    """`count` numbers between 0 and 1 for a round."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    # the upper 53 bits, as many as a double holds exactly
    return np.asarray((_mix_bits(key + steps) >> np.uint64(11)) * 2.0**-53, np.float64)


def sample_cluster_counts(key: U8, clusters: int) -> I8:
    """How often each cluster is drawn in a round; `key` is an array of one."""
    drawn = (_sample_uniform(key, clusters) * clusters).astype(np.int64)
    # a number just below 1 times the number of clusters can round up to it
    return np.bincount(np.minimum(drawn, clusters - 1), minlength=clusters)


def _sample_poisson(key: U8, law: PoissonTables) -> F8:
    """Vote weights with Poisson counts: looked up in the table, or searched up or down from the mean."""
    uniform, tabled = _sample_uniform(key, len(law.mean)), _has_table(law.mean)
    count = np.floor(law.mean)
    few = np.flatnonzero(tabled)
    row = law.mean[few].astype(np.int64)
    at = law.guide[row, (uniform[few] * GUIDES).astype(np.int64)].astype(np.int64)
    while (late := uniform[few] > law.table[row, at]).any():
        at += late
    count[few] = at
    # inversion from the mode: the expected number of steps grows only with the standard deviation
    upto, peak, many = law.upto.copy(), law.peak.copy(), ~tabled
    rising = uniform > upto
    left = np.flatnonzero(~rising & many)
    while len(left := left[(count[left] > 0) & (uniform[left] <= upto[left] - peak[left])]):
        upto[left] -= peak[left]
        peak[left] *= count[left] / law.mean[left]
        count[left] -= 1
    left = np.flatnonzero(rising & many)
    # rounding can leave the sum of all probabilities below the number drawn: end where they vanish
    while len(left := left[(uniform[left] > upto[left]) & (peak[left] > 1e-300)]):
        count[left] += 1
        peak[left] *= law.mean[left] / count[left]
        upto[left] += peak[left]
    return count * law.unit


def resample_contests(contests: Contests, draw: PoissonTables | Clusters, key: U8) -> Contests:
    """The contests of one query with the resampled votes of one round; `key` is an array of one."""
    pairs = len(contests.first)
    if isinstance(draw, PoissonTables):
        won, lost, tied = _sample_poisson(key, draw).reshape(3, pairs)
    else:
        often = np.repeat(sample_cluster_counts(key, len(draw.starts) - 1), np.diff(draw.starts))
        columns = (draw.won, draw.lost, draw.tied)
        drawn = (np.bincount(draw.pair, weights=often * c, minlength=pairs) for c in columns)
        won, lost, tied = (np.asarray(c, np.float64) for c in drawn)
    return contests._replace(won=won, lost=lost, tied=tied)


def fit_resamples(
    contests: Contests,
    solution: ContestSolution,
    inverse: F8,
    draw: PoissonTables | Clusters,
    *,
    rounds: int,
    seed: int = 0,
    tolerance: float = 1e-5,
) -> F8:
    """Scores of the items of one query, one row per bootstrap resample.

    `inverse` is the inverse Hessian at the solution. Steps with this matrix, scaled on both sides by the
    change of the diagonal, lead from the solution to that of a round; they end when the remaining steps,
    extrapolated at the observed rate, sum to less than `tolerance`. Where they do not shrink fast enough (for
    example when an item lost all its wins) the round is solved from scratch.
    """
    size = int(contests.starts[-1])
    scores = np.tile(solution.scores, (rounds, 1))
    done = np.zeros(rounds, np.bool_)
    key = derive_round_keys(seed, rounds)
    model = solution.model
    # the fixed matrix needs one component and the plain logistic model with a ridge; else refit below
    whole = bool(size) and not solution.component.any()
    if whole and model.kind == LOGIT and model.shape == 1 and contests.side is None:
        diagonal = compute_hessian(contests, solution, 0).diagonal()[:size]
        matrix = _center_inverse(inverse[:size, :size]) * np.sqrt(np.outer(diagonal, diagonal))
        work = np.arange(rounds + 1) * (len(contests.first) + len(matrix) ** 2)
        met = (contests.first, contests.second, model.half, model.l2, matrix)
        stop = (tolerance, STEPS, SHRINK)
        fit = core.fit_vote_resamples if isinstance(draw, PoissonTables) else core.fit_cluster_resamples
        # marks the rounds that converged in `done`
        run_in_threads(fit, work, *met, *draw, key, *stop, scores, done)
    todo = np.flatnonzero(~done)

    def refit_range(first: int, last: int) -> None:
        for r in todo[first:last].tolist():
            resample = resample_contests(contests, draw, key[r : r + 1])
            scores[r] = refit_contests(resample, solution, tolerance).scores

    # Newton's method in threads: most of the time is spent outside Python
    run_in_threads(refit_range, np.arange(len(todo) + 1) * THREAD_WORK)
    return scores


def _center_inverse(inverse: F8) -> F8:
    """The inverse restricted to scores with mean 0; the level is determined by the prior alone."""
    mean = inverse.mean(axis=0)
    return np.asarray(inverse - mean - mean[:, None] + mean.mean(), np.float64)


def refit_contests(contests: Contests, solution: ContestSolution, tolerance: float) -> ContestSolution:
    """Fit other votes on the same items with the same model, starting from its solution."""
    model = solution.model
    name, ties = NAMES[model.kind]
    return fit_contests(
        contests,
        model=name,
        ties=ties or ("half" if model.half else "ignore"),
        l2=model.l2,
        shape=model.shape,
        start=solution.scores,
        tolerance=min(tolerance, 1e-3),
    )


NAMES = (
    ("bradley_terry", ""),
    ("thurstone", ""),
    ("bradley_terry", "davidson"),
    ("bradley_terry", "rao_kupper"),
)
