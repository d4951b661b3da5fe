"""Poisson-binomial distributions by convolution, and expectations under them, row by row."""

from libc.math cimport exp, expm1, log1p
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

cdef enum:
    FEW = 8  # equal factors up to here are multiplied; beyond, a logarithm is cheaper
    SHORT = 16  # contests up to which one number after the other is faster than several at once
    PENDING = 256  # factors between 0 and 2 whose product can neither overflow nor underflow


def convolve_directly(int64_t first, int64_t last, const double[:, ::1] win, double[:, ::1] law):
    """Distributions of a range of rows, from rows that hold 1 and then zeros."""
    cdef int64_t row, t, r, n = win.shape[1]
    cdef double w, lose, here, before
    cdef double[::1] spare = np.empty(n + 1)
    cdef double* new
    cdef double* old
    with nogil:
        for row in range(first, last):
            new = &law[row, 0]
            if n <= SHORT:
                for t in range(n):
                    w = win[row, t]
                    lose = 1 - w
                    before = 0.0
                    for r in range(t + 2):
                        here = new[r]
                        new[r] = here * w + before * lose
                        before = here
                continue
            old = &spare[0]
            for t in range(n):
                # from one buffer to the other: in place, the loop would have to run backwards, which is slower
                new, old = old, new
                w = win[row, t]
                lose = 1 - w
                old[t + 1] = 0.0
                new[0] = old[0] * w
                for r in range(1, t + 2):
                    new[r] = old[r] * w + old[r - 1] * lose
            if n % 2:
                memcpy(&law[row, 0], &spare[0], (n + 1) * sizeof(double))


cdef class Opponents:
    """The columns of `podium.kernels.poisson_binomial.OpponentTable`."""

    cdef const double[::1] own, unjudged_edge, value, slope
    cdef const int64_t[::1] group, first, last, unjudged_items, many, uneven, size
    cdef double step

    def __cinit__(self, contests):
        self.own, self.unjudged_edge = contests.own, contests.unjudged_edge
        self.value, self.slope, self.step = contests.value, contests.slope, contests.step
        self.group, self.first, self.last = contests.group, contests.first, contests.last
        self.unjudged_items, self.many = contests.unjudged_items, contests.many
        self.uneven, self.size = contests.uneven, contests.size

    cdef inline double compute_edge(self, int64_t row, int64_t opponent, double tilt) noexcept nogil:
        """Edge over one of the opponents; the index after the last stands for the unjudged items."""
        cdef double d, slope
        if opponent == self.last[row]:
            return tilt * self.unjudged_edge[row]
        d = self.own[row] - self.value[opponent]
        slope = self.slope[self.group[row]]
        return tilt * (slope * d + self.step * ((1.0 if d > 0 else 0.0) - (1.0 if d < 0 else 0.0)))

    cdef inline int64_t count_edge_contests(self, int64_t row, int64_t opponent) noexcept nogil:
        """Number of contests with an edge."""
        if opponent == self.last[row]:
            return self.unjudged_items[row] if self.unjudged_edge[row] != 0 else 0
        return self.many[opponent] if self.own[row] != self.value[opponent] else 0


def compute_excess_discount(
    int64_t first, int64_t last, contests, const double[::1] tilt, const int64_t[::1] starts,
    const double[::1] drop, double[::1] found,
):
    """Expected discounts minus even ones, for a range of rows."""
    cdef Opponents opponents = Opponents(contests)
    cdef int64_t row, r, at, most = 0
    cdef double total
    for row in range(first, last):
        most = max(most, opponents.uneven[row])
    cdef double[::1] s = np.zeros(most + 1), even = np.zeros(most + 1)
    with nogil:
        for row in range(first, last):
            if opponents.uneven[row] == 0:
                continue
            build_polynomial(opponents, row, tilt[opponents.group[row]], s, even)
            at = starts[opponents.size[row] - opponents.uneven[row]]
            total = 0.0
            for r in range(opponents.uneven[row]):
                total += s[r] * drop[at + r]
            found[row] = total


cdef void build_polynomial(
    Opponents contests, int64_t row, double tilt, double[::1] s, double[::1] even
) noexcept nogil:
    """The polynomial s of a row; `even` is scratch."""
    cdef int64_t opponent, n, r, t = 0
    cdef double e, p, q
    s[0] = 0.0
    even[0] = 1.0
    for opponent in range(contests.first[row], contests.last[row] + 1):
        e = contests.compute_edge(row, opponent, tilt)
        p = 0.5 + e
        q = 1 - p
        for n in range(contests.count_edge_contests(row, opponent)):
            s[t] = 0.0
            even[t + 1] = 0.0
            for r in range(t, 0, -1):
                s[r] = s[r] * p + s[r - 1] * q + e * even[r]
            s[0] = s[0] * p + e * even[0]
            for r in range(t + 1, 0, -1):
                even[r] = (even[r] + even[r - 1]) / 2
            even[0] /= 2
            t += 1


def compute_power_excess(
    int64_t first, int64_t last, contests, const double[::1] tilt, const double[::1] tanh,
    const double[::1] log_half, const double[::1] weight, double[::1] found,
):
    """The same for sums of powers."""
    cdef Opponents opponents = Opponents(contests)
    cdef int64_t row, opponent, count, n, m, pending, nodes = weight.shape[0]
    # product minus one, of factors whose logarithm is not yet taken
    cdef double[::1] product = np.empty(nodes), logs = np.empty(nodes)
    cdef double e, even, total
    with nogil:
        for row in range(first, last):
            product[:] = 0.0
            logs[:] = 0.0
            pending = 0
            for opponent in range(opponents.first[row], opponents.last[row] + 1):
                count = opponents.count_edge_contests(row, opponent)
                if count == 0:
                    continue
                e = opponents.compute_edge(row, opponent, tilt[opponents.group[row]])
                if count > FEW:
                    for m in range(nodes):
                        logs[m] += count * log1p(max(e * tanh[m], -1.0))
                    continue
                for n in range(count):
                    for m in range(nodes):
                        product[m] += (1 + product[m]) * (e * tanh[m])
                pending += count
                if pending > PENDING:
                    take_logs(product, logs)
                    pending = 0
            take_logs(product, logs)
            total = 0.0
            for m in range(nodes):
                even = opponents.size[row] * log_half[m]
                if logs[m] < 1:
                    total += weight[m] * exp(even) * expm1(logs[m])
                else:
                    total += weight[m] * (exp(even + logs[m]) - exp(even))
            found[row] = total


cdef void take_logs(double[::1] product, double[::1] logs) noexcept nogil:
    """Add the logarithms of the products, which are reset."""
    cdef Py_ssize_t m
    for m in range(logs.shape[0]):
        logs[m] += log1p(max(product[m], -1.0))
        product[m] = 0.0
