"""Contest models: the negative log likelihood of the outcomes, as a function of the score difference.

All are convex in the scores and in the other unknowns: the width of ties (log nu of Davidson, log theta of
Rao & Kupper) and the advantage of the side shown first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.distributions import normal_log_cdf, scaled_erfc

__all__ = [
    "DAVIDSON",
    "LOGIT",
    "PROBIT",
    "RAO_KUPPER",
    "ContestDerivatives",
    "ContestModel",
    "ContestProblem",
    "PairTerms",
    "resolve_contest_model",
]

LOGIT, PROBIT, DAVIDSON, RAO_KUPPER = range(4)
EXTRA = 1e-6  # ridge of the unknowns beside the scores: negligible, but keeps the width finite


class ContestModel(NamedTuple):
    """The fitted model: the distribution of a contest, the treatment of ties, and the prior of the scores."""

    kind: int  # LOGIT ...
    half: bool  # a tie is half a win for each side; otherwise it is ignored (or has its own width)
    l2: float  # ridge: l2 / 2 times the sum of squares is added
    shape: float  # gamma prior of the strengths exp(score) with mode 1; 1 = none


def resolve_contest_model(model: str, ties: str, l2: float, shape: float) -> ContestModel:
    """The model by name; a gamma prior replaces the ridge."""
    laws = {("bradley_terry", "davidson"): DAVIDSON, ("bradley_terry", "rao_kupper"): RAO_KUPPER}
    plain = {"bradley_terry": LOGIT, "thurstone": PROBIT}
    kind = laws.get((model, ties), plain.get(model) if ties in ("half", "ignore") else None)
    if kind is None:
        raise ParameterError(f"{model} does not support ties={ties!r}; accepted: half or ignore")
    return ContestModel(kind, ties == "half", l2 if shape == 1 else 0.0, shape)


class ContestProblem(NamedTuple):
    """The contests of one query; slots count from `base`."""

    base: int
    size: int
    first: I4
    second: I4
    won: F8
    lost: F8
    tied: F8
    side: F8 | None
    component: I8  # of each item, 0 .. components - 1
    model: ContestModel

    @property
    def widths(self) -> int:
        """Number of widths of ties among the unknowns."""
        return int(self.model.kind >= DAVIDSON)

    @property
    def unknowns(self) -> int:
        """Items and additional unknowns."""
        return self.size + self.widths + (self.side is not None)


class PairTerms(NamedTuple):
    """By pair: value and derivatives by the difference d and by the width of ties e."""

    value: F8
    d: F8
    dd: F8
    e: F8
    de: F8
    ee: F8


class ContestDerivatives(NamedTuple):
    """Gradient by unknown (items, width of ties, advantage), and the parts of the second derivatives."""

    gradient: F8
    bend: F8  # by pair
    border: F8  # unknowns beside the scores x items
    corner: F8
    ridge: F8  # the prior's contribution to the diagonal, by item
    diagonal: F8  # the total diagonal, by unknown


def compute_terms(kind: int, d: F8, width: float, won: F8, lost: F8, tied: F8) -> PairTerms:
    """All terms of a model at the differences d."""
    law = {LOGIT: _logit, PROBIT: _probit, DAVIDSON: _davidson, RAO_KUPPER: _rao_kupper}[kind]
    return law(d, width, won, lost, tied)


def _logit(d: F8, _: float, won: F8, lost: F8, __: F8) -> PairTerms:
    """P(first) = 1 / (1 + exp(-d))."""
    # exp of a number below 0 cannot overflow, and both probabilities keep all their digits
    z = np.exp(-np.abs(d))
    small, large = z / (1 + z), 1 / (1 + z)
    p, q = np.where(d >= 0, large, small), np.where(d >= 0, small, large)
    n, none = won + lost, np.zeros_like(d)
    value = n * np.log1p(z) + won * np.maximum(-d, 0) + lost * np.maximum(d, 0)
    return PairTerms(value, lost * p - won * q, n * p * q, none, none, none)


def _probit(d: F8, _: float, won: F8, lost: F8, __: F8) -> PairTerms:
    """P(first) = Phi(d), the normal CDF."""
    # the scaled function keeps the ratio finite where Phi itself underflows
    up, down = (np.sqrt(2 / np.pi) / scaled_erfc(-x / np.sqrt(2)) for x in (d, -d))  # phi(x) / Phi(x)
    none = np.zeros_like(d)
    value = -won * normal_log_cdf(d) - lost * normal_log_cdf(-d)
    bend = won * up * (up + d) + lost * down * (down - d)
    return PairTerms(value, lost * down - won * up, bend, none, none, none)


def _davidson(d: F8, width: float, won: F8, lost: F8, tied: F8) -> PairTerms:
    """P(first) : P(second) : P(tie) = exp(d / 2) : exp(-d / 2) : nu, nu = exp(width)."""
    # the largest exponent is taken out, so that none overflows
    top = np.maximum(np.abs(d) / 2, width)
    a, b, c = np.exp(d / 2 - top), np.exp(-d / 2 - top), np.exp(width - top)
    z = a + b + c
    p, q, r = a / z, b / z, c / z
    n = won + lost + tied
    value = n * (top + np.log(z)) - (won - lost) * d / 2 - tied * width
    slope = lost * (p + r / 2) - won * (q + r / 2) + tied * (p - q) / 2
    bend = n / 4 * (4 * p * q + r * (p + q))  # p + q - (p - q)^2, without cancellation
    return PairTerms(value, slope, bend, n * r - tied, -n / 2 * (p - q) * r, n * r * (p + q))


def _rao_kupper(d: F8, width: float, won: F8, lost: F8, tied: F8) -> PairTerms:
    """P(first) = 1 / (1 + exp(width - d)), P(second) = 1 / (1 + exp(width + d)), else a tie; width > 0."""
    # P(tie) = P(first) P(second) (theta^2 - 1): a tie is a win for both, times a factor of the width
    up, down = (
        _logit(d - width, 0.0, won + tied, np.zeros_like(d), tied),
        _logit(d + width, 0.0, np.zeros_like(d), lost + tied, tied),
    )
    # theta^2 - 1 = theta^2 gap, without cancellation at small widths
    gap = -np.expm1(-2 * width)
    value = up.value + down.value - tied * (2 * width + np.log(gap))
    e = down.d - up.d - 2 * tied / gap
    ee = up.dd + down.dd + 4 * tied * np.exp(-2 * width) / gap**2
    return PairTerms(value, up.d + down.d, up.dd + down.dd, e, down.dd - up.dd, ee)


def compute_start_width(kind: int, share: float) -> float:
    """The width of ties that gives this fraction of ties between equals."""
    # no finite width gives only ties, or none
    share = min(max(share, 1e-6), 1 - 1e-6)
    # between equals nu / (2 + nu) of Davidson's contests are ties, tanh(width / 2) of Rao and Kupper's
    return float(np.log(2 * share / (1 - share)) if kind == DAVIDSON else 2 * np.arctanh(share))


def compute_pair_terms(problem: ContestProblem, x: F8) -> PairTerms:
    """The terms of all pairs at x."""
    d = x[problem.first - problem.base] - x[problem.second - problem.base]
    if problem.side is not None:
        d = d + problem.side * x[-1]
    half = problem.tied / 2 if problem.model.half else 0.0
    width = float(x[problem.size]) if problem.widths else 0.0
    return compute_terms(problem.model.kind, d, width, problem.won + half, problem.lost + half, problem.tied)


def compute_derivatives(problem: ContestProblem, x: F8) -> ContestDerivatives:
    """The derivatives of the penalized problem at x."""
    t, side = compute_pair_terms(problem, x), problem.side
    sums = [scatter_to_items(problem, t.d, -1), scatter_to_items(problem, t.dd, 1)]
    corners = np.zeros(5)
    if problem.widths:
        sums.append(scatter_to_items(problem, t.de, -1))
        corners[:2] = t.e.sum(), t.ee.sum()
    if side is not None:
        sums.append(scatter_to_items(problem, side * t.dd, -1))
        corners[2:] = side @ t.d, (side**2) @ t.dd, side @ t.de
    return assemble_derivatives(problem, x, t.dd, np.array(sums), corners)


def assemble_derivatives(
    problem: ContestProblem, x: F8, bend: F8, sums: F8, corners: F8
) -> ContestDerivatives:
    """Combine the sums over pairs (by item: gradient, diagonal, borders; others: `corners`) and the prior."""
    size, model = problem.size, problem.model
    picked = [problem.widths > 0, problem.side is not None]
    # the gradient of a component sums to zero except for rounding, which is shared by its diagonal
    over, under = (np.bincount(problem.component, weights=v) for v in sums[:2])
    items = sums[0] - sums[1] * (over / np.where(under > 0, under, 1.0))[problem.component]
    gradient = np.concatenate((items, corners[[0, 2]][picked]))
    ridge = np.full(len(x), float(model.l2))
    ridge[size:] = EXTRA
    gradient += ridge * x
    if model.shape > 1:
        strength = (model.shape - 1) * np.exp(x[:size])
        gradient[:size] += strength - (model.shape - 1)
        ridge[:size] += strength
    # an item without contests and without a prior has a diagonal of 0, by which steps are divided
    diagonal = np.maximum(np.concatenate((sums[1], corners[[1, 3]][picked])) + ridge, 1e-300)
    corner = np.diag(diagonal[size:])
    if len(corner) == 2:
        corner[0, 1] = corner[1, 0] = corners[4]
    return ContestDerivatives(gradient, bend, sums[2:], corner, ridge[:size], diagonal)


def compute_prior_value(problem: ContestProblem, x: F8) -> float:
    """The negative log of the prior."""
    size, model = problem.size, problem.model
    value = (model.l2 * (x[:size] @ x[:size]) + EXTRA * (x[size:] @ x[size:])) / 2
    if model.shape > 1:
        # exp(x) - 1 - x is smallest at score 0, the mode of the prior
        value += (model.shape - 1) * (np.expm1(x[:size]) - x[:size]).sum()
    return float(value)


def scatter_to_items(problem: ContestProblem, pair: F8, sign: int) -> F8:
    """By item: the sum over pairs in which it is first, and `sign` times that in which it is second."""
    sums = (
        np.bincount(slots - problem.base, weights=pair, minlength=problem.size)
        for slots in (problem.first, problem.second)
    )
    up, down = sums
    return np.asarray(up + sign * down, np.float64)


def compute_component_means(values: F8, component: I8) -> F8:
    """For each item the mean over its component."""
    if len(values) == 0:
        return values
    return np.asarray(
        (np.bincount(component, weights=values) / np.bincount(component))[component], np.float64
    )


def build_dense_hessian(problem: ContestProblem, at: ContestDerivatives) -> F8:
    """The dense matrix of second derivatives."""
    size, n = problem.size, problem.unknowns
    cell = (problem.first.astype(np.int64) - problem.base) * n + problem.second - problem.base
    upper = np.bincount(cell, weights=at.bend, minlength=n * n).reshape(n, n)
    matrix = np.asarray(-(upper + upper.T), np.float64)
    matrix[:size, size:] = at.border.T
    matrix[size:, :size] = at.border
    matrix[size:, size:] = at.corner
    np.fill_diagonal(matrix, at.diagonal)
    return matrix


def center_components(problem: ContestProblem, x: F8) -> F8:
    """The same differences, each component at the level its prior prefers: mean 0, or mean strength 1."""
    scores = x[: problem.size]
    if problem.model.shape > 1:
        top = scores.max(initial=0.0)
        shift = top + np.log(compute_component_means(np.exp(scores - top), problem.component))
    else:
        shift = compute_component_means(scores, problem.component)
    return np.concatenate((scores - shift, x[problem.size :]))
