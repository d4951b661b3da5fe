"""Plackett-Luce by Newton-CG steps; a Hessian product takes two walks along the lists."""

from libc.math cimport exp, fabs, log
from libc.stdint cimport int64_t

import numpy as np

from podium._core.ballots cimport LAST, BallotTable
from podium._core.conjugate_gradient cimport (
    advance_solution,
    center_vector,
    dot_in_order,
    is_step_accepted,
    limit_step,
    start_direction,
)
from podium._core.pairwise_votes cimport find_largest_query


cdef class Stages:
    """The choices of one query: a list is a sequence of blocks, and at each block the best of the rest is chosen.

    List l has the blocks blocks[l] .. blocks[l + 1], block b the rows tops[b] .. tops[b + 1] of the ballots
    and `count` choices. `total` is the sum of the odds at or below each block.
    """

    cdef BallotTable ballots
    cdef int64_t[::1] blocks, tops
    cdef double[::1] count, total, pull
    # by item: choices won and expected, diagonal of the negated Hessian, odds
    cdef double[::1] wins, chosen, diagonal, odds, weighted
    # vectors of the solve
    cdef double[::1] g, trial, move, r, p, image
    cdef int64_t size, lists

    def __cinit__(self, votes, int64_t first, int64_t last):
        self.ballots = BallotTable(votes, first, last)
        rows, lists = len(self.ballots.item), len(self.ballots.starts)
        size = find_largest_query(self.ballots.votes, first, last)
        self.blocks, self.tops = np.zeros(lists + 1, np.int64), np.empty(rows + 1, np.int64)
        self.count, self.total, self.pull = (np.empty(rows) for _ in range(3))
        self.wins, self.chosen, self.diagonal, self.odds, self.weighted = (np.empty(size) for _ in range(5))
        self.g, self.trial, self.move, self.r, self.p, self.image = (np.empty(size) for _ in range(6))

    cdef double build(self, int64_t q, double prior) noexcept nogil:
        """The stages of query q; returns the most wins of an item."""
        cdef int64_t lst, row, r, stop, end, tied, choices, i, n = 0
        cdef double most
        self.ballots.fill(q)
        self.size = self.ballots.votes.slots[q + 1] - self.ballots.votes.slots[q]
        # the prior is a list that ties all items: each is chosen `prior` times
        if prior > 0:
            self.ballots.add_list_of_all(self.size, prior * self.size / (self.size - 1))
        self.lists = self.ballots.count
        for i in range(self.size):
            self.wins[i] = 0.0
        for lst in range(self.ballots.count):
            row = self.ballots.starts[lst]
            stop = self.ballots.starts[lst + 1]
            while row < stop:
                end = row + 1
                while end < stop and self.ballots.rank[end] == self.ballots.rank[row]:
                    end += 1
                tied = end - row
                choices = tied if end < stop else tied - 1
                self.count[n] = 0.0 if self.ballots.rank[row] == LAST else self.ballots.weight[lst] * choices
                for r in range(row, end):
                    self.wins[self.ballots.item[r]] += self.count[n] / tied
                self.tops[n] = row
                n += 1
                row = end
            self.blocks[lst + 1] = n
        self.tops[n] = self.ballots.rows
        most = self.wins[0]
        for i in range(1, self.size):
            most = max(most, self.wins[i])
        return most

    cdef double compute_log_posterior(self, const double* s) noexcept nogil:
        """The log-posterior; leaves the odds of the items, and their sums at or below each block."""
        cdef int64_t i, lst, b, row
        cdef double under, value = 0.0
        for i in range(self.size):
            self.odds[i] = exp(s[i])
            value += self.wins[i] * s[i]
        for lst in range(self.lists):
            under = 0.0
            for b in range(self.blocks[lst + 1] - 1, self.blocks[lst] - 1, -1):
                for row in range(self.tops[b], self.tops[b + 1]):
                    under += self.odds[self.ballots.item[row]]
                self.total[b] = under
                if self.count[b] > 0:
                    value -= self.count[b] * log(under)
        return value

    cdef void compute_expected_choices(self) noexcept nogil:
        """The expected number of choices of each item, and the diagonal of the negated Hessian."""
        cdef int64_t i, lst, b, row
        cdef double rate, square, own
        for i in range(self.size):
            self.chosen[i] = self.diagonal[i] = 0.0
        for lst in range(self.lists):
            rate = square = 0.0
            for b in range(self.blocks[lst], self.blocks[lst + 1]):
                rate += self.count[b] / self.total[b]
                square += self.count[b] / (self.total[b] * self.total[b])
                for row in range(self.tops[b], self.tops[b + 1]):
                    i = self.ballots.item[row]
                    own = self.odds[i]
                    self.chosen[i] += own * rate
                    self.diagonal[i] += own * (rate - own * square)

    cdef void multiply_hessian(self, const double[::1] x, double[::1] out) noexcept nogil:
        """The negated Hessian times x."""
        cdef int64_t i, lst, b, row
        cdef double under, gone
        for i in range(self.size):
            self.weighted[i] = self.odds[i] * x[i]
            out[i] = self.chosen[i] * x[i]
        for lst in range(self.lists):
            under = 0.0
            for b in range(self.blocks[lst + 1] - 1, self.blocks[lst] - 1, -1):
                for row in range(self.tops[b], self.tops[b + 1]):
                    under += self.weighted[self.ballots.item[row]]
                self.pull[b] = self.count[b] * under / (self.total[b] * self.total[b])
            gone = 0.0
            for b in range(self.blocks[lst], self.blocks[lst + 1]):
                gone += self.pull[b]
                for row in range(self.tops[b], self.tops[b + 1]):
                    i = self.ballots.item[row]
                    out[i] -= self.odds[i] * gone

    cdef void solve_newton_system(self, double share) noexcept nogil:
        """Conjugate gradients for the step in `move`, until the residual is that fraction of the gradient."""
        cdef int64_t i, turn, n = self.size
        cdef double rho, limit
        for i in range(n):
            self.move[i] = 0.0
            self.r[i] = self.g[i]
        center_vector(&self.r[0], n)  # zero except for rounding, which would persist
        rho = start_direction(&self.diagonal[0], &self.r[0], &self.p[0], n)
        limit = share * share * rho
        for turn in range(2 * n + 20):
            self.multiply_hessian(self.p, self.image)
            rho = advance_solution(
                &self.diagonal[0], &self.move[0], &self.r[0], &self.p[0], &self.image[0], rho, n
            )
            if rho <= limit:
                break


def fit_plackett_luce(
    int64_t first, int64_t last, votes, double prior, double tolerance, int64_t most_steps,
    double[::1] score, double[::1] gradient, int64_t[::1] steps, double[::1] value,
):
    """Fit a range of queries."""
    cdef Stages stages = Stages(votes, first, last)
    cdef int64_t q, base
    cdef double most
    with nogil:
        for q in range(first, last):
            base = stages.ballots.votes.slots[q]
            if stages.ballots.votes.slots[q + 1] - base < 2:
                continue
            most = stages.build(q, prior)
            if most != 0.0:
                maximize_posterior(
                    stages, most, tolerance, most_steps, &score[base], &gradient[q], &steps[q], &value[q]
                )


def differentiate(votes, int64_t q, double prior, const double[::1] s, const double[::1] x):
    """Log-posterior of query q at s, its gradient, the diagonal of its negated Hessian, and that times x."""
    cdef Stages stages = Stages(votes, q, q + 1)
    cdef double[::1] out = np.empty(len(s))
    stages.build(q, prior)
    value = stages.compute_log_posterior(&s[0])
    stages.compute_expected_choices()
    stages.multiply_hessian(x, out)
    gradient = np.asarray(stages.wins) - np.asarray(stages.chosen)
    return value, gradient, np.asarray(stages.diagonal), np.asarray(out)


cdef void maximize_posterior(
    Stages stages, double scale, double tolerance, int64_t most_steps, double* s, double* gradient,
    int64_t* steps, double* value,
) noexcept nogil:
    """Newton steps until the gradient is small relative to the wins of the most chosen item."""
    cdef int64_t i, step, size = stages.size
    cdef double left, share, promise, after, now = stages.compute_log_posterior(s)
    steps[0] = most_steps + 1
    for step in range(most_steps + 1):
        stages.compute_expected_choices()
        left = 0.0
        for i in range(size):
            stages.g[i] = stages.wins[i] - stages.chosen[i]
            left = max(left, fabs(stages.g[i]))
        left /= scale
        gradient[0] = left
        if left <= tolerance:
            steps[0] = step
            break
        if step == most_steps:
            break
        # no system is solved more accurately than 1e-5: the next step corrects the rest
        stages.solve_newton_system(min(0.1, max(left, 1e-5)))
        # a common shift of the scores has no effect: keep it from accumulating
        center_vector(&stages.move[0], size)
        share = limit_step(&stages.move[0], size)
        promise = dot_in_order(&stages.g[0], &stages.move[0], size)
        while True:
            for i in range(size):
                stages.trial[i] = s[i] + share * stages.move[i]
            after = stages.compute_log_posterior(&stages.trial[0])
            if is_step_accepted(now, after, share * promise):
                break
            share /= 2
        for i in range(size):
            s[i] = stages.trial[i]
        center_vector(s, size)
        now = stages.compute_log_posterior(s)
    value[0] = now
