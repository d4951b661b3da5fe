"""Gauss-Seidel sweeps for the stationary distribution of a walk over contests."""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

import numpy as np


cdef class Neighbors:
    """By item of one query: its opponents, with the rates from them, and the total rate of leaving it."""

    cdef int64_t[::1] begin, at
    cdef int32_t[::1] other
    cdef double[::1] rate, out, number
    cdef int64_t size

    def __cinit__(self, int64_t size, int64_t pairs):
        self.begin, self.at = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
        self.other, self.rate = np.empty(2 * pairs, np.int32), np.empty(2 * pairs)
        self.out, self.number = np.empty(size), np.empty(size)

    cdef void build(
        self, int64_t base, int64_t size, int64_t a, int64_t b, const int32_t[::1] first,
        const int32_t[::1] second, const double[::1] up, const double[::1] down,
    ) noexcept nogil:
        """From the pairs a .. b, whose slots count from `base`."""
        cdef int64_t p, i, j
        self.size = size
        for i in range(size + 1):
            self.begin[i] = 0
        for p in range(a, b):
            self.begin[first[p] - base + 1] += 1
            self.begin[second[p] - base + 1] += 1
        for i in range(size):
            self.begin[i + 1] += self.begin[i]
            self.at[i] = self.begin[i]
            self.out[i] = 0.0
        for p in range(a, b):
            i = first[p] - base
            j = second[p] - base
            self.other[self.at[i]] = <int32_t>j
            self.rate[self.at[i]] = down[p]
            self.other[self.at[j]] = <int32_t>i
            self.rate[self.at[j]] = up[p]
            self.at[i] += 1
            self.at[j] += 1
            self.out[i] += up[p]
            self.out[j] += down[p]

    cdef double sweep_flows(self, double* x) noexcept nogil:
        """One sweep over all items; returns the largest relative change."""
        cdef int64_t i, n
        cdef double flow, new, worst = 0.0
        for i in range(self.size):
            if self.begin[i] == self.begin[i + 1]:
                continue
            flow = 0.0
            for n in range(self.begin[i], self.begin[i + 1]):
                flow += x[self.other[n]] * self.rate[n]
            new = flow / self.out[i]
            worst = max(worst, fabs(new - x[i]) / new)
            x[i] = new
        return worst

    cdef void normalize_components(self, double* x, const int64_t* label, int64_t base) noexcept nogil:
        """Give each component mass in proportion to its number of items."""
        cdef int64_t i, c
        for i in range(self.size):
            self.out[i] = self.number[i] = 0.0  # the rates are no longer needed: now the mass
        for i in range(self.size):
            self.out[label[i] - base] += x[i]
            self.number[label[i] - base] += 1
        for i in range(self.size):
            c = label[i] - base
            x[i] *= self.number[c] / self.out[c] / self.size


def compute_rank_centrality(
    int64_t first_query, int64_t last_query, contests, const double[::1] up, const double[::1] down,
    const int64_t[::1] label, double tolerance, int64_t most_sweeps, double[::1] found, int64_t[::1] taken,
):
    """Give every item in turn the probability that balances its flows, until all of them nearly do."""
    cdef const int64_t[::1] starts = contests[0], pair_starts = contests[1]
    cdef const int32_t[::1] first = contests[2], second = contests[3]
    cdef int64_t q, i, base, size, number, most = 0, pairs = 0
    for q in range(first_query, last_query):
        most = max(most, starts[q + 1] - starts[q])
        pairs = max(pairs, pair_starts[q + 1] - pair_starts[q])
    cdef Neighbors neighbors = Neighbors(most, pairs)
    with nogil:
        for q in range(first_query, last_query):
            base = starts[q]
            size = starts[q + 1] - base
            if size == 0:
                continue
            neighbors.build(base, size, pair_starts[q], pair_starts[q + 1], first, second, up, down)
            for i in range(size):
                found[base + i] = 1.0 / size
            taken[q] = most_sweeps + 1
            for number in range(most_sweeps):
                if neighbors.sweep_flows(&found[base]) <= tolerance:
                    taken[q] = number + 1
                    break
            neighbors.normalize_components(&found[base], &label[base], base)
