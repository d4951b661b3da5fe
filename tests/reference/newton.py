"""Newton's method for small smooth concave functions: dense, damped, and with steps of limited length."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from podium.kernels.dispatch import F8

__all__ = ["LONGEST", "SURE", "ConcaveFunction", "maximize_concave"]

# largest change of a score in one step; far from the maximum the quadratic model is poor anyway
LONGEST = 4.0
SURE = 1e-9  # steps with a smaller predicted relative gain are not checked: rounding would decide


class ConcaveFunction(Protocol):
    """A function to maximize, invariant to a common shift of the scores."""

    scale: float  # the gradient is measured relative to this

    def value(self, score: F8) -> float:
        """The function itself."""

    def slopes(self, score: F8) -> tuple[F8, F8]:
        """The gradient and the negated Hessian."""


def maximize_concave(
    function: ConcaveFunction, score: F8, tolerance: float, most_steps: int
) -> tuple[F8, float, int, float]:
    """The scores with mean 0 at the maximum; the largest gradient component, the steps and the value there.

    Starts at `score` and stops when the gradient, relative to the function's scale, is at most `tolerance`;
    more steps than `most_steps` mean that it did not converge.
    """
    value, size = function.value(score), len(score)
    for step in range(most_steps + 1):
        gradient, curvature = function.slopes(score)
        left = float(np.abs(gradient).max()) / function.scale
        if left <= tolerance:
            return score, left, step, value
        if step < most_steps:
            # the gradient along a common shift is zero, so any positive value works
            flat = np.trace(curvature) / size
            move = np.linalg.lstsq(curvature + flat / size, gradient)[0]
            score, value = _take_damped_step(function, score, value, move - move.mean(), gradient)
    return score, left, most_steps + 1, value


def _take_damped_step(
    function: ConcaveFunction, score: F8, value: float, move: F8, gradient: F8
) -> tuple[F8, float]:
    """Backtracking line search: the longest step with a sufficient increase."""
    share = min(1.0, LONGEST / max(float(np.abs(move).max()), 1e-300))
    promise = float(gradient @ move)
    while True:
        new = score + share * move
        found = function.value(new)
        sure = share * promise <= SURE * max(abs(value), 1.0)
        if sure or found >= value + 1e-4 * share * promise:
            return new - new.mean(), found
        share /= 2
