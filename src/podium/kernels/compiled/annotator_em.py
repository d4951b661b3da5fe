"""Loops over the judgements of annotators: coins, confusion tables, noisy contests, and Elo matches."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "compute_expected_elo",
    "compute_noisy_derivatives",
    "count_ratings",
    "multiply_noisy_hessian",
    "sum_agreement",
    "sum_evidence",
    "sum_rating_evidence",
]


@njit(cache=True, nogil=True)
def sum_agreement(pair, first, second, won, lost, truth, right, wrong):
    """Add to every coin the votes that agree and disagree with the truths."""
    for r in range(len(pair)):
        q = truth[pair[r]]
        right[first[r]] += won[r] * q
        wrong[first[r]] += lost[r] * q
        right[second[r]] += lost[r] * (1.0 - q)
        wrong[second[r]] += won[r] * (1.0 - q)


@njit(cache=True, nogil=True)
def sum_evidence(pair, first, second, won, lost, right, wrong, up, down):
    """Add up the log likelihoods of both truths of every pair."""
    for r in range(len(pair)):
        up[pair[r]] += won[r] * right[first[r]] + lost[r] * wrong[first[r]]
        down[pair[r]] += won[r] * wrong[second[r]] + lost[r] * right[second[r]]


@njit(cache=True, nogil=True)
def count_ratings(item, group, level, truth, counts):
    """Count the groups' ratings of items by level."""
    for r in range(len(item)):
        for a in range(counts.shape[1]):
            counts[group[r], a, level[r]] += truth[item[r], a]


@njit(cache=True, nogil=True)
def sum_rating_evidence(item, group, level, weight, table, odds):
    """Add the evidence of the ratings on each item's level."""
    for r in range(len(item)):
        w = weight[group[r]]
        for a in range(odds.shape[1]):
            odds[item[r], a] += w * table[group[r], a, level[r]]


@njit(cache=True, nogil=True)
def logistic(x):
    """1 / (1 + exp(-x)) and its complement, both without cancellation."""
    z = np.exp(-abs(x))
    big, small = 1.0 / (1.0 + z), z / (1.0 + z)
    if x >= 0.0:
        return big, small
    return small, big


@njit(cache=True, nogil=True)
def compute_noisy_derivatives(
    first, second, group, won, lost, score, odds, known, tiny, columns, gradient, scale
):
    """Derivatives of noisy contests by row, and their sums; returns the log likelihood."""
    value, slots = 0.0, len(score)
    e, e_ = 1.0, 0.0
    for r in range(len(first)):
        i, j = first[r], second[r]
        s, s_ = logistic(score[i] - score[j])
        if not known:
            e, e_ = logistic(odds[group[r]])
        p, q = max(s * e + s_ * e_, tiny), max(s * e_ + s_ * e, tiny)
        a, b = (e - e_) * s * s_, (s - s_) * e * e_
        up, curve = won[r] / p - lost[r] / q, won[r] / p**2 + lost[r] / q**2
        columns[0, r] = a * a * curve - a * (s_ - s) * up
        columns[1, r] = a * b * curve - 2.0 * s * s_ * e * e_ * up
        columns[2, r] = b * b * curve - b * (e_ - e) * up
        gradient[i] -= a * up
        gradient[j] += a * up
        scale[i] += a * a * curve
        scale[j] += a * a * curve
        if not known:
            gradient[slots + group[r]] -= b * up
            scale[slots + group[r]] += b * b * curve
        value += won[r] * np.log(p) + lost[r] * np.log(q)
    return value


@njit(cache=True, nogil=True)
def multiply_noisy_hessian(first, second, group, dd, dt, tt, score, odds, known, out_score, out_odds):
    """Add the Hessian times a vector."""
    for r in range(len(first)):
        i, j = first[r], second[r]
        d = score[i] - score[j]
        t = 0.0 if known else odds[group[r]]
        change = dd[r] * d + dt[r] * t
        out_score[i] += change
        out_score[j] -= change
        if not known:
            out_odds[group[r]] += dt[r] * d + tt[r] * t


@njit(cache=True, nogil=True)
def compute_expected_elo(begin, end, starts, pair_starts, first, second, won, lost, parts, k, rate, ratings):
    """Play the matches of a range of queries, one portion of all of them after the other."""
    for q in range(begin, end):
        base, size = starts[q], starts[q + 1] - starts[q]
        gains = np.zeros(size)
        if pair_starts[q] == pair_starts[q + 1]:
            continue
        for _ in range(parts[q]):
            for p in range(pair_starts[q], pair_starts[q + 1]):
                i, j = first[p], second[p]
                chance, _other = logistic(rate * (ratings[i] - ratings[j]))
                gain = won[p] - (won[p] + lost[p]) * chance
                gains[i - base] += gain
                gains[j - base] -= gain
            for i in range(size):
                ratings[base + i] += gains[i] * (k / parts[q])
                gains[i] = 0.0
