"""Bradley-Terry with covariates: log odds of a vote are the difference of two scores plus effects of the vote.

Votes are not merged, because each has covariates of its own. Unknowns are the scores, then the effects; matrices
over them are dense.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I8, count_threads
from podium.kernels.distributions import logistic

__all__ = [
    "ContextualFit",
    "ContextualVotes",
    "add_up_by_cluster",
    "add_up_gradients",
    "bootstrap_contextual",
    "compute_logits",
    "compute_products",
    "fit_contextual",
]

STEPS = 100  # of Newton's method, far more than it needs
TOLERANCE = 1e-9  # of the gradient, relative to the votes
HALVINGS = 30
CLOSE = 0.005  # standard errors: a bootstrap round ends with a smaller step
ROUND_STEPS = 12  # of a round with the Hessian of all votes, before it is fitted with its own


class ContextualVotes(NamedTuple):
    """Votes on items 0 .. size - 1: the share that `first` got, the weight, and a column per covariate."""

    size: int
    first: I8
    second: I8
    outcome: F8
    weight: F8
    covariates: F8  # votes x covariates

    def select(self, rows: I8) -> ContextualVotes:
        """Some of the votes."""
        columns = (self.first[rows], self.second[rows], self.outcome[rows], self.weight[rows])
        return ContextualVotes(self.size, *columns, self.covariates[rows])

    @property
    def unknowns(self) -> int:
        """Number of scores and effects."""
        return self.size + int(self.covariates.shape[1])


class ContextualFit(NamedTuple):
    """Scores and effects with the Hessian of the penalized negative log likelihood, and what is left of each vote."""

    scores: F8
    effects: F8
    hessian: F8
    residuals: F8  # per vote: its share minus the expected one, without the weight
    converged: bool


def compute_logits(votes: ContextualVotes, scores: F8, effects: F8) -> F8:
    """Log odds of `first` by vote."""
    return np.asarray(scores[votes.first] - scores[votes.second] + votes.covariates @ effects, np.float64)


def add_up_gradients(votes: ContextualVotes, values: F8) -> F8:
    """Sum over the votes of a value times the vote's row of the design: 1 for first, -1 for second, covariates."""
    by_item = np.bincount(votes.first, values, votes.size) - np.bincount(votes.second, values, votes.size)
    return np.concatenate((by_item, votes.covariates.T @ values))


def add_up_by_cluster(
    votes: ContextualVotes, values: F8, cluster: I8, count: int, *, squared: bool = False
) -> F8:
    """`add_up_gradients` for each of `count` clusters of votes; `squared` squares the rows of the design."""
    n, k = votes.size, votes.covariates.shape[1]
    total = np.empty((count, n + k))
    sums = [np.bincount(cluster * n + side, values, count * n) for side in (votes.first, votes.second)]
    total[:, :n] = (sums[0] + sums[1] if squared else sums[0] - sums[1]).reshape(count, n)
    for column in range(k):
        x = votes.covariates[:, column]
        total[:, n + column] = np.bincount(cluster, values * (x * x if squared else x), count)
    return total


def compute_products(votes: ContextualVotes, values: F8) -> F8:
    """The sum over the votes of a value times the outer product of the vote's row of the design."""
    n, k = votes.size, votes.covariates.shape[1]
    table = np.bincount(votes.first * n + votes.second, values, n * n).reshape(n, n)
    total = np.empty((n + k, n + k))
    met = table + table.T
    # rows of the design are 1 and -1, so their products sum to the Laplacian of the graph of votes
    total[:n, :n] = np.diag(met.sum(axis=1)) - met
    for column in range(k):
        weighted = values * votes.covariates[:, column]
        total[:, n + column] = total[n + column] = add_up_gradients(votes, weighted)
    return total


def fit_contextual(
    votes: ContextualVotes, *, l2: float, ridge: float, start: F8 | None = None, offset: F8 | None = None
) -> ContextualFit:
    """Most likely scores and effects, with l2 / 2 times the squared scores and ridge / 2 times the squared effects.

    `offset` adds known log odds to each vote. Newton's method on a convex function; a step that does not lower
    it is halved.
    """
    n, k = votes.size, votes.covariates.shape[1]
    penalty = np.concatenate((np.full(n, l2), np.full(k, ridge)))
    unknowns = np.zeros(n + k)
    unknowns[:n] = 0.0 if start is None else start
    bound = TOLERANCE * max(float(votes.weight.sum()), 1.0)
    known = np.zeros(len(votes.first)) if offset is None else offset
    value, logits = _evaluate(votes, penalty, unknowns, known)
    converged = False
    for _ in range(STEPS):
        chance = logistic(logits)
        gradient = penalty * unknowns - add_up_gradients(votes, votes.weight * (votes.outcome - chance))
        hessian = compute_products(votes, votes.weight * chance * (1 - chance))
        hessian[np.diag_indices(n + k)] += penalty
        if np.abs(gradient).max(initial=0.0) <= bound:
            converged = True
            break
        step = np.linalg.solve(hessian, gradient)
        for _ in range(HALVINGS):
            new_value, new_logits = _evaluate(votes, penalty, unknowns - step, known)
            if new_value <= value:
                break
            step /= 2
        else:
            break  # rounding prevents any further gain
        unknowns, value, logits = unknowns - step, new_value, new_logits
    return ContextualFit(unknowns[:n], unknowns[n:], hessian, votes.outcome - chance, converged)


def _evaluate(votes: ContextualVotes, penalty: F8, unknowns: F8, offset: F8) -> tuple[float, F8]:
    """The penalized negative log likelihood, and the log odds."""
    logits = compute_logits(votes, unknowns[: votes.size], unknowns[votes.size :]) + offset
    losses = np.logaddexp(0.0, logits) - votes.outcome * logits
    return float(votes.weight @ losses + 0.5 * penalty @ unknowns**2), logits


def bootstrap_contextual(
    votes: ContextualVotes,
    fit: ContextualFit,
    rounds: int,
    *,
    l2: float,
    ridge: float,
    seed: int = 0,
    cluster: I8 | None = None,
    as_counts: bool = True,
) -> F8:
    """Scores and effects fitted to resamples, one row per round.

    Votes are resampled, or whole clusters of them. A weight is a number of votes (`as_counts`) or multiplies one.
    """
    inverse = np.linalg.inv(fit.hessian)
    penalty = np.concatenate((np.full(votes.size, l2), np.full(len(fit.effects), ridge)))
    start, errors = np.concatenate((fit.scores, fit.effects)), np.sqrt(inverse.diagonal())

    def run_round(source: np.random.SeedSequence) -> F8:
        random = np.random.default_rng(source)
        if cluster is not None:
            count = int(cluster.max()) + 1
            weight = votes.weight * np.bincount(random.integers(0, count, count), minlength=count)[cluster]
        elif as_counts:
            weight = random.poisson(votes.weight).astype(np.float64)
        else:
            weight = votes.weight * random.poisson(1.0, len(votes.weight))
        unknowns, residuals = start.copy(), fit.residuals
        # a resample's Hessian differs little from that of all votes, whose inverse serves all rounds
        for _ in range(ROUND_STEPS):
            step = inverse @ (add_up_gradients(votes, weight * residuals) - penalty * unknowns)
            unknowns += step
            if (np.abs(step) <= CLOSE * errors).all():
                return unknowns
            logits = compute_logits(votes, unknowns[: votes.size], unknowns[votes.size :])
            residuals = votes.outcome - logistic(logits)
        again = fit_contextual(votes._replace(weight=weight), l2=l2, ridge=ridge, start=fit.scores)
        return np.concatenate((again.scores, again.effects))

    with ThreadPoolExecutor(count_threads()) as pool:
        return np.stack(list(pool.map(run_round, np.random.SeedSequence(seed).spawn(rounds))))
