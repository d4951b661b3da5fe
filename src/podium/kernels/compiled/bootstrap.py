"""Bootstrap rounds, compiled: every round resamples, then steps from the old scores to its own."""

from __future__ import annotations

import numpy as np
from numba import njit

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@njit(cache=True, nogil=True)
def _sample_uniform(key, step):
    x = key + np.uint64(step) * np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _lookup_poisson(u, row, table, guide):
    at = np.int64(guide[row, np.int64(u * guide.shape[1])])
    while u > table[row, at]:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _search_poisson(u, mean, upto, peak):
    count = np.floor(mean)
    if u > upto:
        while u > upto and peak > 1e-300:
            count += 1
            peak *= mean / count
            upto += peak
        return count
    while count > 0 and u <= upto - peak:
        upto -= peak
        peak *= count / mean
        count -= 1
    return count


@njit(cache=True, nogil=True)
def _compute_derivatives(first, second, l2, won, total, x, strength, gradient, bend):
    """Gradient and diagonal of the Hessian at x."""
    top = x[0]
    for i in range(1, len(x)):
        top = max(top, x[i])
    for i in range(len(x)):
        strength[i] = np.exp(x[i] - top)
        gradient[i] = l2 * x[i]
        bend[i] = l2
    for c in range(len(first)):
        a, b = first[c], second[c]
        both = strength[a] + strength[b]
        if both > 0:
            share = strength[a] / both
            slope = total[c] * share - won[c]
            gradient[a] += slope
            gradient[b] -= slope
            bend[a] += total[c] * share * (1 - share)
            bend[b] += total[c] * share * (1 - share)


@njit(cache=True, nogil=True)
def _iterate_round(first, second, l2, matrix, tolerance, most, shrink, won, total, room, x):
    """Scaled steps with a fixed matrix; returns whether they converged. `room` holds four numbers per item."""
    size = len(x)
    gradient, move, scale = room[1], room[2], room[3]
    before = np.inf
    for _ in range(most):
        _compute_derivatives(first, second, l2, won, total, x, room[0], gradient, scale)
        move[:] = 0.0
        for j in range(size):
            scale[j] = 1 / np.sqrt(scale[j])
            g = gradient[j] * scale[j]
            for i in range(size):
                move[i] += matrix[j, i] * g
        level = 0.0
        for i in range(size):
            move[i] *= scale[i]
            level += move[i] / size
        longest = 0.0
        for i in range(size):
            x[i] -= move[i] - level
            longest = max(longest, abs(move[i] - level))
        if longest <= tolerance or (before < np.inf and longest * longest <= tolerance * (before - longest)):
            return True
        if not longest <= shrink * before:
            return False
        before = longest
    return False


@njit(cache=True, nogil=True)
def fit_vote_resamples(
    begin, end, first, second, half, l2, matrix, mean, upto, peak, unit, table, guide, key, tolerance, most, shrink,
    scores, done,
):  # fmt: skip
    """Rounds begin .. end with single votes resampled."""
    pairs = len(first)
    won, total, room = np.empty(pairs), np.empty(pairs), np.empty((4, scores.shape[1]))
    for r in range(begin, end):
        for c in range(pairs):
            won[c], total[c] = 0.0, 0.0
            for k in range(3):
                cell = c + k * pairs
                if mean[cell] > 0:
                    u = _sample_uniform(key[r], cell + 1)
                    if mean[cell] < len(table) and mean[cell] == np.floor(mean[cell]):
                        count = float(_lookup_poisson(u, np.int64(mean[cell]), table, guide))
                    else:
                        count = _search_poisson(u, mean[cell], upto[cell], peak[cell])
                    count *= unit[cell]
                    if k == 0:
                        won[c] += count
                    if k == 2:
                        won[c] += count / 2 if half else 0.0
                    if k < 2 or half:
                        total[c] += count
        done[r] = _iterate_round(
            first, second, l2, matrix, tolerance, most, shrink, won, total, room, scores[r]
        )


@njit(cache=True, nogil=True)
def fit_cluster_resamples(
    begin, end, first, second, half, l2, matrix, starts, pair, c_won, c_lost, c_tied, key, tolerance, most, shrink,
    scores, done,
):  # fmt: skip
    """Rounds begin .. end with whole clusters resampled."""
    pairs, clusters = len(first), len(starts) - 1
    won, total, room = np.empty(pairs), np.empty(pairs), np.empty((4, scores.shape[1]))
    often = np.empty(clusters, np.int64)
    for r in range(begin, end):
        won[:] = 0.0
        total[:] = 0.0
        often[:] = 0
        for k in range(clusters):
            often[min(int(_sample_uniform(key[r], k + 1) * clusters), clusters - 1)] += 1
        for k in range(clusters):
            if often[k]:
                for row in range(starts[k], starts[k + 1]):
                    tie = c_tied[row] / 2 if half else 0.0
                    won[pair[row]] += often[k] * (c_won[row] + tie)
                    total[pair[row]] += often[k] * (c_won[row] + c_lost[row] + 2 * tie)
        done[r] = _iterate_round(
            first, second, l2, matrix, tolerance, most, shrink, won, total, room, scores[r]
        )
