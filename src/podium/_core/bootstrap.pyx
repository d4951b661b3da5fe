"""Bootstrap rounds: every round resamples, then steps from the old scores to its own."""

from libc.math cimport INFINITY, exp, fabs, floor, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np


cdef inline double sample_uniform(uint64_t key, uint64_t step) noexcept nogil:
    """Number `step` of a round, between 0 and 1 (splitmix64)."""
    cdef uint64_t x = key + step * <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    x = x ^ (x >> 31)
    return (x >> 11) * 1.1102230246251565e-16  # 2 ** -53


cdef inline double search_poisson(double u, double mean, double upto, double peak) noexcept nogil:
    """The Poisson quantile, searched up or down from the mean."""
    cdef double count = floor(mean)
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


cdef class Problem:
    """The contests of one query, the fixed matrix of its steps, when to stop, and the votes of a round."""

    cdef const int32_t[::1] first, second
    cdef const double[:, ::1] matrix
    cdef double l2, tolerance, shrink
    cdef int64_t most, pairs, size
    cdef double[::1] won, total, strength, gradient, move, scale

    def __cinit__(self, first, second, double l2, matrix, double tolerance, int64_t most, double shrink):
        self.first, self.second, self.l2, self.matrix = first, second, l2, matrix
        self.tolerance, self.most, self.shrink = tolerance, most, shrink
        self.pairs, self.size = len(first), len(matrix)
        self.won, self.total = np.empty(self.pairs), np.empty(self.pairs)
        self.strength, self.gradient, self.move, self.scale = (np.empty(self.size) for _ in range(4))

    cdef void compute_derivatives(self, const double* x) noexcept nogil:
        """Gradient, and in `scale` the diagonal of the Hessian, at x."""
        cdef int64_t i, c, a, b
        cdef double both, share, slope, bend, top = x[0]
        for i in range(1, self.size):
            top = max(top, x[i])
        for i in range(self.size):
            self.strength[i] = exp(x[i] - top)
            self.gradient[i] = self.l2 * x[i]
            self.scale[i] = self.l2
        for c in range(self.pairs):
            a = self.first[c]
            b = self.second[c]
            both = self.strength[a] + self.strength[b]
            if both > 0:
                share = self.strength[a] / both
                slope = self.total[c] * share - self.won[c]
                bend = self.total[c] * share * (1 - share)
                self.gradient[a] += slope
                self.gradient[b] -= slope
                self.scale[a] += bend
                self.scale[b] += bend

    cdef bint iterate(self, double* x) noexcept nogil:
        """Scaled steps with the fixed matrix; returns whether they converged."""
        cdef int64_t step, i, j
        cdef double g, level, longest, before = INFINITY
        cdef const double* row
        cdef double* move = &self.move[0]
        for step in range(self.most):
            self.compute_derivatives(x)
            for i in range(self.size):
                move[i] = 0.0
            for j in range(self.size):
                self.scale[j] = 1 / sqrt(self.scale[j])
                g = self.gradient[j] * self.scale[j]
                row = &self.matrix[j, 0]
                for i in range(self.size):
                    move[i] += row[i] * g
            level = 0.0
            for i in range(self.size):
                move[i] *= self.scale[i]
                level += move[i] / self.size
            longest = 0.0
            for i in range(self.size):
                x[i] -= move[i] - level
                longest = max(longest, fabs(move[i] - level))
            if longest <= self.tolerance or (
                before < INFINITY and longest * longest <= self.tolerance * (before - longest)
            ):
                return True
            if not longest <= self.shrink * before:
                return False
            before = longest
        return False


def fit_vote_resamples(
    int64_t begin, int64_t end, first, second, bint half, double l2, matrix, const double[::1] mean,
    const double[::1] upto, const double[::1] peak, const double[::1] unit, const double[:, ::1] table,
    const uint8_t[:, ::1] guide, const uint64_t[::1] key, double tolerance, int64_t most, double shrink,
    double[:, ::1] scores, uint8_t[::1] done,
):
    """Rounds begin .. end with single votes resampled."""
    cdef Problem problem = Problem(first, second, l2, matrix, tolerance, most, shrink)
    cdef int64_t r, c, k, cell, row, at
    cdef double u, count
    with nogil:
        for r in range(begin, end):
            for c in range(problem.pairs):
                problem.won[c] = problem.total[c] = 0.0
                for k in range(3):
                    cell = c + k * problem.pairs
                    if not mean[cell] > 0:
                        continue
                    u = sample_uniform(key[r], cell + 1)
                    if mean[cell] < table.shape[0] and mean[cell] == floor(mean[cell]):
                        row = <int64_t>mean[cell]
                        at = guide[row, <int64_t>(u * guide.shape[1])]
                        while u > table[row, at]:
                            at += 1
                        count = <double>at
                    else:
                        count = search_poisson(u, mean[cell], upto[cell], peak[cell])
                    count *= unit[cell]
                    if k == 0:
                        problem.won[c] += count
                    elif k == 2:
                        problem.won[c] += count / 2 if half else 0.0
                    if k < 2 or half:
                        problem.total[c] += count
            done[r] = problem.iterate(&scores[r, 0])


def fit_cluster_resamples(
    int64_t begin, int64_t end, first, second, bint half, double l2, matrix, const int64_t[::1] starts,
    const int64_t[::1] pair, const double[::1] won, const double[::1] lost, const double[::1] tied,
    const uint64_t[::1] key, double tolerance, int64_t most, double shrink, double[:, ::1] scores,
    uint8_t[::1] done,
):
    """Rounds begin .. end with whole clusters resampled."""
    cdef Problem problem = Problem(first, second, l2, matrix, tolerance, most, shrink)
    cdef int64_t r, k, row, clusters = starts.shape[0] - 1
    cdef int64_t[::1] often = np.empty(clusters, np.int64)
    cdef double tie
    with nogil:
        for r in range(begin, end):
            problem.won[:] = 0.0
            problem.total[:] = 0.0
            often[:] = 0
            for k in range(clusters):
                often[min(<int64_t>(sample_uniform(key[r], k + 1) * clusters), clusters - 1)] += 1
            for k in range(clusters):
                if not often[k]:
                    continue
                for row in range(starts[k], starts[k + 1]):
                    tie = tied[row] / 2 if half else 0.0
                    problem.won[pair[row]] += often[k] * (won[row] + tie)
                    problem.total[pair[row]] += often[k] * (won[row] + lost[row] + 2 * tie)
            done[r] = problem.iterate(&scores[r, 0])
