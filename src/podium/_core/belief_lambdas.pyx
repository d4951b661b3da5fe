"""Gradients towards preferences implied by beliefs, query by query; memory is linear in a query's items."""

from libc.math cimport exp, fabs, log1p, log2
from libc.stdint cimport int32_t, int64_t

import numpy as np

from podium._core.sorting cimport merge_sort

cdef double NEAR = 1e-10, STEEP = 600.0  # as in `podium.kernels.belief_lambdas`


cdef class Places:
    """The items of one query by place, and sums over the places: room for the longest query.

    By place: score, exp(belief), exp(score), discount, slope, and the first place of its run of near-equal
    scores.
    """

    cdef double[::1] s, t, e, f, d, pull, run
    # P(c over b) summed over the places c above b (its complement, and discounted) and below b; parts of them
    cdef double[::1] above, seen, tail, best, passed
    cdef double[::1] key, spare_key
    cdef int32_t[::1] order, spare_order
    cdef double loss, mass

    def __cinit__(self, int64_t n):
        self.s, self.t, self.e, self.f, self.d, self.pull, self.run = (np.empty(n) for _ in range(7))
        self.above, self.seen, self.tail, self.best, self.passed = (np.empty(n) for _ in range(5))
        self.key, self.spare_key = np.empty(n), np.empty(n)
        self.order, self.spare_order = np.empty(n, np.int32), np.empty(n, np.int32)


def compute_belief_lambdas(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[::1] scores,
    const double[::1] belief, int64_t cutoff, double[::1] slope, double[::1] loss, double[::1] mass,
):
    """For a range of queries: the slope of every row, the loss and the sum of pair weights of every query."""
    cdef int64_t q, longest = 1
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    cdef Places places = Places(longest)
    with nogil:
        for q in range(first, last):
            if starts[q + 1] - starts[q] > 1:
                compute_query_lambdas(
                    starts[q + 1] - starts[q], &scores[starts[q]], &belief[starts[q]], cutoff,
                    &slope[starts[q]], places,
                )
                loss[q] += places.loss
                mass[q] += places.mass


cdef void compute_query_lambdas(
    int64_t n, const double* scores, const double* belief, int64_t cutoff, double* slope, Places w
) noexcept nogil:
    """The slopes of one query; leaves its loss and mass."""
    cdef int64_t i, p
    cdef double highest = belief[0]
    sort_rows(n, scores, belief, w)
    for i in range(n):
        highest = max(highest, belief[i])
    for p in range(n):
        w.s[p] = scores[w.order[p]]
        w.t[p] = belief[w.order[p]]
        w.e[p] = exp(max(w.t[p] - highest, -STEEP))
        w.f[p] = exp(max(w.s[p] - w.s[0], -STEEP))
        w.d[p] = 1.0 / log2(p + 2.0) if p < cutoff else 0.0
        w.pull[p] = 0.0
    add_pair_lambdas(n, min(cutoff, n), w)
    average_ties(n, w)
    for p in range(n):
        slope[w.order[p]] = w.pull[p]


cdef void add_pair_lambdas(int64_t n, int64_t top, Places w) noexcept nogil:
    """Change when places a < b are swapped, by running sums between them; 0 if both are below the cutoff."""
    cdef int64_t a, b, c
    cdef double p, p_ab, p_ba, left, inner, under, between, change, gap
    w.loss = w.mass = 0.0
    for b in range(n):
        w.above[b] = w.seen[b] = w.tail[b] = w.best[b] = w.passed[b] = 0.0
    for b in range(1, n):
        for c in range(b):
            p = w.e[c] / (w.e[c] + w.e[b])
            w.above[b] += 1.0 - p
            w.seen[b] += w.d[c] * p
            w.tail[c] += p
    for a in range(top):
        # sums of P(a over c): c >= b, between, and d_c P(c over a) between
        left = w.tail[a]
        inner = under = 0.0
        for b in range(a + 1, n):
            p_ab = w.e[a] / (w.e[a] + w.e[b])
            p_ba = 1.0 - p_ab
            w.best[b] += p_ba  # now: P(b over c) for c <= a
            w.passed[b] += w.d[a] * p_ab
            left -= p_ab
            between = w.d[a] * (w.above[b] - w.best[b] - inner) + under - (w.seen[b] - w.passed[b])
            change = fabs(w.d[a] * (p_ba - p_ab) + between + (w.d[a] - w.d[b]) * (w.tail[b] - left))
            # swapping equal beliefs changes nothing; the sums leave a rounding error, which a large gap multiplies
            change *= w.e[a] != w.e[b]
            gap = change * (p_ab - w.f[a] / (w.f[a] + w.f[b]))
            w.pull[a] += gap
            w.pull[b] -= gap
            w.mass += change
            w.loss += change * (softplus(w.s[b] - w.s[a]) + p_ba * (w.s[a] - w.s[b]))
            inner += p_ab
            under += w.d[b] * p_ba


cdef inline double softplus(double x) noexcept nogil:
    """log(1 + exp(x))."""
    return max(x, 0.0) + log1p(exp(-fabs(x)))


cdef void sort_rows(int64_t n, const double* scores, const double* belief, Places w) noexcept nogil:
    """Rows from the top; near-equal scores: worse belief first. Writes the run of each place."""
    cdef int64_t i, k, x, begin = 0
    cdef double near
    for i in range(n):
        w.key[i] = -scores[i]
        w.order[i] = <int32_t>i
    merge_sort(&w.key[0], &w.order[0], n, &w.spare_key[0], &w.spare_order[0])
    near = NEAR * max(fabs(scores[w.order[0]]), fabs(scores[w.order[n - 1]]))
    for k in range(1, n + 1):
        if k < n and not scores[w.order[k - 1]] - scores[w.order[k]] > near:
            continue
        for x in range(begin, k):
            w.key[x] = belief[w.order[x]]
            w.run[x] = begin
        merge_sort(&w.key[begin], &w.order[begin], k - begin, &w.spare_key[0], &w.spare_order[0])
        begin = k


cdef void average_ties(int64_t n, Places w) noexcept nogil:
    """Average the slope over rows of one run with equal beliefs."""
    cdef int64_t p, k, begin = 0
    cdef double total, high = 0.0
    for p in range(n):
        high = max(high, fabs(w.t[p]))
    for k in range(1, n + 1):
        if k < n and w.run[k - 1] == w.run[k] and not w.t[k] - w.t[k - 1] > NEAR * high:
            continue
        if k - begin > 1:
            total = 0.0
            for p in range(begin, k):
                total += w.pull[p]
            for p in range(begin, k):
                w.pull[p] = total / (k - begin)
        begin = k
