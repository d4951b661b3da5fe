"""Bradley-Terry with an accuracy per annotator, solved to convergence.

With d the difference of two scores and t the log odds that an annotator is right, the vote goes to the first
item with probability p = S(t) S(d) + S(-t) S(-d), S the logistic function: scores and odds are
interchangeable. The likelihood is smooth but not concave, so Newton steps are restricted to a trust region.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import annotator_em as core
from podium.kernels.dispatch import F8, I4, I8

__all__ = [
    "NoisyContests",
    "NoisyDerivatives",
    "NoisyFit",
    "build_noisy_contests",
    "compute_derivatives",
    "fit_noisy_contests",
    "multiply_hessian",
]

ROUNDING = 1e-11  # steps with a smaller predicted relative gain are judged by the gradient
FLAT = 0.05  # lower bound on the curvature, as a fraction of the votes on an unknown
TINY = 1e-140  # lower bound on probabilities; a step below it is rejected
NEAR = 1e-6  # below this, an error that no longer shrinks is rounding
# smallest accepted ratio of actual to predicted gain; largest radius relative to the first
LEAST, MOST = (1e-3, 1e8)


class NoisyContests(NamedTuple):
    """Votes by pair and annotator (weighted), and the priors."""

    first: I4  # by row
    second: I4
    group: I8
    won: F8
    lost: F8
    slots: int
    virtual: float  # contests that every item wins and loses against an item of score 0
    right: F8  # by group: prior numbers of right and wrong votes, weighted; empty: all are always right
    wrong: F8
    busy: F8  # by slot, then by group: all its votes, including those of the priors


class NoisyDerivatives(NamedTuple):
    """The negative log likelihood with its derivatives at a point."""

    value: float
    gradient: F8  # by slot, then by group
    dd: F8  # second derivatives, by row
    dt: F8
    tt: F8
    own: F8  # second derivatives of the priors, by unknown
    scale: F8  # positive: the diagonal without possibly negative terms, bounded below


class NoisyFit(NamedTuple):
    """The end of the search."""

    scores: F8
    odds: F8  # log odds of a right vote, by group
    value: float
    error: float  # largest gradient over scale
    steps: int
    converged: bool


def build_noisy_contests(
    rows: tuple[I4, I4, I8, F8, F8], slots: int, virtual: float, right: F8, wrong: F8
) -> NoisyContests:
    """Votes (first and second slot, group, weights won and lost) with their priors."""
    first, second, group, won, lost = rows
    votes = won + lost
    busy = np.bincount(first, votes, slots) + np.bincount(second, votes, slots) + 2 * virtual
    if len(right):
        busy = np.concatenate((busy, np.bincount(group, votes, len(right)) + right + wrong))
    return NoisyContests(*rows, slots, virtual, right, wrong, np.maximum(busy, TINY))


def compute_derivatives(given: NoisyContests, x: F8) -> NoisyDerivatives:
    """Value and derivatives at x."""
    slots, n = given.slots, len(given.first)
    known = len(given.right) == 0
    sums, columns = np.zeros((2, len(x))), np.empty((3, n))
    rows = (given.first, given.second, given.group, given.won, given.lost)
    value = -float(
        core.compute_noisy_derivatives(*rows, x[:slots], x[slots:], known, TINY, columns, sums[0], sums[1])
    )
    half, side = _logistic(x[:slots]), given.virtual
    lift = given.right, given.wrong, _logistic(x[slots:])
    value -= float((side * (_log_logistic(x[:slots]) + _log_logistic(-x[:slots]))).sum())
    value -= float((lift[0] * _log_logistic(x[slots:]) + lift[1] * _log_logistic(-x[slots:])).sum())
    pull = np.concatenate((side * (2 * half - 1), (lift[0] + lift[1]) * lift[2] - lift[0]))
    own = np.concatenate((2 * side * half * (1 - half), (lift[0] + lift[1]) * lift[2] * (1 - lift[2])))
    dd, dt, tt = columns
    return NoisyDerivatives(
        value, sums[0] + pull, dd, dt, tt, own, np.maximum(sums[1] + own, FLAT * given.busy)
    )


def multiply_hessian(given: NoisyContests, at: NoisyDerivatives, v: F8) -> F8:
    """The Hessian times v."""
    slots, known = given.slots, len(given.right) == 0
    out = at.own * v
    rows = (given.first, given.second, given.group)
    core.multiply_noisy_hessian(
        *rows, at.dd, at.dt, at.tt, v[:slots], v[slots:], known, out[:slots], out[slots:]
    )
    return out


def fit_noisy_contests(given: NoisyContests, x: F8, tolerance: float, max_iterations: int) -> NoisyFit:
    """Trust-region Newton steps from x until no gradient exceeds `tolerance` times its scale."""
    at = compute_derivatives(given, x)
    radius = first = float(np.sqrt(at.scale.sum()))
    left, steps = _compute_error(at), 0
    while left > tolerance and steps < max_iterations:
        steps += 1
        # the smaller the error, the more accurate the step, so that convergence is superlinear
        move, promise, length = _solve_trust_region(given, at, radius, min(0.1, left))
        new = compute_derivatives(given, x + move)
        if promise <= ROUNDING * max(abs(at.value), 1.0):  # rounding would decide: use the gradient
            if _compute_error(new) >= left:
                break
            x, at, left = x + move, new, _compute_error(new)
            continue
        # actual over predicted gain: how far the quadratic model can be trusted at this radius
        share = (at.value - new.value) / promise
        # "not >=" rather than "<": a NaN shrinks the radius too
        if not share >= 0.25:
            radius = 0.25 * min(length, radius)
        elif share > 0.75 and length >= 0.99 * radius:
            radius = min(2 * radius, MOST * first)
        if share > LEAST:
            x, at, left = x + move, new, _compute_error(new)
    # rounding can end the search above the tolerance; a tiny remaining error still counts as converged
    ended = left <= tolerance or (steps < max_iterations and left <= NEAR)
    return NoisyFit(x[: given.slots], x[given.slots :], at.value, left, steps, ended)


def _compute_error(at: NoisyDerivatives) -> float:
    return float((np.abs(at.gradient) / at.scale).max(initial=0.0))


def _dot(a: F8, b: F8) -> float:
    """Sum of products in a fixed order; a threaded library could change it."""
    return float((a * b).sum())


def _solve_trust_region(
    given: NoisyContests, at: NoisyDerivatives, radius: float, forcing: float
) -> tuple[F8, float, float]:
    """A conjugate-gradient step, its predicted gain and length, cut at the trust radius (Steihaug, 1983)."""
    move, rest = np.zeros_like(at.gradient), -at.gradient
    z = rest / at.scale
    along, size = z.copy(), _dot(rest, z)
    goal, gained = size * forcing**2, 0.0
    # squared length of the step, its product with the direction, and the direction's squared length
    mm, ma, aa = (0.0, 0.0, size)
    for _ in range(10 * len(move) + 100):
        image = multiply_hessian(given, at, along)
        bend = _dot(along, image)
        share = size / bend if bend > 0 else np.inf
        # iterates only grow in length: the first one beyond the radius (or of negative curvature) ends here
        if mm + share * (2 * ma + share * aa) >= radius**2:
            share = (np.sqrt(ma * ma + aa * (radius**2 - mm)) - ma) / aa
            return move + share * along, gained + share * size - share * share * bend / 2, radius
        move += share * along
        rest -= share * image
        gained += share * size / 2
        mm += share * (2 * ma + share * aa)
        z = rest / at.scale
        size, old = _dot(rest, z), size
        if size <= goal:
            break
        ratio = size / old
        along = z + ratio * along
        ma = ratio * (ma + share * aa)
        aa = size + ratio**2 * aa
    return move, gained, float(np.sqrt(mm))


def _logistic(x: F8) -> F8:
    z = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, z) / (1.0 + z), np.float64)


def _log_logistic(x: F8) -> F8:
    return np.asarray(-np.logaddexp(0.0, -x), np.float64)
