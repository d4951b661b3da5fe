"""LambdaRank gradients query by query, and whole passes of a linear model."""

from __future__ import annotations

import numpy as np
from numba import njit

NEAR, STEEP = 1e-10, 600.0


@njit(cache=True, nogil=True)
def compute_lambdas(
    first, last, starts, scores, kind, gain, level, discount, limit, scale, weight, order, out
):
    """Gradients for a range of queries; `order` holds a guess of each query's order and is updated."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    work = np.empty((3, longest))
    for q in range(first, last):
        if scale[q] != 0.0:
            _compute_query_lambdas(
                q, starts, scores, kind, gain, level, discount, limit, scale, weight, order, out, work
            )


@njit(cache=True, nogil=True)
def train_linear_pass(
    values, starts, kind, gain, level, discount, limit, scale, weight, visit, batch, weights, mean, square, steps,
    adam, rate, l2, positive, towards,
):  # fmt: skip
    """Queries in the order of `visit`, with a step after every `batch`."""
    width = values.shape[1]
    longest = 1
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    work = np.empty((3, longest))
    rows = starts[-1]
    scores, out = np.empty(rows), np.empty(rows)
    order = np.empty(rows, np.int64)
    for q in range(len(starts) - 1):
        for i in range(starts[q], starts[q + 1]):
            order[i] = i - starts[q]
    gradient = np.zeros(width)
    for at in range(len(visit)):
        q = visit[at]
        if scale[q] != 0.0:
            for i in range(starts[q], starts[q + 1]):
                scores[i] = _dot(values[i], weights)
            _compute_query_lambdas(
                q, starts, scores, kind, gain, level, discount, limit, scale, weight, order, out, work
            )
            for i in range(starts[q], starts[q + 1]):
                if out[i] != 0.0:
                    for c in range(width):
                        gradient[c] += out[i] * values[i, c]
        if (at + 1) % batch == 0 or at + 1 == len(visit):
            update_weights(
                gradient, at % batch + 1, weights, mean, square, steps, adam, rate, l2, positive, towards
            )


@njit(cache=True, nogil=True)
def update_weights(gradient, count, weights, mean, square, steps, adam, rate, l2, positive, towards):
    steps[0] += 1
    grown_mean, grown_square = 1.0 - 0.9 ** float(steps[0]), 1.0 - 0.999 ** float(steps[0])
    for c in range(len(weights)):
        g = gradient[c] / count + l2 * (weights[c] - towards[c])
        if adam:
            mean[c] += 0.1 * (g - mean[c])
            square[c] += 0.001 * (g * g - square[c])
            weights[c] -= rate * (mean[c] / grown_mean) / (np.sqrt(square[c] / grown_square) + 1e-8)
        else:
            weights[c] -= rate * g
        if positive and weights[c] < 0.0:
            weights[c] = 0.0
        gradient[c] = 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):
    total = 0.0
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@njit(cache=True, nogil=True)
def _compute_query_lambdas(
    q, starts, scores, kind, gain, level, discount, limit, scale, weight, order, out, work
):
    a, n = starts[q], starts[q + 1] - starts[q]
    near = _sort_rows(a, n, scores, level, order)
    top = scores[a + order[a]]
    place, e, value = work[0], work[1], work[2]
    for k in range(n):
        i = order[a + k]
        place[i] = k
        e[i] = np.exp(max(scores[a + i] - top, -STEEP))
        out[a + i] = 0.0
    if kind == 0:
        _add_sum_lambdas(a, n, gain, level, discount, limit[q], scale[q], weight, place, e, value, out)
    elif kind == 1:
        _add_precision_lambdas(a, n, gain, level, discount, limit[q], scale[q], weight, order, e, out)
    else:
        _add_cascade_lambdas(a, n, gain, level, discount, limit[q], scale[q], weight, order, e, out)
    _average_ties(a, n, scores, level, order, near, out)


@njit(cache=True, nogil=True)
def _sort_rows(a, n, scores, level, order):
    """Insertion sort of the last order, which changes little. Near-equal scores: worst grade first."""
    for k in range(1, n):
        i = order[a + k]
        s = scores[a + i]
        m = k
        while m > 0 and (
            scores[a + order[a + m - 1]] < s or (scores[a + order[a + m - 1]] == s and order[a + m - 1] > i)
        ):
            order[a + m] = order[a + m - 1]
            m -= 1
        order[a + m] = i
    near = 0.0
    if n:
        near = NEAR * max(abs(scores[a + order[a]]), abs(scores[a + order[a + n - 1]]))
    begin = 0
    for k in range(1, n + 1):
        if k == n or scores[a + order[a + k - 1]] - scores[a + order[a + k]] > near:
            for x in range(begin + 1, k):
                i = order[a + x]
                m = x
                while m > begin and (
                    level[a + order[a + m - 1]] > level[a + i]
                    or (level[a + order[a + m - 1]] == level[a + i] and order[a + m - 1] > i)
                ):
                    order[a + m] = order[a + m - 1]
                    m -= 1
                order[a + m] = i
            begin = k
    return near


@njit(cache=True, nogil=True)
def _add_sum_lambdas(a, n, gain, level, discount, limit, scale, weight, place, e, value, out):
    """Rows are sorted best grade first, so the rows worse than row i are those after its grade."""
    for i in range(n):
        p = int(place[i])
        value[i] = discount[p] if p < limit else 0.0
    end = 0
    for i in range(n):
        if i == 0 or level[a + i] != level[a + i - 1]:
            end = i
            while end < n and level[a + end] == level[a + i]:
                end += 1
        g, d, x, pulled, w = gain[a + i], value[i], e[i], 0.0, scale * weight[a + i]
        for j in range(end, n):
            pull = abs((g - gain[a + j]) * (d - value[j])) * w * weight[a + j] * (e[j] / (x + e[j]))
            pulled += pull
            out[a + j] += pull
        out[a + i] -= pulled


@njit(cache=True, nogil=True)
def _add_pair_lambda(a, i, j, change, level, weight, e, out):
    change = abs(change) * weight[a + i] * weight[a + j]
    if level[a + i] > level[a + j]:
        pull = change * (e[j] / (e[i] + e[j]))
        out[a + i] -= pull
        out[a + j] += pull
    elif level[a + i] < level[a + j]:
        pull = change * (e[i] / (e[i] + e[j]))
        out[a + j] -= pull
        out[a + i] += pull


@njit(cache=True, nogil=True)
def _add_precision_lambdas(a, n, gain, level, discount, limit, scale, weight, order, e, out):
    hits = 0.0  # relevant rows down to place x
    for x in range(n):
        i = order[a + x]
        hits += gain[a + i]
        here = 1.0 / discount[x] if x < limit else 0.0
        inner, hits_below = 0.0, hits
        for y in range(x + 1, n):
            j = order[a + y]
            there = 1.0 / discount[y] if y < limit else 0.0
            hits_below += gain[a + j]
            if gain[a + i] > gain[a + j]:
                _add_pair_lambda(
                    a, i, j, scale * (hits_below * there - hits * here - inner), level, weight, e, out
                )
            elif gain[a + i] < gain[a + j]:
                _add_pair_lambda(
                    a, i, j, scale * ((hits + 1) * here + inner - hits_below * there), level, weight, e, out
                )
            inner += gain[a + j] * there


@njit(cache=True, nogil=True)
def _add_cascade_lambdas(a, n, gain, level, discount, limit, scale, weight, order, e, out):
    before = 1.0
    for x in range(n):
        i = order[a + x]
        g, d = gain[a + i], discount[x] if x < limit else 0.0
        inner, through = 0.0, 1.0
        for y in range(x + 1, n):
            j = order[a + y]
            h, f = gain[a + j], discount[y] if y < limit else 0.0
            old = d * g + (1.0 - g) * (inner + through * f * h)
            new = d * h + (1.0 - h) * (inner + through * f * g)
            _add_pair_lambda(a, i, j, scale * before * (new - old), level, weight, e, out)
            inner += through * f * h
            through *= 1.0 - h
        before *= 1.0 - g


@njit(cache=True, nogil=True)
def _average_ties(a, n, scores, level, order, near, out):
    """Average the gradient over rows of one grade in one run of near-equal scores."""
    begin = 0
    for k in range(1, n + 1):
        i = order[a + k - 1]
        if (
            k == n
            or scores[a + i] - scores[a + order[a + k]] > near
            or level[a + i] != level[a + order[a + k]]
        ):
            if k - begin > 1:
                total = 0.0
                for x in range(begin, k):
                    total += out[a + order[a + x]]
                for x in range(begin, k):
                    out[a + order[a + x]] = total / (k - begin)
            begin = k
