"""Leading singular vectors of all pairwise matrices at once, as numpy expressions."""

from __future__ import annotations

import numpy as np

from podium.kernels import segments
from podium.kernels.preference_matrices import MatrixOperator, select_matrices
from podium.kernels.preference_svd import PATIENCE, SLOW, TOLERANCE, LeadingVectors


def compute_leading_vectors(m, tolerance=TOLERANCE, max_iterations=2000):
    """The leading singular vectors and value of every matrix."""
    operator = MatrixOperator(m)
    v, steps = _iterate_power(operator, tolerance, max_iterations)
    open_ = np.flatnonzero(steps < 0)
    steps = np.abs(steps)
    done = True
    if len(open_):
        part, inside = (
            MatrixOperator(select_matrices(m, open_)),
            segments.gather_segments(m.starts_out, open_)[1],
        )
        v[inside], more = _iterate_conjugate(part, v[inside], tolerance, max_iterations)
        steps[open_] += more
        done = bool((more < max_iterations).all())
    u = np.maximum(operator.multiply(v), 0.0)
    sigma = _compute_norms(operator, u)
    u *= _invert_norms(sigma)[operator.owner]
    return LeadingVectors(u, v, sigma, steps, done)


def _compute_norms(a, x):
    """The norm of each matrix's part of the vector."""
    return np.sqrt(a.compute_dots(x, x))


def _invert_norms(norm):
    """1 / norm, and 0 for a matrix of zeros."""
    return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)


def _iterate_power(a, tolerance, most):
    """Power iteration with Y'Y; steps are negative for matrices that did not converge fast enough."""
    v = _clip_and_normalize(a, a.multiply_transposed(np.ones(a.size)))
    steps = np.zeros(a.count, np.int64)
    running, before = np.ones(a.count, np.bool_), np.full(a.count, np.inf)
    for step in range(1, most + 1):
        new = _clip_and_normalize(a, a.multiply_transposed(a.multiply(v)))
        change = _compute_norms(a, new - v)
        v = np.where(running[a.owner], new, v)
        done = running & (change <= tolerance)
        slow = running & ~done & (step >= PATIENCE) & (change > SLOW * before)
        steps[done], steps[slow] = step, -step
        running &= ~(done | slow)
        before = change
        if not running.any():
            break
    steps[running] = -most
    return v, steps


def _clip_and_normalize(a, x):
    """Every part at length one, with negative rounding noise removed."""
    x = np.maximum(x, 0.0)
    return x * _invert_norms(_compute_norms(a, x))[a.owner]


def _iterate_conjugate(a, x, tolerance, most):
    """Locally optimal conjugate directions: the best vector spanned by x, its residual and the last step."""
    steps, running = np.zeros(a.count, np.int64), np.ones(a.count, np.bool_)
    p, ap = np.zeros(a.size), np.zeros(a.size)
    for _ in range(most):
        ax = a.multiply_transposed(a.multiply(x))
        rho = a.compute_dots(x, ax)
        r = ax - rho[a.owner] * x
        running &= _compute_norms(a, r) > tolerance * rho
        if not running.any():
            break
        steps[running] += 1
        r = _normalize_parts(a, r - a.compute_dots(r, x)[a.owner] * x)
        ar = a.multiply_transposed(a.multiply(r))
        # without orthogonalization the small eigenproblem becomes ill-conditioned near convergence
        for basis, image in ((x, ax), (r, ar)):
            share = a.compute_dots(p, basis)[a.owner]
            p, ap = p - share * basis, ap - share * image
        length = _invert_norms(_compute_norms(a, p))[a.owner]
        p, ap = p * length, ap * length
        c = _find_best_weights(a, (x, r, p), (ax, ar, ap))[:, a.owner]
        p, ap = c[1] * r + c[2] * p, c[1] * ar + c[2] * ap
        x = np.where(running[a.owner], _normalize_parts(a, c[0] * x + p), x)
    return _clip_and_normalize(a, x), steps


def _normalize_parts(a, x):
    return x * _invert_norms(_compute_norms(a, x))[a.owner]


def _find_best_weights(a, basis, image):
    """For every matrix, the weights of the basis vectors that maximize the Rayleigh quotient."""
    table = np.array([[a.compute_dots(b, i) for i in image] for b in basis])
    vectors = np.linalg.eigh((table + table.swapaxes(0, 1)).transpose(2, 0, 1) / 2)[1]
    best = vectors[:, :, -1].T
    return best * np.where(best[0] < 0, -1.0, 1.0)
