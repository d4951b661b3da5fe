"""The exact expectation of a ranking metric under a distribution over all rankings of a few items.

A ranking y has probability proportional to exp(sum over places p of omega[y(p)] / log2(p + 1)), places from 1
(Volkovs & Zemel, CIKM 2013). The metric walks down the ranking (`podium.kernels.ranking_measures`), so what a
place adds to it depends on the item there and on the set of items above, not on their order: sums over all n!
rankings are sums over the 2^n sets. `compute_expected_metric` enumerates the rankings of several queries at once.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from podium._core import ranking_expectations as core
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.lambdas import PAIRS, MetricTarget, OptimizerState
from podium.kernels.ranking_measures import PRECISION, SUM

__all__ = [
    "LARGEST",
    "Potentials",
    "compute_expected_metric",
    "compute_row_scores",
    "enumerate_rankings",
    "place_weights",
    "sample_pair_subsets",
    "sample_subsets",
    "sum_by_index",
    "train_crf_pass",
    "weigh_pairs",
]

LARGEST = 7  # items of a subset


class Potentials(NamedTuple):
    """Statements about every row: entries of a group of weights and one value per column, so that
    omega = sum over the entries of a row of values . weights[group]."""

    starts: I8  # entries of row r: starts[r] .. starts[r + 1]
    group: I8
    values: F8  # (entries, columns)

    @property
    def row(self) -> I8:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def compute_row_scores(potentials: Potentials, weights: F8) -> F8:
    """omega of every row; `weights` has one row per group."""
    parts = (potentials.values * weights[potentials.group]).sum(axis=1)
    return sum_by_index(potentials.row, parts, len(potentials.starts) - 1)


def sum_by_index(at: I8, values: F8, size: int) -> F8:
    """The sum of the values with each number from 0 to size - 1."""
    return np.bincount(at, weights=values, minlength=size).astype(np.float64, copy=False)


def place_weights(n: int) -> F8:
    """1 / log2(p + 1) for the places p = 1 .. n."""
    return np.asarray(1.0 / np.log2(np.arange(n) + 2.0))


@functools.cache
def enumerate_rankings(n: int) -> tuple[I8, F8]:
    """All rankings of n items: the item at each place, and the weight of the place of each item."""
    order = np.array(list(itertools.permutations(range(n))), np.int64).reshape(math.factorial(n), n)
    return order, place_weights(n)[np.argsort(order, axis=1)]


def compute_expected_metric(
    omega: F8, gain: F8, kind: int, discount: F8, limit: I8, pairs: F8 | None = None
) -> tuple[F8, F8]:
    """The expected metric over all rankings of the items of each row, and its derivative by omega.

    `omega` and `gain` are (queries, items); best grades first, so that the given order is an ideal ranking.
    The metric is divided by its ideal value; rows whose ideal is 0 give 0. `pairs` is what `weigh_pairs` returns, for
    the kind PAIRS.
    """
    order, fall = enumerate_rankings(omega.shape[1])
    energy = omega @ fall.T
    chance = np.exp(energy - energy.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    # the metric of every ranking, for each row of gains; place by place
    worth, state = np.zeros_like(chance), np.full_like(chance, float(kind != PRECISION))
    if kind == PAIRS:
        assert pairs is not None
        for p, q in itertools.combinations(range(gain.shape[1]), 2):
            worth += pairs[:, order[:, p], order[:, q]]
        limit = np.zeros(len(gain), np.int64)
    for p in range(min(gain.shape[1], int(limit.max(initial=0)))):
        here = gain[:, order[:, p]] * (p < limit)[:, None]
        if kind == SUM:
            worth += here * discount[p]
        elif kind == PRECISION:
            state += here
            worth += here * state / discount[p]
        else:
            worth += discount[p] * here * state
            state *= 1.0 - here
    # the first ranking keeps the given order; contradicting pairs have no ideal ranking
    ideal = worth[:, :1] if pairs is None else pairs.sum(axis=(1, 2))[:, None]
    worth = np.divide(worth, ideal, where=ideal > 0, out=np.zeros_like(worth))
    mean = (chance * worth).sum(axis=1)
    # the derivative of a mean under exp(omega . fall) / Z is the covariance with fall
    return mean, (chance * (worth - mean[:, None])) @ fall


def sample_subsets(starts: I8, level: I4, visit: I8, size: int, uniform: F8) -> I8:
    """At most `size` rows of each visited query, with at least one of each level (of `size` levels at most).

    `uniform` holds 2 * size random numbers per visit; the rows of a query are and stay sorted best level
    first. -1 is padding.
    """
    out = np.full((len(visit), size), -1, np.int64)
    core.sample_subsets(starts, level, visit, uniform, out)
    return out


def train_crf_pass(
    potentials: Potentials,
    target: MetricTarget,
    weight: F8,
    visit: I8,
    rows: I8,
    batch: int,
    optimizer: OptimizerState,
) -> float:
    """Visit queries, each through its sampled rows, with a step after every `batch`; the mean expected loss.

    `weight` is the weight of each query; with n columns, the weights of group g are
    `optimizer.weights[n * g : n * g + n]`.
    """
    walk = (target.kind, target.gain, target.discount, target.limit)
    falls = place_weights(rows.shape[1])
    pairs = weigh_pairs(target, rows) if target.kind == PAIRS else np.zeros((0, 0, 0))
    return float(
        core.train_crf_pass(
            *potentials, *walk, weight, visit, rows, falls, batch, *optimizer.to_columns(), pairs
        )
    )


def weigh_pairs(target: MetricTarget, rows: I8) -> F8:
    """For the rows of each visit (-1 is padding): how much it counts to place the first row above the second."""
    shape = (*rows.shape, rows.shape[1])
    one, two = np.broadcast_to(rows[:, :, None], shape), np.broadcast_to(rows[:, None, :], shape)
    if target.pairs is None:
        known = (one >= 0) & (two >= 0)
        return np.ascontiguousarray(known & (target.level[one] > target.level[two]), np.float64)
    _, better, worse, weight = target.pairs
    width = max(1, len(target.gain))
    key, wanted = better * width + worse, one * width + two
    order = np.argsort(key)
    # a pair above all known ones would be sought past the end
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
    found = order[at]
    return np.ascontiguousarray(
        np.where((one >= 0) & (two >= 0) & (key[found] == wanted), weight[found], 0.0)
    )


def sample_pair_subsets(starts: I8, pairs: tuple[I8, I8, I8, F8], visit: I8, size: int, uniform: F8) -> I8:
    """At most `size` rows of each visited query: those of a random pair, then others at random; -1 is padding.

    `uniform` holds 2 * size random numbers per visit.
    """
    pair_starts, better, worse, _ = pairs
    out = np.full((len(visit), size), -1, np.int64)
    for at, q in enumerate(visit.tolist()):
        rows = np.arange(starts[q], starts[q + 1])
        if len(rows) > size:
            count = int(pair_starts[q + 1] - pair_starts[q])
            first = int(pair_starts[q]) + int(uniform[at, 0] * count)
            others = rows[(rows != better[first]) & (rows != worse[first])]
            for k in range(size - 2):  # a partial shuffle
                swap = k + int(uniform[at, 1 + k] * (len(others) - k))
                others[k], others[swap] = others[swap], others[k]
            rows = np.sort(np.append(others[: size - 2], (better[first], worse[first])))
        out[at, : len(rows)] = rows
    return out
