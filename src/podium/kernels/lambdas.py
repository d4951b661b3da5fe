"""LambdaRank gradients, and passes of a linear model over the queries.

The objective of a query is the sum over pairs (i better than j) of |change| log(1 + exp(s_j - s_i)), where
`change` is the change of the target when the two swap places in the current order, times their weights; it is the same
for all pairs with PAIRS, which is RankNet. Equal scores are ordered worst grade first; rows with the same grade and
(nearly) the same score share their gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium._core import lambdas as core
from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8, run_in_threads
from podium.kernels.ranking_measures import CASCADE, PRECISION, SUM

__all__ = [
    "NEAR",
    "PAIRS",
    "MetricTarget",
    "OptimizerState",
    "compute_lambdas",
    "train_linear_pass",
]

PAIRS = 4  # a target beside the walks: every pair of different grades counts alike (RankNet)
STEEP = 600.0  # differences of scores beyond which a pair counts as in order
NEAR = 1e-10  # scores closer than this fraction of the largest are equal


class MetricTarget(NamedTuple):
    """A metric as a walk down rankings, over rows grouped by query, best grade first."""

    kind: int  # SUM, PRECISION or CASCADE of `podium.kernels.ranking_measures`, or PAIRS
    gain: F8  # by row
    level: I4  # by row; descending within a query
    discount: F8  # by place
    limit: I8  # by query: places that count
    scale: F8  # by query: its weight over its best possible value; 0 excludes it
    weight: F8 | None = None  # by row, 1 if not given; a pair weighs the product of both
    # with PAIRS: rows of these pairs (starts by query, better, worse, weight) instead of all of different grades
    pairs: tuple[I8, I8, I8, F8] | None = None

    def select_queries(self, rows: I8, queries: I8) -> MetricTarget:
        """The same for some queries, whose rows these are."""
        pairs = None
        if self.pairs is not None:
            starts, better, worse, weight = self.pairs
            chosen_starts, chosen = segments.gather_segments(starts, queries)
            order = np.argsort(rows, kind="stable")
            up, down = (order[np.searchsorted(rows, r[chosen], sorter=order)] for r in (better, worse))
            pairs = (chosen_starts, up, down, weight[chosen])
        return MetricTarget(
            self.kind,
            self.gain[rows],
            self.level[rows],
            self.discount,
            self.limit[queries],
            self.scale[queries],
            None if self.weight is None else self.weight[rows],
            pairs,
        )

    def to_columns(self) -> tuple[Any, ...]:
        """All fields, with weights for every row: kernels do not accept None."""
        return (*self[:6], np.ones(len(self.gain)) if self.weight is None else self.weight)


class OptimizerState(NamedTuple):
    """Optimizer state of a linear model; the arrays are updated in place."""

    weights: F8
    mean: F8  # of the gradients (Adam)
    square: F8  # of the squared gradients (Adam)
    steps: I8  # number of steps so far, an array of one
    adam: bool
    rate: float
    l2: float
    positive: bool  # weights stay nonnegative
    towards: F8 | None = None  # the point towards which the penalty shrinks the weights, 0 if not given

    def to_columns(self) -> tuple[F8, F8, F8, I8, bool, float, float, bool, F8]:
        """The state and the settings, in the order that kernels take them."""
        settings = (self.adam, self.rate, self.l2, self.positive, self.penalty_center())
        return self.weights, self.mean, self.square, self.steps, *settings

    def penalty_center(self) -> F8:
        """`towards` as an array: kernels do not accept None."""
        return np.zeros(len(self.weights)) if self.towards is None else self.towards


def compute_lambdas(scores: F8, starts: I8, target: MetricTarget) -> F8:
    """The gradient of the objective with respect to every score; descend along it."""
    if target.pairs is not None:
        # given pairs may contradict each other: slopes of weight * log(1 + exp(worse - better))
        pair_starts, better, worse, weight = target.pairs
        row_weight = np.ones(len(scores)) if target.weight is None else target.weight
        gap = np.clip(scores[better] - scores[worse], -STEEP, STEEP)
        pull = weight * row_weight[better] * row_weight[worse] / (1.0 + np.exp(gap))
        pull *= np.repeat(target.scale, np.diff(pair_starts))
        # one sum for each row and direction, in the order of the pairs
        up, down = (np.bincount(rows, pull, len(scores)) for rows in (better, worse))
        return np.asarray(down - up, np.float64)
    out = np.zeros(len(scores))
    sizes = np.diff(starts)
    work = segments.offsets(sizes * sizes)
    order = np.arange(len(scores), dtype=np.int64) - np.repeat(starts[:-1], sizes)
    run_in_threads(core.compute_lambdas, work, starts, scores, *target.to_columns(), order, out)
    return out


def train_linear_pass(
    values: F8,
    starts: I8,
    target: MetricTarget,
    visit: I8,
    batch: int,
    optimizer: OptimizerState,
) -> None:
    """Visit queries in the given order, with a step after every `batch`; weights are updated in place."""
    table = np.ascontiguousarray(values, np.float64)
    core.train_linear_pass(table, starts, *target.to_columns(), visit, batch, *optimizer.to_columns())


def update_weights(optimizer: OptimizerState, gradient: F8) -> None:
    """One step against a gradient, plain or by Adam (Kingma & Ba, ICLR 2015)."""
    weights, mean, square, steps, adam, rate, l2, positive, towards = optimizer
    gradient = gradient + l2 * (weights if towards is None else weights - towards)
    steps[0] += 1
    if adam:
        # decay rates 0.9 and 0.999, the published defaults
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient * gradient - square)
        done = float(steps[0])
        weights -= rate * (mean / (1 - 0.9**done)) / (np.sqrt(square / (1 - 0.999**done)) + 1e-8)
    else:
        weights -= rate * gradient
    if positive:
        np.maximum(weights, 0.0, out=weights)


assert (SUM, PRECISION, CASCADE) == (0, 1, 2)  # the compiled kernels use these numbers
