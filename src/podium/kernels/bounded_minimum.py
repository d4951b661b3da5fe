"""Smooth minimization, optionally with nonnegative variables: limited-memory BFGS and active sets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import B1, F8

__all__ = ["Minimum", "minimize_smooth", "solve_nonnegative"]

MEMORY = 10
ARMIJO = 1e-4
HALVINGS = 40


class Minimum(NamedTuple):
    """The point reached, its value, the number of steps, and whether a tolerance was met."""

    x: F8
    value: float
    steps: int
    converged: bool


def minimize_smooth(
    objective: Callable[[F8], tuple[float, F8]],
    begin: F8,
    *,
    nonnegative: bool = False,
    steps: int = 15_000,
    value_tolerance: float = 2.2e-9,
    slope_tolerance: float = 1e-5,
    on_step: Callable[[int], object] | None = None,
) -> Minimum:
    """Minimize `objective` (value and gradient) from `begin` by limited-memory BFGS.

    With `nonnegative` variables the step is taken in the free ones and projected. Ends when the projected
    gradient is at most `slope_tolerance`, or a step gains at most `value_tolerance` of the value.
    """
    x = np.maximum(begin, 0.0) if nonnegative else np.array(begin, np.float64)
    value, slope = objective(x)
    pairs: deque[tuple[F8, F8, float]] = deque(maxlen=MEMORY)
    for step in range(steps):
        # a variable at its bound that would leave the region stays there
        free = ~((x <= 0) & (slope >= 0)) if nonnegative else np.ones(len(x), np.bool_)
        if np.abs(np.where(free, slope, 0.0)).max(initial=0.0) <= slope_tolerance:
            return Minimum(x, value, step, True)
        along = _multiply_inverse(pairs, np.where(free, slope, 0.0), free)
        # rounding can turn the quasi-Newton step uphill: forget the curvature and go straight down
        if along @ slope >= 0:
            pairs.clear()
            along = -np.where(free, slope, 0.0)
        # without curvature the length of a step is unknown; the first one changes all variables by 1 in total
        length = 1.0 if pairs else min(1.0, 1 / max(float(np.abs(along).sum()), 1e-300))
        new = _search_line(objective, x, value, slope, along, length, nonnegative)
        if new is None:
            if not pairs:
                return Minimum(x, value, step, True)  # no descent is left at the precision of the values
            # outdated curvature can be the cause: try again along the gradient before giving up
            pairs.clear()
            continue
        to, reached, bend = new
        moved, turned = to - x, bend - slope
        curvature = float(moved @ turned)
        # a pair without positive curvature would make the inverse indefinite
        if curvature > 1e-12 * float(turned @ turned):
            pairs.append((moved, turned, curvature))
        gain = value - reached
        scale = max(abs(value), abs(reached), 1.0)
        x, value, slope = to, reached, bend
        if on_step is not None:
            on_step(step + 1)
        if gain <= value_tolerance * scale:
            return Minimum(x, value, step + 1, True)
    return Minimum(x, value, steps, False)


def _multiply_inverse(pairs: deque[tuple[F8, F8, float]], slope: F8, free: B1) -> F8:
    """The quasi-Newton step in the free variables (the two-loop recursion)."""
    along = slope.copy()
    shares = []
    for moved, turned, curvature in reversed(pairs):
        share = float(moved @ along) / curvature
        shares.append(share)
        along -= share * turned
    if pairs:
        _, turned, curvature = pairs[-1]
        # the newest curvature scales the initial inverse (Nocedal and Wright, Numerical Optimization, 7.2)
        along *= curvature / float(turned @ turned)
    for (moved, turned, curvature), share in zip(pairs, reversed(shares), strict=True):
        along += (share - float(turned @ along) / curvature) * moved
    return np.where(free, -along, 0.0)


def _search_line(
    objective: Callable[[F8], tuple[float, F8]], x: F8, value: float, slope: F8, along: F8, length: float,
    nonnegative: bool,
) -> tuple[F8, float, F8] | None:  # fmt: skip
    """Shorten the step until it gains enough; lengthen it while the slope along it stays steep."""
    best = None
    for _ in range(HALVINGS):
        to = x + length * along
        if nonnegative:
            to = np.maximum(to, 0.0)
        moved = to - x
        reached, bend = objective(to)
        if np.isfinite(reached) and reached <= value + ARMIJO * float(slope @ moved):
            best = (to, reached, bend)
            # a step that is still going downhill steeply brings no curvature worth remembering
            if float(bend @ moved) >= 0.9 * float(slope @ moved) or length >= 1e6:
                return best
            length *= 2.5
            continue
        if best is not None:
            return best
        # the minimum of the parabola through value, slope and the value reached, kept within reason
        fall = float(slope @ moved)
        bow = reached - value - fall
        part = -fall / (2 * bow) if np.isfinite(bow) and bow > 0 else 0.5
        length *= min(max(part, 0.1), 0.5)
    return best


def solve_nonnegative(gram: F8, towards: F8) -> F8:
    """The x >= 0 that minimizes x' gram x / 2 - towards' x (Lawson and Hanson's active sets)."""
    size = len(towards)
    x, used = np.zeros(size), np.zeros(size, np.bool_)
    # rounding error of the products with gram: a smaller pull is no reason to free a variable
    limit = 10 * np.finfo(float).eps * max(float(np.abs(gram).max(initial=0.0)), 1e-300) * size
    for _ in range(3 * size + 10):
        pull = towards - gram @ x
        pull[used] = -np.inf
        if used.all() or pull.max(initial=-np.inf) <= limit * max(float(np.abs(x).max(initial=0.0)), 1.0):
            break
        used[int(pull.argmax())] = True
        while True:
            at = np.flatnonzero(used)
            wanted = np.linalg.solve(gram[np.ix_(at, at)], towards[at])
            if wanted.min(initial=np.inf) > 0:
                x[:] = 0.0
                x[at] = wanted
                break
            # go towards the wanted point until the first variable reaches zero, and drop it
            now = x[at]
            low = wanted <= 0
            part = float((now[low] / (now[low] - wanted[low])).min())
            x[at] = now + part * (wanted - now)
            # the variable that reached zero misses it by rounding
            gone = at[(x[at] <= 1e-15 * max(1.0, float(np.abs(x).max()))) & low]
            x[gone] = 0.0
            used[gone] = False
            if not used.any():
                break
    return x
