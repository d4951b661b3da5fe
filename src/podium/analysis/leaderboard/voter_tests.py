"""Tests of single voters: how improbable are their votes, if they vote like everybody else?

A voter's votes are independent trials, each with the probability that the board gives it. The number of successes
then has a Poisson-binomial distribution. Honest voters have tastes, so the log odds of all votes of a group (of one
voter on one item, or on one side) may share a shift, normal around 0. Its spread is estimated from all groups,
without the tenth that deviate most, so that a few planted voters do not widen it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import beta_log_cdf, logistic
from podium.kernels.poisson_binomial import compute_rank_distributions

__all__ = [
    "WIDEST",
    "GroupTails",
    "SharedShifts",
    "TrialGroups",
    "compute_binomial_tail",
    "compute_tails",
    "estimate_level_spread",
    "estimate_spread",
]

NODES = 15  # of the quadrature over the shift
SMALL = 0.01  # variance added by the shift, relative to that of the votes, below which it is left out
TRIMMED = 0.1  # share of the voters that the estimate of the spread ignores
TRIMMED_MEAN = 0.6230  # of a chi-squared variable with one degree of freedom, without its largest tenth
ENOUGH = 20  # voters (or pairs of voters) below which an estimated spread is doubled, because it is uncertain
WIDEST = 4.0  # largest spread considered, in log odds
MOST_TRIALS = 400_000  # trials that the spread is estimated from
CELLS = 1_000_000  # cells of a table held at once


class GroupTails(NamedTuple):
    """Per group: the probability of at least as many successes, and of at most as many."""

    upper: F8
    lower: F8


class TrialGroups(NamedTuple):
    """Trials sorted by group: the log odds of each success, and whether it happened."""

    starts: I8  # group g has the trials starts[g] .. starts[g + 1]
    logit: F8
    success: B1

    @classmethod
    def from_labels(cls, group: I8, count: int, logit: F8, success: B1) -> TrialGroups:
        """Sort trials by the number of their group."""
        order = np.argsort(group, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=count))))
        return cls(starts, logit[order], success[order])

    @property
    def sizes(self) -> I8:
        """Trials by group."""
        return np.diff(self.starts)

    def sum_by_group(self, values: F8 | B1) -> F8:
        """The sum of a value over the trials of each group."""
        sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], np.float64)

    @property
    def successes(self) -> F8:
        """Successes by group."""
        return self.sum_by_group(self.success)

    @property
    def expected(self) -> F8:
        """Expected successes by group."""
        return self.sum_by_group(logistic(self.logit))

    @property
    def information(self) -> F8:
        """Variance of the successes by group: the information about a shift of its log odds."""
        chance = logistic(self.logit)
        return self.sum_by_group(chance * (1 - chance))


class SharedShifts(NamedTuple):
    """Trials whose log odds share shifts: those of one group, and minus those of another where there are two."""

    logit: F8
    success: B1
    plus: I8  # group of each trial
    minus: I8 | None
    owner: I8  # voter (or pair of voters) of each group
    error: F8  # by group: variance of the shift that is known already

    def _add_up(self, values: F8, sign: int = 1) -> F8:
        total = np.bincount(self.plus, values, len(self.owner))
        if self.minus is not None:
            total = total + sign * np.bincount(self.minus, values, len(self.owner))
        return np.asarray(total, np.float64)

    def compute_deviation(self, success: B1) -> float:
        """How much the trials of a group deviate together: a trimmed mean over owners, per standard error.

        The products of the residuals of two trials of one group have mean 0 without a shift, and the product of
        their variances times that of the shift with one.
        """
        chance = logistic(self.logit)
        variance, residual = chance * (1 - chance), success - chance
        products = self._add_up(residual, -1) ** 2 - self._add_up(residual**2)
        expected = self._add_up(variance) ** 2 - self._add_up(variance**2)
        count = int(self.owner.max(initial=0)) + 1
        by_owner, scale = (np.bincount(self.owner, c, count) for c in (products, expected))
        known = scale > 1e-9
        if known.sum() < 2:
            return -np.inf
        kept = int(known.sum()) - int(TRIMMED * known.sum())
        ratio = by_owner[known] / np.sqrt(scale[known])
        return float(np.partition(ratio, kept - 1)[:kept].mean())

    def simulate(self, spread: float) -> B1:
        """Successes drawn with shifts of this spread; the same random numbers at every call."""
        random = np.random.default_rng(0)
        drawn, chance = random.normal(size=len(self.owner)), random.random(len(self.logit))
        shift = drawn * np.sqrt(spread**2 + self.error)
        logit = self.logit + shift[self.plus] - (0.0 if self.minus is None else shift[self.minus])
        return np.asarray(chance < logistic(logit), np.bool_)


def estimate_spread(trials: SharedShifts) -> float:
    """Standard deviation of the shifts between groups: the one with which simulated trials deviate as much.

    Owners that deviate most are left out on both sides, so a few planted ones change little. Large inputs are
    represented by every n-th owner. The spread between few owners is uncertain, and doubled.
    """
    step = -(-len(trials.logit) // MOST_TRIALS)
    if step > 1:
        kept = np.flatnonzero(trials.owner[trials.plus] % step == 0)
        minus = None if trials.minus is None else trials.minus[kept]
        trials = trials._replace(
            logit=trials.logit[kept], success=trials.success[kept], plus=trials.plus[kept], minus=minus
        )
    observed = trials.compute_deviation(trials.success)

    def is_wider(spread: float) -> bool:
        return trials.compute_deviation(trials.simulate(spread)) >= observed

    if not np.isfinite(observed) or is_wider(0.0):
        return 0.0
    low, high = 0.0, 0.25
    while not is_wider(high):
        low, high = high, 2 * high
        if high > WIDEST:
            return WIDEST
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (low, middle) if is_wider(middle) else (middle, high)
    is_uncertain = len(np.unique(trials.owner[trials.plus])) < ENOUGH
    return min((low + high) / 2 * (2 if is_uncertain else 1), WIDEST)


def estimate_level_spread(levels: F8, counts: F8) -> float:
    """Standard deviation between voters of a level, which is a mean of `counts` standard normal variables."""
    squared, kept = levels**2, len(levels) - int(TRIMMED * len(levels))
    expected = TRIMMED_MEAN if kept < len(levels) else 1.0

    def compute_trimmed_mean(variance: float) -> float:
        return float(np.partition(squared / (1 / counts + variance), kept - 1)[:kept].mean())

    low, high = 0.0, WIDEST**2
    if compute_trimmed_mean(low) <= expected:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if compute_trimmed_mean(middle) > expected else (low, middle)
    return float(np.sqrt(high)) * (2 if len(levels) < ENOUGH else 1)


def compute_tails(groups: TrialGroups, spread: F8) -> GroupTails:
    """Tails of the number of successes, the log odds of a group being shifted by a normal of its `spread`."""
    upper, lower = np.ones(len(spread)), np.ones(len(spread))
    sizes = groups.sizes
    single = np.flatnonzero(sizes == 1)
    at = groups.starts[single]
    # the mean of a shifted logistic function, by the usual approximation with a probit
    chance = logistic(groups.logit[at] / np.sqrt(1 + np.pi / 8 * spread[single] ** 2))
    upper[single] = np.where(groups.success[at], chance, 1.0)
    lower[single] = np.where(groups.success[at], 1.0, 1 - chance)
    several = np.flatnonzero(sizes > 1)
    shifted = spread**2 * groups.information > SMALL
    order = several[np.lexsort((shifted[several], sizes[several]))]
    key = sizes[order] * 2 + shifted[order]
    edges = np.flatnonzero(np.diff(key, prepend=-1, append=-1))
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        step = max(1, CELLS // int(sizes[order[begin]] + 1))
        for start in range(begin, end, step):
            rows = order[start : min(start + step, end)]
            scale = spread[rows] if shifted[rows[0]] else None
            upper[rows], lower[rows] = _sum_tails(groups, rows, scale)
    return GroupTails(np.minimum(upper, 1.0), np.minimum(lower, 1.0))


def _sum_tails(groups: TrialGroups, rows: I8, spread: F8 | None) -> tuple[F8, F8]:
    """The tails of groups of one size; both are sums of probabilities, so that small ones keep their digits."""
    size = int(groups.starts[rows[0] + 1] - groups.starts[rows[0]])
    at = groups.starts[rows][:, None] + np.arange(size)
    logit, losses = groups.logit[at], size - groups.success[at].sum(axis=1)
    count = np.arange(size + 1)
    above, below = (count <= losses[:, None]) * 1.0, (count >= losses[:, None]) * 1.0
    upper, lower = np.zeros(len(rows)), np.zeros(len(rows))
    nodes, weights = (
        (np.zeros(1), np.ones(1)) if spread is None else np.polynomial.hermite_e.hermegauss(NODES)
    )
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        shifted = logit if spread is None else logit + (node * spread)[:, None]
        law = compute_rank_distributions(logistic(shifted))
        upper += weight * np.einsum("ij,ij->i", law, above)
        lower += weight * np.einsum("ij,ij->i", law, below)
    return upper, lower


def compute_binomial_tail(count: F8, trials: F8, chance: F8) -> F8:
    """P(at least `count` successes in `trials`), for counts from 1; a chance of 1 or more gives 1."""
    p, tail = np.clip(chance, 1e-300, 1.0), np.ones(len(count))
    once = (count == 1) & (p < 1)
    tail[once] = -np.expm1(trials[once] * np.log1p(-p[once]))
    more = (count > 1) & (p < 1)
    if more.any():
        tail[more] = np.exp(beta_log_cdf(count[more], (trials - count + 1)[more], p[more]))
    return np.clip(tail, 0.0, 1.0)
