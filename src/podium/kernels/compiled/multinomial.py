"""Scores of the multinomial preference model by Newton-CG steps, in time linear in the groups."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.conjugate_gradient import (
    FORCING,
    advance_solution,
    center_vector,
    dot,
    is_step_accepted,
    limit_step,
    start_direction,
)

__all__ = ["fit_scores"]


@njit(cache=True, nogil=True)
def fit_scores(
    first, last, groups, adherence, prior, tolerance, most_steps, active, score, gradient, steps, value
):
    """Fit the active queries of a range."""
    for q in range(first, last):
        size = groups.slots[q + 1] - groups.slots[q]
        a, b = groups.starts[q], groups.starts[q + 1]
        if not active[q] or size < 2 or groups.total[a:b].sum() == 0:
            continue
        net = groups.net[groups.offsets[a] : groups.offsets[b]].reshape(b - a, size)
        s = score[groups.slots[q] : groups.slots[q + 1]]
        given = (net, groups.total[a:b], adherence[a:b], prior)
        steps[q], gradient[q], value[q] = maximize_posterior(given, tolerance, most_steps, s)


@njit(cache=True, nogil=True)
def maximize_posterior(given, tolerance, most_steps, s):
    """Newton steps from s until the gradient is small relative to the largest net strength."""
    net, total, adherence, prior = given
    size = len(s)
    pull, scale = np.zeros(size), prior
    for i in range(size):
        most = 0.0
        for k in range(len(total)):
            pull[i] += adherence[k] * net[k, i]
            most += abs(net[k, i])
        scale = max(scale, most)
    up, z, trial = np.empty(net.shape), np.empty((3, len(total))), np.empty(size)
    g, diagonal = np.empty(size), np.empty(size)
    now = compute_log_posterior(given, pull, s, up, z)
    done, left = most_steps + 1, 0.0
    for step in range(most_steps + 1):
        left = compute_derivatives(given, pull, s, up, z, g, diagonal) / scale
        if left <= tolerance:
            done = step
            break
        if step == most_steps:
            break
        move = solve_newton_system(given, up, z, diagonal, g, min(0.1, max(left, FORCING)))
        center_vector(move)
        share, promise = limit_step(move), dot(g, move)
        while True:
            for i in range(size):
                trial[i] = s[i] + share * move[i]
            found = compute_log_posterior(given, pull, trial, up, z)
            if is_step_accepted(now, found, share * promise):
                break
            share /= 2
        s[:] = trial
        center_vector(s)
        now = compute_log_posterior(given, pull, s, up, z)
    return done, left, now


@njit(cache=True, nogil=True)
def compute_log_posterior(given, pull, s, up, z):
    """The log-posterior; leaves exp(t s) in `up`, and sum, sum of inverses and Z of every group in `z`."""
    _, total, adherence, prior = given
    found = dot(pull, s) - prior / 2 * dot(s, s)
    for k in range(len(total)):
        rise, fall = 0.0, 0.0
        for i in range(len(s)):
            up[k, i] = np.exp(adherence[k] * s[i])
            rise += up[k, i]
            fall += 1 / up[k, i]
        z[0, k], z[1, k], z[2, k] = rise, fall, rise * fall - len(s)
        if total[k] > 0:
            found -= total[k] * np.log(z[2, k])
    return found


@njit(cache=True, nogil=True)
def compute_derivatives(given, pull, s, up, z, g, diagonal):
    """The gradient and the diagonal of the negated Hessian; returns the largest component of the gradient."""
    _, total, adherence, prior = given
    for i in range(len(s)):
        g[i] = pull[i] - prior * s[i]
        diagonal[i] = prior
    for k in range(len(total)):
        t = adherence[k]
        for i in range(len(s)):
            win, lose = up[k, i] * z[1, k] / z[2, k], z[0, k] / up[k, i] / z[2, k]
            g[i] -= total[k] * t * (win - lose)
            diagonal[i] += total[k] * t * t * (win + lose - 2 / z[2, k] - (win - lose) ** 2)
    most = 0.0
    for i in range(len(s)):
        most = max(most, abs(g[i]))
    return most


@njit(cache=True, nogil=True)
def multiply_hessian(given, up, z, x, out):
    """The negated Hessian times x."""
    _, total, adherence, prior = given
    for i in range(len(x)):
        out[i] = prior * x[i]
    for k in range(len(total)):
        rise, fall, all_pairs = z[0, k], z[1, k], z[2, k]
        high, low = 0.0, 0.0
        for i in range(len(x)):
            high += up[k, i] * x[i]
            low += x[i] / up[k, i]
        mean = (high * fall - low * rise) / all_pairs
        weight = total[k] * adherence[k] * adherence[k] / all_pairs
        for i in range(len(x)):
            u, v = up[k, i], 1 / up[k, i]
            out[i] += weight * (
                (u * fall + v * rise) * x[i] - u * low - v * high - (u * fall - v * rise) * mean
            )


@njit(cache=True, nogil=True)
def solve_newton_system(given, up, z, diagonal, g, share):
    """Conjugate gradients, until the residual is that fraction of the gradient."""
    size = len(g)
    x, r, p, image = np.zeros(size), g.copy(), np.empty(size), np.empty(size)
    center_vector(r)  # zero except for rounding, which would persist
    rho = start_direction(diagonal, r, p)
    limit = share * share * rho
    for _ in range(2 * size + 20):
        multiply_hessian(given, up, z, p, image)
        rho = advance_solution(diagonal, x, r, p, image, rho)
        if rho <= limit:
            break
    return x
