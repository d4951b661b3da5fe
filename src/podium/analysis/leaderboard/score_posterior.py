"""The posterior of scores given votes, for the choice of comparisons: means and variances.

Scores have a normal prior; the means are the most likely scores of a Bradley-Terry model. Up to `EXACT` items the
covariance matrix is that of Laplace's approximation; beyond, only variances are computed, by belief propagation over
the compared pairs, in memory proportional to their number. On a tree of comparisons belief propagation is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.contest_counts import Contests
from podium.kernels.contest_scores import fit_contests
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.distributions import logistic

__all__ = [
    "EXACT",
    "SPREAD",
    "ScorePosterior",
    "build_prior",
    "center_posterior",
    "fit_posterior",
    "propagate_variances",
]

EXACT = 300  # items up to which the whole covariance matrix is kept
# standard deviation of the scores' prior (log odds); a spread estimated from the votes chose no better pairs, whether
# the true one was 1, 2, 3 or 6
SPREAD = 2.0
SMALLEST = 1e-12  # variance
ROUNDS = 4  # of messages; each reaches one comparison further
TOLERANCE = 1e-4  # of the scores: far below their errors


class ScorePosterior(NamedTuple):
    """Means and variances of the scores; the covariance matrix, measured from the mean score, of few items."""

    means: F8
    variances: F8
    covariance: F8 | None = None


def build_prior(size: int) -> ScorePosterior:
    """What is known without votes."""
    if size > EXACT:
        return ScorePosterior(np.zeros(size), np.full(size, SPREAD**2))
    return center_posterior(np.zeros(size), SPREAD**2 * np.eye(size))


def fit_posterior(contests: Contests, start: F8 | None = None) -> ScorePosterior:
    """The posterior of the items of one query; `start` are approximate means."""
    size = int(contests.starts[-1])
    means = fit_contests(contests, l2=SPREAD**-2, start=start, tolerance=TOLERANCE).scores
    first, second = contests.first, contests.second
    chance = logistic(means[first] - means[second])
    information = (contests.won + contests.lost + contests.tied) * chance * (1 - chance)
    if size > EXACT:
        return ScorePosterior(means, propagate_variances(first, second, information, size, SPREAD**-2))
    hessian = np.eye(size) * SPREAD**-2
    for a, b, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
        np.add.at(hessian, (a, b), sign * information)
    return center_posterior(means, np.asarray(np.linalg.inv(hessian), np.float64))


def center_posterior(means: F8, covariance: F8) -> ScorePosterior:
    """A posterior with errors measured from the mean score: only the prior knows the level of all scores."""
    covariance = covariance - covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1)[:, None]
    return ScorePosterior(means, np.maximum(covariance.diagonal(), SMALLEST), covariance)


def propagate_variances(
    first: I4 | I8, second: I4 | I8, information: F8, size: int, precision: float, rounds: int = ROUNDS
) -> F8:
    """Variances of scores by Gaussian belief propagation over pairs with the given information.

    The information that a pair gives an item is limited by that of its votes on the difference, and by that of the
    opponent's other pairs on the opponent. With `rounds` above the diameter of a tree the variances are exact.
    """

    def sum_messages() -> F8:
        own = np.bincount(first, to_first, size) + np.bincount(second, to_second, size)
        return np.asarray(precision + own, np.float64)

    to_first, to_second = information.copy(), information.copy()
    for _ in range(rounds):
        known = sum_messages()
        others_of_first, others_of_second = known[first] - to_first, known[second] - to_second
        to_first = information * others_of_second / (information + others_of_second)
        to_second = information * others_of_first / (information + others_of_first)
    return 1 / sum_messages()
