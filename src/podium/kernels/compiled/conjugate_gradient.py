"""Shared parts of Newton steps by conjugate gradients: the vectors of a solve, and the step length."""

from __future__ import annotations

from numba import njit

from podium.kernels.newton import LONGEST, SURE

FORCING = 1e-5  # no Newton system is solved more accurately than this: the next step corrects the rest


@njit(cache=True, nogil=True)
def start_direction(diagonal, r, p):
    """The first direction; returns the residual's norm in the metric of the diagonal."""
    rho = 0.0
    for i in range(len(r)):
        p[i] = r[i] / diagonal[i] if diagonal[i] > 0 else 0.0
        rho += r[i] * p[i]
    return rho


@njit(cache=True, nogil=True)
def advance_solution(diagonal, x, r, p, image, rho):
    """One step along p, whose product with the matrix is `image`; the new residual norm, 0 when done."""
    bend = dot(p, image)
    if bend <= 0:  # no curvature is left in this direction
        return 0.0
    step, new = rho / bend, 0.0
    for i in range(len(x)):
        x[i] += step * p[i]
        r[i] -= step * image[i]
        if diagonal[i] > 0:
            new += r[i] * r[i] / diagonal[i]
    for i in range(len(x)):
        p[i] = (r[i] / diagonal[i] if diagonal[i] > 0 else 0.0) + new / rho * p[i]
    return new


@njit(cache=True, nogil=True)
def dot(a, b):
    """Sum of products."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def center_vector(x):
    """Shift to mean 0."""
    mean = 0.0
    for i in range(len(x)):
        mean += x[i]
    mean /= len(x)
    for i in range(len(x)):
        x[i] -= mean


@njit(cache=True, nogil=True)
def limit_step(move):
    """The fraction of a step that moves no score too far."""
    most = 1e-300
    for i in range(len(move)):
        most = max(most, abs(move[i]))
    return min(1.0, LONGEST / most)


@njit(cache=True, nogil=True)
def is_step_accepted(before, after, promise):
    """Whether a step with this predicted gain increased the value enough, or is too small to check."""
    return promise <= SURE * max(abs(before), 1.0) or after >= before + 1e-4 * promise
