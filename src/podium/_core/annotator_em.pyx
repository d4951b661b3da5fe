"""Loops over the judgements of annotators: coins, confusion tables, noisy contests, and Elo matches."""

from libc.math cimport exp, fabs, log
from libc.stdint cimport int32_t, int64_t

import numpy as np


def sum_agreement(
    const int64_t[::1] pair, const int64_t[::1] first, const int64_t[::1] second, const double[::1] won,
    const double[::1] lost, const double[::1] truth, double[::1] right, double[::1] wrong,
):
    """Add to every coin the votes that agree and disagree with the truths."""
    cdef Py_ssize_t r
    cdef double q
    with nogil:
        for r in range(pair.shape[0]):
            q = truth[pair[r]]
            right[first[r]] += won[r] * q
            wrong[first[r]] += lost[r] * q
            right[second[r]] += lost[r] * (1.0 - q)
            wrong[second[r]] += won[r] * (1.0 - q)


def sum_evidence(
    const int64_t[::1] pair, const int64_t[::1] first, const int64_t[::1] second, const double[::1] won,
    const double[::1] lost, const double[::1] right, const double[::1] wrong, double[::1] up, double[::1] down,
):
    """Add up the log likelihoods of both truths of every pair."""
    cdef Py_ssize_t r
    with nogil:
        for r in range(pair.shape[0]):
            up[pair[r]] += won[r] * right[first[r]] + lost[r] * wrong[first[r]]
            down[pair[r]] += won[r] * wrong[second[r]] + lost[r] * right[second[r]]


def count_ratings(
    const int64_t[::1] item, const int64_t[::1] group, const int64_t[::1] level, const double[:, ::1] truth,
    double[:, :, ::1] counts,
):
    """Count the groups' ratings of items by level."""
    cdef Py_ssize_t r, a
    with nogil:
        for r in range(item.shape[0]):
            for a in range(counts.shape[1]):
                counts[group[r], a, level[r]] += truth[item[r], a]


def sum_rating_evidence(
    const int64_t[::1] item, const int64_t[::1] group, const int64_t[::1] level, const double[::1] weight,
    const double[:, :, ::1] table, double[:, ::1] odds,
):
    """Add the evidence of the ratings on each item's level."""
    cdef Py_ssize_t r, a
    cdef double w
    with nogil:
        for r in range(item.shape[0]):
            w = weight[group[r]]
            for a in range(odds.shape[1]):
                odds[item[r], a] += w * table[group[r], a, level[r]]


cdef inline void compute_logistic(double x, double* up, double* down) noexcept nogil:
    """1 / (1 + exp(-x)) and its complement, both without cancellation."""
    cdef double z = exp(-fabs(x))
    cdef double big = 1.0 / (1.0 + z), small = z / (1.0 + z)
    up[0] = big if x >= 0.0 else small
    down[0] = small if x >= 0.0 else big


def compute_noisy_derivatives(
    const int32_t[::1] first, const int32_t[::1] second, const int64_t[::1] group, const double[::1] won,
    const double[::1] lost, const double[::1] score, const double[::1] odds, bint known, double tiny,
    double[:, ::1] columns, double[::1] gradient, double[::1] scale,
):
    """Derivatives of noisy contests by row, and their sums; returns the log likelihood."""
    cdef Py_ssize_t r, i, j, slots = score.shape[0]
    cdef double value = 0.0, s = 0.0, s_ = 0.0, e = 1.0, e_ = 0.0, p, q, a, b, up, curve
    with nogil:
        for r in range(first.shape[0]):
            i = first[r]
            j = second[r]
            compute_logistic(score[i] - score[j], &s, &s_)
            if not known:
                compute_logistic(odds[group[r]], &e, &e_)
            p = max(s * e + s_ * e_, tiny)
            q = max(s * e_ + s_ * e, tiny)
            a = (e - e_) * s * s_
            b = (s - s_) * e * e_
            up = won[r] / p - lost[r] / q
            curve = won[r] / (p * p) + lost[r] / (q * q)
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
            value += won[r] * log(p) + lost[r] * log(q)
    return value


def multiply_noisy_hessian(
    const int32_t[::1] first, const int32_t[::1] second, const int64_t[::1] group, const double[::1] dd,
    const double[::1] dt, const double[::1] tt, const double[::1] score, const double[::1] odds, bint known,
    double[::1] out_score, double[::1] out_odds,
):
    """Add the Hessian times a vector."""
    cdef Py_ssize_t r, i, j
    cdef double d, t, change
    with nogil:
        for r in range(first.shape[0]):
            i = first[r]
            j = second[r]
            d = score[i] - score[j]
            t = 0.0 if known else odds[group[r]]
            change = dd[r] * d + dt[r] * t
            out_score[i] += change
            out_score[j] -= change
            if not known:
                out_odds[group[r]] += dt[r] * d + tt[r] * t


def compute_expected_elo(
    int64_t begin, int64_t end, const int64_t[::1] starts, const int64_t[::1] pair_starts,
    const int32_t[::1] first, const int32_t[::1] second, const double[::1] won, const double[::1] lost,
    const int64_t[::1] parts, double k, double rate, double[::1] ratings,
):
    """Play the matches of a range of queries, one portion of all of them after the other."""
    cdef int64_t q, base, size, part, p, i, j, most = 0
    cdef double gain, chance = 0.0, other = 0.0
    for q in range(begin, end):
        most = max(most, starts[q + 1] - starts[q])
    cdef double[::1] gains = np.zeros(most)
    with nogil:
        for q in range(begin, end):
            if pair_starts[q] == pair_starts[q + 1]:
                continue
            base = starts[q]
            size = starts[q + 1] - base
            for part in range(parts[q]):
                for p in range(pair_starts[q], pair_starts[q + 1]):
                    i = first[p]
                    j = second[p]
                    compute_logistic(rate * (ratings[i] - ratings[j]), &chance, &other)
                    gain = won[p] - (won[p] + lost[p]) * chance
                    gains[i - base] += gain
                    gains[j - base] -= gain
                for i in range(size):
                    ratings[base + i] += gains[i] * (k / parts[q])
                    gains[i] = 0.0
