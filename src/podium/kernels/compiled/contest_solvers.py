"""Newton steps for contests: small queries with a dense Hessian, and the loops over pairs of large ones."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LOGIT, PROBIT, DAVIDSON, RAO_KUPPER = range(4)  # as in kernels.contest_models
ROOT_TWO, ROOT_TWO_PI = math.sqrt(2), math.sqrt(2 * math.pi)
TAIL = -5.0  # below this the normal CDF is computed by a continued fraction


@njit(cache=True, nogil=True)
def mills_ratio(x):
    """phi(x) / Phi(x)."""
    if x > TAIL:
        return math.exp(-x * x / 2) / ROOT_TWO_PI / (0.5 * math.erfc(-x / ROOT_TWO))
    below = -x
    for k in range(60, 0, -1):
        below = k / below - x
    return below


@njit(cache=True, nogil=True)
def log_normal_cdf(x):
    """log Phi(x)."""
    if x > TAIL:
        return math.log(0.5 * math.erfc(-x / ROOT_TWO))
    return -x * x / 2 - math.log(ROOT_TWO_PI * mills_ratio(x))


@njit(cache=True, nogil=True)
def logistic(d):
    """1 / (1 + exp(-d)) and its complement, both to full precision."""
    z = math.exp(-abs(d))
    small, large = z / (1 + z), 1 / (1 + z)
    return (large, small) if d >= 0 else (small, large)


@njit(cache=True, nogil=True)
def softplus(d):
    """log(1 + exp(d))."""
    return max(d, 0.0) + math.log1p(math.exp(-abs(d)))


@njit(cache=True, nogil=True)
def compute_pair_derivatives(kind, d, e, won, lost, tied):
    """First and second derivatives of one pair: by d, d d, e, d e, e e."""
    if kind == LOGIT:
        p, q = logistic(d)
        return lost * p - won * q, (won + lost) * p * q, 0.0, 0.0, 0.0
    if kind == PROBIT:
        up, down = mills_ratio(d), mills_ratio(-d)
        return lost * down - won * up, won * up * (up + d) + lost * down * (down - d), 0.0, 0.0, 0.0
    if kind == DAVIDSON:
        top = max(abs(d) / 2, e)
        a, b, c = math.exp(d / 2 - top), math.exp(-d / 2 - top), math.exp(e - top)
        z = a + b + c
        p, q, r, n = a / z, b / z, c / z, won + lost + tied
        return (
            lost * (p + r / 2) - won * (q + r / 2) + tied * (p - q) / 2,
            n / 4 * (4 * p * q + r * (p + q)),
            n * r - tied,
            -n / 2 * (p - q) * r,
            n * r * (p + q),
        )
    p, q = logistic(d - e)
    u, v = logistic(d + e)
    up, down = -(won + tied) * q, (lost + tied) * u
    bend_up, bend_down = (won + tied) * p * q, (lost + tied) * u * v
    gap = -math.expm1(-2 * e)
    return (
        up + down,
        bend_up + bend_down,
        down - up - 2 * tied / gap,
        bend_down - bend_up,
        bend_up + bend_down + 4 * tied * math.exp(-2 * e) / gap**2,
    )


@njit(cache=True, nogil=True)
def compute_pair_value(kind, d, e, won, lost, tied):
    """The negative log likelihood of one pair."""
    if kind == LOGIT:
        return (won + lost) * math.log1p(math.exp(-abs(d))) + won * max(-d, 0.0) + lost * max(d, 0.0)
    if kind == PROBIT:
        return -won * log_normal_cdf(d) - lost * log_normal_cdf(-d)
    if kind == DAVIDSON:
        top = max(abs(d) / 2, e)
        z = math.exp(d / 2 - top) + math.exp(-d / 2 - top) + math.exp(e - top)
        return (won + lost + tied) * (top + math.log(z)) - (won - lost) * d / 2 - tied * e
    value = (won + tied) * softplus(e - d) + (lost + tied) * softplus(e + d)
    return value - tied * (2 * e + math.log(-math.expm1(-2 * e)))


@njit(cache=True, nogil=True)
def split_ties(half, won, lost, tied):
    """Wins and losses, plus half of the ties where ties are halved."""
    return (won + 0.5 * tied, lost + 0.5 * tied) if half else (won, lost)


@njit(cache=True, nogil=True)
def sum_pair_values(pairs, begin, end, base, kind, half, x, e, a):
    """The negative log likelihood of a range of pairs."""
    first, second, won, lost, tied, side = pairs
    total = 0.0
    for p in range(begin, end):
        d = x[first[p] - base] - x[second[p] - base] + (side[p] * a if len(side) else 0.0)
        w, b = split_ties(half, won[p], lost[p], tied[p])
        total += compute_pair_value(kind, d, e, w, b, tied[p])
    return total


@njit(cache=True, nogil=True)
def compute_dense_derivatives(pairs, base, kind, half, x, size, gradient, matrix):
    """Gradient and lower half of the Hessian of all pairs at x = scores, width, advantage."""
    first, second, won, lost, tied, side = pairs
    gradient[:] = 0.0
    matrix[:] = 0.0
    e = x[size] if kind >= DAVIDSON else 0.0
    a = x[-1] if len(side) else 0.0
    last = len(x) - 1
    for p in range(len(first)):
        i, j = first[p] - base, second[p] - base
        s = side[p] if len(side) else 0.0
        w, b = split_ties(half, won[p], lost[p], tied[p])
        g, h, ge, de, ee = compute_pair_derivatives(kind, x[i] - x[j] + s * a, e, w, b, tied[p])
        gradient[i] += g
        gradient[j] -= g
        matrix[i, i] += h
        matrix[j, j] += h
        matrix[j, i] -= h  # j > i
        if kind >= DAVIDSON:
            gradient[size] += ge
            matrix[size, i] += de
            matrix[size, j] -= de
            matrix[size, size] += ee
        if len(side):
            gradient[last] += s * g
            matrix[last, i] += s * h
            matrix[last, j] -= s * h
            matrix[last, last] += s * s * h
            if kind >= DAVIDSON:
                matrix[last, size] += s * de


@njit(cache=True, nogil=True)
def remove_component_excess(gradient, matrix, size, label, base, total, number):
    """Remove the sum of each component's gradient, zero except for rounding, in proportion to the diagonal."""
    total[:] = 0.0
    number[:] = 0.0
    for i in range(size):
        total[label[i] - base] += gradient[i]
        number[label[i] - base] += matrix[i, i]
    for i in range(size):
        c = label[i] - base
        if number[c] > 0:
            gradient[i] -= matrix[i, i] * total[c] / number[c]


@njit(cache=True, nogil=True)
def center_components(x, size, label, base, total, number, shape):
    """Shift each component to the level its prior prefers: mean 0, or mean strength 1."""
    top = 0.0
    if shape > 1:
        for i in range(size):
            top = max(top, x[i])
    total[:] = 0.0
    number[:] = 0.0
    for i in range(size):
        total[label[i] - base] += math.exp(x[i] - top) if shape > 1 else x[i]
        number[label[i] - base] += 1
    for i in range(size):
        mean = total[label[i] - base] / number[label[i] - base]
        x[i] -= top + math.log(mean) if shape > 1 else mean


@njit(cache=True, nogil=True)
def add_prior(x, size, l2, shape, extra, gradient, matrix):
    """Add the prior; `matrix` gets it on its diagonal."""
    for i in range(len(x)):
        ridge = l2 if i < size else extra
        gradient[i] += ridge * x[i]
        matrix[i, i] += ridge
        if shape > 1 and i < size:
            strength = (shape - 1) * math.exp(x[i])
            gradient[i] += strength - (shape - 1)
            matrix[i, i] += strength


@njit(cache=True, nogil=True)
def compute_prior_value(x, size, l2, shape, extra):
    """The negative log of the prior."""
    total = 0.0
    for i in range(len(x)):
        total += (l2 if i < size else extra) / 2 * x[i] ** 2
        if shape > 1 and i < size:
            total += (shape - 1) * (math.exp(x[i]) - 1 - x[i])
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a, b, n):
    """Sum of the first n products."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def solve_cholesky_step(matrix, gradient, move):
    """Solve matrix . move = -gradient; the lower half of the matrix is replaced by its factor."""
    n = len(move)
    for i in range(n):
        row = matrix[i]
        whole = row[i]
        for j in range(i):
            row[j] = (row[j] - dot(row, matrix[j], j)) / matrix[j, j]
        row[i] = math.sqrt(max(whole - dot(row, row, i), 1e-15 * whole + 1e-300))
        move[i] = (-gradient[i] - dot(row, move, i)) / row[i]
    for i in range(n - 1, -1, -1):
        move[i] /= matrix[i, i]
        for j in range(i):
            move[j] -= matrix[i, j] * move[i]


@njit(cache=True, nogil=True)
def solve_small_queries(first_query, last_query, contests, label, law, limits, largest, found):
    """Solve all queries of up to `largest` items in a range; see `kernels.contest_solvers.iterate_newton`."""
    starts, pair_starts, first, second, won, lost, tied, side = contests
    kind, half, l2, shape, extra = law
    scores, width, advantage, gradient, objective, iterations, converged = found
    for q in range(first_query, last_query):
        base, size = starts[q], starts[q + 1] - starts[q]
        if size > largest or size == 0:
            continue
        a, b = pair_starts[q], pair_starts[q + 1]
        sided = side[a:b] if len(side) else side
        pairs = (first[a:b], second[a:b], won[a:b], lost[a:b], tied[a:b], sided)
        share = compute_tie_share(pairs)
        here = LOGIT if kind >= DAVIDSON and share == 0 else kind
        x = build_start(here, share, scores[base : base + size], len(side) > 0)
        g = np.empty(len(x))
        law_here = (here, half, l2, shape, extra)
        labels = label[base : base + size]
        iterations[q], converged[q] = iterate_newton(pairs, base, law_here, labels, limits, x, size, g)
        scores[base : base + size] = x[:size]
        e = x[size] if here >= DAVIDSON else 0.0
        if here >= DAVIDSON:
            width[q] = e
        if len(side):
            advantage[q] = x[-1]
        gradient[q] = largest_magnitude(g)
        objective[q] = sum_pair_values(pairs, 0, b - a, base, here, half, x, e, x[-1])
        objective[q] += compute_prior_value(x, size, l2, shape, extra)


@njit(cache=True, nogil=True)
def build_start(kind, share, scores, sided):
    """Initial unknowns: scores, the width that gives the observed fraction of ties, no advantage."""
    size, wide = len(scores), kind >= DAVIDSON
    x = np.zeros(size + (1 if wide else 0) + (1 if sided else 0))
    x[:size] = scores
    if wide:
        share = min(max(share, 1e-6), 1 - 1e-6)
        x[size] = math.log(2 * share / (1 - share)) if kind == DAVIDSON else 2 * math.atanh(share)
    return x


@njit(cache=True, nogil=True)
def largest_magnitude(values):
    """The largest magnitude."""
    most = 0.0
    for v in values:
        most = max(most, abs(v))
    return most


@njit(cache=True, nogil=True)
def compute_tie_share(pairs):
    """The fraction of ties among all votes."""
    ties = all_votes = 0.0
    for p in range(len(pairs[0])):
        ties += pairs[4][p]
        all_votes += pairs[2][p] + pairs[3][p] + pairs[4][p]
    return ties / all_votes if all_votes > 0 else 0.0


@njit(cache=True, nogil=True)
def compute_centered_derivatives(pairs, base, law, label, x, size, gradient, matrix, room):
    """Center x, and compute the gradient and the Hessian there."""
    kind, half, l2, shape, extra = law
    total, number = room
    center_components(x, size, label, base, total, number, shape)
    compute_dense_derivatives(pairs, base, kind, half, x, size, gradient, matrix)
    remove_component_excess(gradient, matrix, size, label, base, total, number)
    add_prior(x, size, l2, shape, extra, gradient, matrix)
    if l2 == 0 and shape == 1:  # the level of a component is undetermined: pin it
        for i in range(size):
            for j in range(i + 1):
                if label[i] == label[j]:
                    matrix[i, j] += 1.0


@njit(cache=True, nogil=True)
def iterate_newton(pairs, base, law, label, limits, x, size, gradient):
    """Damped Newton steps; leaves x and its gradient at the end. The steps, and whether they converged."""
    tolerance, max_iterations, longest_step, smooth, stall, flat_stall, flat = limits
    n = len(x)
    matrix, move, new = np.empty((n, n)), np.empty(n), np.empty(n)
    room = (np.empty(size), np.empty(size))
    compute_centered_derivatives(pairs, base, law, label, x, size, gradient, matrix, room)
    before = np.inf
    for step in range(1, max_iterations + 1):
        solve_cholesky_step(matrix, gradient, move)
        limit = max(longest_step, largest_magnitude(x))
        if largest_magnitude(move) > limit:  # see `kernels.contest_solvers`
            compute_centered_derivatives(pairs, base, law, label, x, size, gradient, matrix, room)
            solve_steeper_step(matrix, gradient, move, limit)
        longest = largest_magnitude(move)
        if not math.isfinite(longest):  # without a prior there may be no finite solution
            break
        share = 1.0
        if law[0] == RAO_KUPPER and move[size] < 0:  # the width must stay positive
            share = min(share, -0.9 * x[size] / move[size])
        down = max(-dot(gradient, move, n), 0.0)
        while True:
            for i in range(n):
                new[i] = x[i] + share * move[i]
            compute_centered_derivatives(pairs, base, law, label, new, size, gradient, matrix, room)
            rising = dot(gradient, move, n)
            if longest * share <= smooth or rising <= 0.5 * down:
                break
            share *= min(max(down / (down + rising), 0.1), 0.7)
        x[:] = new
        most = flat_stall if compute_axis_error(gradient, matrix) <= flat else stall
        if share == 1.0 and (longest <= tolerance or 0.25 * before <= longest <= most):
            return step, True
        before = longest
    return max_iterations, False


@njit(cache=True, nogil=True)
def compute_axis_error(gradient, matrix):
    """The largest step along one axis."""
    most = 0.0
    for i in range(len(gradient)):
        most = max(most, abs(gradient[i]) / max(matrix[i, i], 1e-300))
    return most


@njit(cache=True, nogil=True)
def solve_steeper_step(matrix, gradient, move, limit):
    """A step with a larger ridge, and no longer than the limit."""
    more = largest_magnitude(gradient) / limit
    for i in range(len(matrix)):
        matrix[i, i] += more
    solve_cholesky_step(matrix, gradient, move)
    longest = largest_magnitude(move)
    if longest > limit:
        for i in range(len(move)):
            move[i] *= limit / longest
