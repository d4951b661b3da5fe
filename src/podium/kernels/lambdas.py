"""LambdaRank gradients, and passes of a linear model over the queries.

The objective of a query is the sum over pairs (i better than j) of |change| log(1 + exp(s_j - s_i)), where
`change` is the change of the target when the two swap places in the current order, times their weights. Equal
scores are ordered worst grade first; rows with the same grade and (nearly) the same score share their
gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8, is_large, run_in_threads
from podium.kernels.ranking_measures import CASCADE, PRECISION, SUM

__all__ = [
    "NEAR",
    "MetricTarget",
    "OptimizerState",
    "compute_lambdas",
    "compute_swap_changes",
    "sort_rows",
    "train_linear_pass",
]

NEAR = 1e-10  # scores closer than this fraction of the largest are equal
STEEP = 600.0  # score differences are clipped here to keep exponentials finite


class MetricTarget(NamedTuple):
    """A metric as a walk down rankings, over rows grouped by query, best grade first."""

    kind: int  # SUM, PRECISION or CASCADE of `podium.kernels.ranking_measures`
    gain: F8  # by row
    level: I4  # by row; descending within a query
    discount: F8  # by place
    limit: I8  # by query: places that count
    scale: F8  # by query: its weight over its best possible value; 0 excludes it
    weight: F8 | None = None  # by row, 1 if not given; a pair weighs the product of both

    def select_queries(self, rows: I8, queries: I8) -> MetricTarget:
        """The same for some queries, whose rows these are."""
        return MetricTarget(
            self.kind,
            self.gain[rows],
            self.level[rows],
            self.discount,
            self.limit[queries],
            self.scale[queries],
            None if self.weight is None else self.weight[rows],
        )

    def to_columns(self) -> tuple[Any, ...]:
        """All fields, with weights for every row: compiled kernels do not accept None."""
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

    def penalty_center(self) -> F8:
        """`towards` as an array: compiled kernels do not accept None."""
        return np.zeros(len(self.weights)) if self.towards is None else self.towards


def compute_lambdas(scores: F8, starts: I8, target: MetricTarget) -> F8:
    """The gradient of the objective with respect to every score; descend along it."""
    out = np.zeros(len(scores))
    sizes = np.diff(starts)
    work = segments.offsets(sizes * sizes)
    if is_large(int(work[-1])):
        from podium.kernels.compiled.lambdas import compute_lambdas as kernel

        order = np.arange(len(scores), dtype=np.int64) - np.repeat(starts[:-1], sizes)
        run_in_threads(kernel, work, starts, scores, *target.to_columns(), order, out)
        return out
    for q in np.flatnonzero(target.scale != 0):
        rows = slice(int(starts[q]), int(starts[q + 1]))
        out[rows] = _compute_query_lambdas(
            scores[rows], target.select_queries(np.arange(rows.start, rows.stop), np.array([q]))
        )
    return out


def train_linear_pass(
    values: F8,
    starts: I8,
    target: MetricTarget,
    visit: I8,
    batch: int,
    optimiser: OptimizerState,
    passes: int = 1,
) -> None:
    """Visit queries in the given order, with a step after every `batch`; weights are updated in place.

    `passes` is the expected number of such calls, which decides whether compiling pays off.
    """
    sizes = np.diff(starts)
    work = int((sizes[visit] * (sizes[visit] + values.shape[1])).sum()) * passes
    if is_large(work):
        from podium.kernels.compiled.lambdas import train_linear_pass as kernel

        state = (optimiser.weights, optimiser.mean, optimiser.square, optimiser.steps)
        settings = (
            optimiser.adam,
            optimiser.rate,
            optimiser.l2,
            optimiser.positive,
            optimiser.penalty_center(),
        )
        kernel(values, starts, *(*target.to_columns(), visit, batch, *state, *settings))
        return
    for first in range(0, len(visit), batch):
        gradient = np.zeros(values.shape[1])
        chosen = visit[first : first + batch]
        for q in chosen:
            rows = slice(int(starts[q]), int(starts[q + 1]))
            part = target.select_queries(np.arange(rows.start, rows.stop), np.array([q]))
            slope = _compute_query_lambdas((values[rows] * optimiser.weights).sum(axis=1), part)
            gradient += (values[rows] * slope[:, None]).sum(axis=0)
        update_weights(optimiser, gradient / len(chosen))


def update_weights(optimiser: OptimizerState, gradient: F8) -> None:
    """One step against a gradient, plain or by Adam (Kingma & Ba, ICLR 2015)."""
    weights, mean, square, steps, adam, rate, l2, positive, towards = optimiser
    gradient = gradient + l2 * (weights if towards is None else weights - towards)
    steps[0] += 1
    if adam:
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient * gradient - square)
        done = float(steps[0])
        weights -= rate * (mean / (1 - 0.9**done)) / (np.sqrt(square / (1 - 0.999**done)) + 1e-8)
    else:
        weights -= rate * gradient
    if positive:
        np.maximum(weights, 0.0, out=weights)


# -- one query, for small inputs -----------------------------------------------------------------------------


def sort_rows(scores: F8, level: I4) -> tuple[I8, I8]:
    """Rows from the top, worst grade first where scores are nearly equal; and the tie group of each place."""
    order = np.argsort(-scores, kind="stable")
    near = NEAR * float(np.abs(scores).max(initial=0.0))
    run = np.concatenate(([0], np.cumsum(-np.diff(scores[order]) > near)))
    inside = np.lexsort((order, level[order], run))
    order, grade = order[inside], level[order[inside]]
    group = np.concatenate(([0], np.cumsum((np.diff(run) != 0) | (np.diff(grade) != 0))))
    return order, group


def compute_swap_changes(order: I8, target: MetricTarget) -> F8:
    """|change when rows i and j are swapped| for all pairs of rows of one query, not scaled."""
    n = len(order)
    counted = np.arange(n) < target.limit[0]
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    if target.kind == SUM:
        d = np.where(counted, _pad_discount(target.discount, n), 0.0)[place]
        return np.asarray(np.abs((target.gain[:, None] - target.gain) * (d[:, None] - d)))
    by_place = _precision_changes if target.kind == PRECISION else _cascade_changes
    changes = by_place(target.gain[order], _pad_discount(target.discount, n), counted)
    return np.asarray(np.abs(changes + changes.T)[np.ix_(place, place)])


def _pad_discount(discount: F8, n: int) -> F8:
    return np.concatenate((discount[:n], np.ones(max(0, n - len(discount)))))


def _precision_changes(gain: F8, discount: F8, counted: B1) -> F8:
    """Average precision, for places a < b; gains are 0 or 1."""
    inverse = np.where(counted, 1.0 / discount, 0.0)
    hits, between = np.cumsum(gain), np.cumsum(gain * inverse)
    changes = np.zeros((len(gain), len(gain)))
    for a in range(len(gain)):
        b = np.arange(a + 1, len(gain))
        inner = between[b] - gain[b] * inverse[b] - between[a]
        down = hits[b] * inverse[b] - hits[a] * inverse[a] - inner
        up = (hits[a] + 1) * inverse[a] + inner - hits[b] * inverse[b]
        changes[a, b] = np.where(gain[a] > gain[b], down, np.where(gain[a] < gain[b], up, 0.0))
    return changes


def _cascade_changes(gain: F8, discount: F8, counted: B1) -> F8:
    """A cascade, for places a < b; the places after b do not change."""
    d = np.where(counted, discount, 0.0)
    n = len(gain)
    changes = np.zeros((n, n))
    before = np.concatenate(([1.0], np.cumprod(1.0 - gain)))
    for a in range(n):
        inner, through = 0.0, 1.0  # value of the places between, and the probability of passing them
        for b in range(a + 1, n):
            old = d[a] * gain[a] + (1 - gain[a]) * (inner + through * d[b] * gain[b])
            new = d[a] * gain[b] + (1 - gain[b]) * (inner + through * d[b] * gain[a])
            changes[a, b] = before[a] * (new - old)
            inner += through * d[b] * gain[b]
            through *= 1.0 - gain[b]
    return changes


def _compute_query_lambdas(scores: F8, target: MetricTarget) -> F8:
    order, group = sort_rows(scores, target.level)
    change = compute_swap_changes(order, target) * target.scale[0]
    if target.weight is not None:
        change = change * (target.weight[:, None] * target.weight)
    e = np.exp(np.maximum(scores - scores.max(initial=-np.inf), -STEEP))
    better = target.level[:, None] > target.level
    pull = np.where(better, change * (e / (e[:, None] + e)), 0.0)
    slope = pull.sum(axis=0) - pull.sum(axis=1)
    shared: F8 = np.bincount(group, weights=slope[order]) / np.bincount(group)
    out = np.empty(len(scores))
    out[order] = shared[group]
    return out


assert (SUM, PRECISION, CASCADE) == (0, 1, 2)  # the compiled kernels use these numbers
