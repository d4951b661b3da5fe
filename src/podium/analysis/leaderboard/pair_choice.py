"""The next pair to compare, for the order of the items.

A vote on items i and j reduces the variances of their scores. Among pairs whose order is in doubt, the expected number
of misplaced ones falls where estimates are close enough to change places: in the normal approximation, by the reduction
of the variance V of an item times the density of the other items' scores around it, divided by the square root of V.
The item for which one vote can do most is chosen first (density times V to the power of 1.5), then the opponent with
which a vote does most for both: a close one, as a vote on unequal items has little information, and one whose own
score is uncertain.

Chosen pairs count as answered, with the information that a vote is expected to give, so that a batch is spread over
many items. Without votes this gives rounds of random pairings: nearly every item once, with another opponent in each
round, which is close to a random regular graph, the sparsest design that keeps all items closely connected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.score_posterior import ScorePosterior
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic

__all__ = ["ChosenPair", "PairChooser", "expect_information"]

# variance of the normal density that equals the logistic one at 0: 8 / pi
LOGISTIC_VARIANCE = 8 / np.pi
NEIGHBORS = 512  # opponents on either side, by score, among which one is chosen
JITTER = 0.1  # relative random difference between opponents, so that the graph does not fall into cliques
FAINT = 1e-6  # weight of items whose place is not in question


class ChosenPair(NamedTuple):
    """Two items by number, what a vote on them is worth, the information it gives, and the variance before it."""

    first: int
    second: int
    value: float  # expected reduction of misplaced pairs, up to a factor
    information: float
    variance: float  # of the difference

    @property
    def gain(self) -> float:
        """Expected gain in nats."""
        return float(0.5 * np.log1p(self.information * self.variance))


def expect_information(gap: F8, variance: F8) -> F8:
    """Expected information of one vote about a difference that is normal with this mean and variance.

    The density of the logistic distribution, averaged over the difference; a normal density stands for it.
    """
    total = LOGISTIC_VARIANCE + variance
    return np.asarray(np.exp(-gap * gap / (2 * total)) / np.sqrt(2 * np.pi * total), np.float64)


class PairChooser:
    """Chooses pairs one after the other; every chosen pair counts as answered."""

    def __init__(
        self, posterior: ScorePosterior, *, rng: np.random.Generator, top: int | None = None, most: int = 1
    ) -> None:
        """`top`: only who is among the best `top` matters. `most`: how often one pair may be chosen."""
        self.means, self.rng, self.most = posterior.means.copy(), rng, most
        self.variances = posterior.variances.copy()
        self.covariance = None if posterior.covariance is None else posterior.covariance.copy()
        self.times_chosen: dict[tuple[int, int], int] = {}
        size = len(self.means)
        shuffled = rng.permutation(size)
        # equal scores in random order: without votes the neighbors by score are random items
        self.order: I8 = shuffled[np.argsort(self.means[shuffled], kind="stable")]
        self.place = np.empty(size, np.int64)
        self.place[self.order] = np.arange(size)
        self.weights = self._compute_densities(top) * (1 + 1e-3 * rng.random(size))
        self.worth = self.weights * self.variances**1.5  # by item, what a vote could do

    def _compute_densities(self, top: int | None) -> F8:
        """Density of the other items' scores around each item; with `top`, of those across the boundary."""
        sorted_means = self.means[self.order]
        width = np.sqrt(self.variances + np.median(self.variances))
        low, high = (np.searchsorted(sorted_means, self.means + side * width) for side in (-1, 1))
        size = len(self.means)
        if top is None or top >= size:
            return np.asarray((high - low) / width, np.float64)
        boundary = size - top  # places from here on are among the best
        across = np.where(
            self.place >= boundary, np.minimum(high, boundary) - low, high - np.maximum(low, boundary)
        )
        return np.asarray(np.maximum(across, FAINT) / width, np.float64)

    @property
    def need(self) -> float:
        """What a vote could do for the item that needs one most."""
        return float(self.worth.max())

    def choose(self) -> ChosenPair | None:
        """The next pair, or None if every pair was chosen as often as it may be."""
        pair = self._choose_opponent(int(self.worth.argmax()))
        if pair is None:  # all opponents of that item were chosen
            items = np.argsort(-self.worth, kind="stable").tolist()
            pair = next(filter(None, map(self._choose_opponent, items)), None)
        return pair

    def _choose_opponent(self, item: int) -> ChosenPair | None:
        # the items next to it by score: all of them where there are few
        place, size = int(self.place[item]), len(self.means)
        low, high = 0, size
        if size > 2 * NEIGHBORS:
            low = min(max(place - NEIGHBORS, 0), size - 2 * NEIGHBORS - 1)
            high = low + 2 * NEIGHBORS + 1
        others = np.concatenate((self.order[low:place], self.order[place + 1 : high]))
        shared = 0.0 if self.covariance is None else self.covariance[item, others]
        own, theirs = self.variances[item], self.variances[others]
        variance = np.maximum(own + theirs - 2 * shared, 1e-12)
        information = expect_information(self.means[item] - self.means[others], variance)
        share = information / (1 + information * variance)
        value = share * (
            self.worth[item] * (1 - shared / own) ** 2 + self.worth[others] * (1 - shared / theirs) ** 2
        )
        preference = value * (1 + JITTER * self.rng.random(len(value)))
        while len(preference) and (k := int(preference.argmax())) >= 0 and preference[k] >= 0:
            pair = (min(item, int(others[k])), max(item, int(others[k])))
            if self.times_chosen.get(pair, 0) < self.most:
                self.times_chosen[pair] = self.times_chosen.get(pair, 0) + 1
                return ChosenPair(
                    item, int(others[k]), float(value[k]), float(information[k]), float(variance[k])
                )
            preference[k] = -1.0
        return None

    def count_as_answered(self, pair: ChosenPair, factor: float = 1.0) -> None:
        """Reduce the variances as a vote on the pair is expected to; `factor` multiplies its information."""
        information = factor * pair.information
        share = information / (1 + information * pair.variance)
        if self.covariance is None:
            both = [pair.first, pair.second]
            self.variances[both] -= self.variances[both] ** 2 * share
            self.worth[both] = self.weights[both] * self.variances[both] ** 1.5
            return
        moved = self.covariance[pair.first] - self.covariance[pair.second]
        self.covariance -= share * np.outer(moved, moved)
        self.variances = np.maximum(self.covariance.diagonal(), 1e-12)
        self.worth = self.weights * self.variances**1.5

    def describe(self, first: int, second: int) -> ChosenPair:
        """A pair that somebody else chose."""
        shared = 0.0 if self.covariance is None else self.covariance[first, second]
        variance = max(float(self.variances[first] + self.variances[second] - 2 * shared), 1e-12)
        gap = np.array([self.means[first] - self.means[second]])
        information = float(expect_information(gap, np.array([variance]))[0])
        return ChosenPair(first, second, 0.0, information, variance)

    def move_means(self, first: int, second: int, outcome: float) -> None:
        """Move the scores by a vote whose information is already counted: one step of Newton's method."""
        surprise = outcome - float(logistic(self.means[first] - self.means[second]))
        if self.covariance is None:
            self.means[first] += self.variances[first] * surprise
            self.means[second] -= self.variances[second] * surprise
        else:
            self.means += (self.covariance[first] - self.covariance[second]) * surprise
