"""Newton's method for one query: with the dense Hessian, or by conjugate gradients over its pairs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from podium._core import contest_pairs as core
from podium.kernels.contest_models import (
    LOGIT,
    RAO_KUPPER,
    ContestDerivatives,
    ContestProblem,
    assemble_derivatives,
    build_dense_hessian,
    center_components,
    compute_derivatives,
    compute_pair_terms,
)
from podium.kernels.dispatch import F8, run_in_threads

__all__ = [
    "FLAT",
    "FLAT_STALL",
    "LONGEST",
    "SMOOTH",
    "STALL",
    "DenseNewton",
    "SparseNewton",
    "iterate_newton",
]

LONGEST = 8.0  # largest change of a score in one step, unless scores are already larger
# smaller steps are always taken in full: the problem is quadratic there, and slopes are rounding
SMOOTH = 1e-5
# steps that do not shrink are rounding: below the first, or the second where it is flat
STALL, FLAT_STALL = (1e-6, 1e-3)
FLAT = 1e-12  # fraction of the second derivative along an axis below which a gradient is flat
CHUNK, CHUNKS = 1 << 20, 8  # pairs from which the loops are split, and into how many chunks
FAR = 500.0  # scores further apart have strengths beyond the range of a double
VERIFY = 1e-3  # accuracy of the last step, so that a direction of small curvature is not missed
# iterations and steps after which a query of up to TABLE items is solved with its dense Hessian
ROUNDS, STEPS, TABLE = (200, 15, 3_000)


class NewtonEngine(Protocol):
    """Derivatives and steps of one problem."""

    problem: ContestProblem

    def compute_derivatives(self, x: F8) -> ContestDerivatives:
        """The derivatives at x."""

    def compute_step(self, at: ContestDerivatives) -> F8:
        """The minimizer of the quadratic model at that point."""

    def has_converged(self, at: ContestDerivatives, longest: float, tolerance: float) -> bool:
        """Whether a full step of that length has converged."""


def iterate_newton(
    engine: NewtonEngine, x: F8, tolerance: float, max_iterations: int
) -> tuple[F8, F8, int, bool]:
    """Damped Newton steps: the solution, its gradient, the number of steps and whether they converged."""
    x = center_components(engine.problem, x)
    at = engine.compute_derivatives(x)
    before = np.inf
    for step in range(1, max_iterations + 1):
        move, longest = _compute_limited_step(engine, x, at)
        if not np.isfinite(longest):  # without a prior there may be no finite solution
            break
        x, at, share = _line_search(engine, x, at, move, longest)
        # at rounding level steps stop shrinking: accept that as converged
        stalled = 0.25 * before <= longest <= (FLAT_STALL if compute_axis_error(at) <= FLAT else STALL)
        # the length of a shortened step is no measure of the distance to the solution
        if share == 1.0 and (stalled or engine.has_converged(at, longest, tolerance)):
            return x, at.gradient, step, True
        before = longest
    return x, at.gradient, max_iterations, False


def _compute_limited_step(engine: NewtonEngine, x: F8, at: ContestDerivatives) -> tuple[F8, float]:
    """A step and its length.

    A step that is too long is recomputed with a larger ridge: shortening it as a whole because of one flat
    direction would make no progress in all others.
    """
    move = engine.compute_step(at)
    longest, limit = _largest_magnitude(move), max(LONGEST, _largest_magnitude(x))
    if limit < longest < np.inf:
        # a step is at most the gradient over the ridge: this ridge limits it to about `limit`
        more = _largest_magnitude(at.gradient) / limit
        corner = at.corner + more * np.eye(len(at.corner))
        move = engine.compute_step(
            at._replace(ridge=at.ridge + more, diagonal=at.diagonal + more, corner=corner)
        )
        longest = _largest_magnitude(move)
        if limit < longest < np.inf:
            move, longest = move * (limit / longest), limit
    return move, longest


def _line_search(
    engine: NewtonEngine, x: F8, at: ContestDerivatives, move: F8, longest: float
) -> tuple[F8, ContestDerivatives, float]:
    """Move along the step, shortened while the slope at its end shows a large overshoot."""
    problem, share = engine.problem, 1.0
    if problem.model.kind == RAO_KUPPER and move[problem.size] < 0:  # the width must stay positive
        share = min(share, -0.9 * x[problem.size] / move[problem.size])
    down = max(-_dot(at.gradient, move), 0.0)
    while True:
        new = center_components(problem, x + share * move)
        there = engine.compute_derivatives(new)
        rising = _dot(there.gradient, move)
        # slopes decide, not values: near the minimum values differ by less than rounding
        if longest * share <= SMOOTH or rising <= 0.5 * down:
            return new, there, share
        # the secant's zero of the slope, kept within a safe range
        share *= min(max(down / (down + rising), 0.1), 0.7)


def _largest_magnitude(values: F8) -> float:
    return float(np.abs(values).max(initial=0.0))


class DenseNewton:
    """Steps with the dense Hessian, in numpy."""

    def __init__(self, problem: ContestProblem) -> None:
        self.problem = problem

    def compute_derivatives(self, x: F8) -> ContestDerivatives:
        """See `contest_models.compute_derivatives`."""
        return compute_derivatives(self.problem, x)

    def compute_step(self, at: ContestDerivatives) -> F8:
        """Solve the whole system."""
        matrix, problem = build_dense_hessian(self.problem, at), self.problem
        if problem.model.l2 == 0 and problem.model.shape == 1:
            # without a prior the level of a component is undetermined: pin it
            matrix[: problem.size, : problem.size] += problem.component[:, None] == problem.component
        try:
            return np.asarray(-np.linalg.solve(matrix, at.gradient), np.float64)
        except np.linalg.LinAlgError:  # no prior, and one side never lost: there is no minimum
            return np.full_like(at.gradient, np.inf)

    def compute_value(self, x: F8) -> float:
        """The negative log likelihood."""
        return float(compute_pair_terms(self.problem, x).value.sum())

    def has_converged(self, at: ContestDerivatives, longest: float, tolerance: float) -> bool:
        """The next step would be even shorter."""
        return longest <= tolerance


def _dot(a: F8, b: F8) -> float:
    """Sum of products in a fixed order; a threaded library could change it."""
    return float((a * b).sum())


def compute_axis_error(at: ContestDerivatives) -> float:
    """The largest step along one axis."""
    return _largest_magnitude(at.gradient / at.diagonal)


class SparseNewton:
    """Steps by conjugate gradients over the pairs."""

    def __init__(self, problem: ContestProblem, tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        side = np.zeros(0) if problem.side is None else problem.side
        self.pairs = (problem.first, problem.second, problem.won, problem.lost, problem.tied, side)
        n = len(problem.first)
        chunks = CHUNKS if n >= CHUNK else 1
        self.cuts = np.linspace(0, n, chunks + 1).astype(np.int64)
        self.room = np.empty((chunks, problem.size, 3 + problem.unknowns - problem.size))
        self.product = np.empty((chunks, problem.size, 2))
        self.bends = [np.empty(n), np.empty(n)]  # second derivatives at the last point and at the trial point
        self.forcing, self.steps = 0.1, 0
        self.table = problem.size <= TABLE

    def _run_by_chunk(self, kernel: Any, *arguments: Any) -> None:
        run_in_threads(kernel, self.cuts, self.cuts, *arguments)

    def compute_derivatives(self, x: F8) -> ContestDerivatives:
        """The derivatives at x."""
        # the derivatives at the last point keep their array while a trial point writes into the other
        self.bends.reverse()
        sums, corners = self._sums(x)
        return assemble_derivatives(self.problem, x, self.bends[0], sums, corners)

    def _sums(self, x: F8) -> tuple[F8, F8]:
        """Gradient, diagonal and borders by item, and the other sums; writes second derivatives by pair."""
        problem, model = self.problem, self.problem.model
        bend, corners = self.bends[0], np.zeros((len(self.cuts) - 1, 5))
        if model.kind == LOGIT and problem.side is None and np.ptp(x) < FAR:
            # one exponential per item instead of one per pair
            strength = np.exp(x - x.max())
            self._run_by_chunk(
                core.compute_logit_derivatives,
                self.pairs,
                problem.base,
                model.half,
                strength,
                bend,
                self.room,
            )
        else:
            law = (model.kind, model.half, x, problem.size)
            self._run_by_chunk(
                core.compute_derivatives, self.pairs, problem.base, *law, bend, self.room, corners
            )
        return self.room.sum(axis=0).T[1:], corners.sum(axis=0)

    def compute_value(self, x: F8) -> float:
        """The negative log likelihood."""
        problem, model = self.problem, self.problem.model
        width = float(x[problem.size]) if problem.widths else 0.0
        advantage = float(x[-1]) if problem.side is not None else 0.0
        out = np.zeros(len(self.cuts) - 1)
        self._run_by_chunk(
            core.compute_values, self.pairs, problem.base, model.kind, model.half, x, width, advantage, out
        )
        return float(out.sum())

    def multiply_hessian(self, at: ContestDerivatives, v: F8) -> F8:
        """The Hessian times v."""
        size = self.problem.size
        items = self._pair_product(at.bend, v[:size]) + at.ridge * v[:size]
        if len(v) == size:
            return np.asarray(items)
        return np.concatenate((items + v[size:] @ at.border, at.border @ v[:size] + at.corner @ v[size:]))

    def _pair_product(self, bend: F8, v: F8) -> F8:
        """The contests' part of it, without the prior."""
        self._run_by_chunk(core.multiply_hessian, *self.pairs[:2], self.problem.base, bend, v, self.product)
        return np.asarray(self.product.sum(axis=0)[:, 1], np.float64)

    def compute_step(self, at: ContestDerivatives) -> F8:
        """Preconditioned conjugate gradients, as accurate as this step requires."""
        off, self.steps = compute_axis_error(at), self.steps + 1
        # far from the solution the quadratic model is rough, so an accurate solve would waste iterations
        self.forcing = (
            min(0.1, max(0.3 * off, 0.03 * self.tolerance / off)) if off > self.tolerance else VERIFY
        )
        move = np.zeros_like(at.gradient)
        rest = -at.gradient
        z = rest / at.diagonal
        along, size = z.copy(), _dot(rest, z)
        goal = size * self.forcing**2
        rounds = 0
        while size > goal and rounds < 10 * len(move) + 100:
            image = self.multiply_hessian(at, along)
            bend = _dot(along, image)
            if bend <= 0:  # flat except for rounding
                break
            length = size / bend
            move += length * along
            rest -= length * image
            z = rest / at.diagonal
            size, old = _dot(rest, z), size
            along = z + (size / old) * along
            rounds += 1
            if self.table and (rounds == ROUNDS or self.steps > STEPS):
                # the step is exact, so its length shows the remaining error
                self.forcing = 0.0
                # a weakly connected graph, on which conjugate gradients are slow
                return DenseNewton(self.problem).compute_step(at)
        return move

    def has_converged(self, at: ContestDerivatives, longest: float, tolerance: float) -> bool:
        """Whether the step was accurate enough to show the remaining error."""
        return longest <= tolerance and self.forcing <= VERIFY
