"""LambdaRank gradients query by query, and whole passes of a linear model."""

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t

import numpy as np

from podium._core.optimizer cimport Optimizer, update_weights
from podium._core.vectors cimport dot

cdef double NEAR = 1e-10, STEEP = 600.0  # as in `podium.kernels.lambdas`


cdef struct Query:
    # the rows of one query, best grade first, and how its places count
    int64_t rows
    const double* score
    const double* gain
    const int32_t* level
    const double* weight
    const double* discount
    int64_t limit
    double scale
    int64_t* order  # rows from the top; the last order on entry, which changes little
    double* slope  # the result
    # room for one number per row: place, exp(score - highest score), discount of its place
    double* place
    double* e
    double* value


cdef class Target:
    """The columns of `podium.kernels.lambdas.MetricTarget`, and room for the longest query."""

    cdef const int64_t[::1] starts, limit
    cdef int kind
    cdef const double[::1] gain, discount, scale, weight
    cdef const int32_t[::1] level
    cdef double[:, ::1] room

    def __cinit__(self, starts, int kind, gain, level, discount, limit, scale, weight):
        self.starts, self.kind, self.gain, self.level = starts, kind, gain, level
        self.discount, self.limit, self.scale, self.weight = discount, limit, scale, weight
        self.room = np.empty((3, max(1, int(np.diff(starts).max(initial=0)))))

    cdef void compute_query(
        self, int64_t q, const double* scores, int64_t* order, double* out
    ) noexcept nogil:
        """The gradient of query q; the arrays hold all rows."""
        cdef int64_t a = self.starts[q]
        cdef Query query
        query.rows = self.starts[q + 1] - a
        if query.rows == 0:
            return
        query.score = scores + a
        query.gain = &self.gain[a]
        query.level = &self.level[a]
        query.weight = &self.weight[a]
        query.discount = &self.discount[0]
        query.limit = self.limit[q]
        query.scale = self.scale[q]
        query.order = order + a
        query.slope = out + a
        query.place = &self.room[0, 0]
        query.e = &self.room[1, 0]
        query.value = &self.room[2, 0]
        compute_query_lambdas(&query, self.kind)


def compute_lambdas(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[::1] scores, int kind, gain, level,
    discount, limit, scale, weight, int64_t[::1] order, double[::1] out,
):
    """Gradients for a range of queries; `order` holds a guess of each query's order and is updated."""
    cdef Target target = Target(starts, kind, gain, level, discount, limit, scale, weight)
    cdef int64_t q
    if scores.shape[0] == 0:
        return
    with nogil:
        for q in range(first, last):
            if target.scale[q] != 0.0:
                target.compute_query(q, &scores[0], &order[0], &out[0])


def train_linear_pass(
    const double[:, ::1] values, const int64_t[::1] starts, int kind, gain, level, discount, limit, scale,
    weight, const int64_t[::1] visit, int64_t batch, double[::1] weights, double[::1] mean,
    double[::1] square, int64_t[::1] steps, bint adam, double rate, double l2, bint positive,
    const double[::1] towards,
):
    """Queries in the order of `visit`, with a step after every `batch`."""
    cdef Target target = Target(starts, kind, gain, level, discount, limit, scale, weight)
    cdef int64_t rows = values.shape[0], width = values.shape[1], at, q, i, c
    cdef double[::1] scores = np.empty(rows), out = np.empty(rows), gradient = np.zeros(width)
    cdef int64_t[::1] order = np.arange(rows) - np.repeat(np.asarray(starts)[:-1], np.diff(starts))
    cdef Optimizer state
    if width == 0 or rows == 0:
        return
    state = Optimizer(
        &weights[0], &mean[0], &square[0], &steps[0], width, adam, rate, l2, positive, &towards[0]
    )
    with nogil:
        for at in range(visit.shape[0]):
            q = visit[at]
            if target.scale[q] != 0.0:
                for i in range(starts[q], starts[q + 1]):
                    scores[i] = dot(&values[i, 0], &weights[0], width)
                target.compute_query(q, &scores[0], &order[0], &out[0])
                for i in range(starts[q], starts[q + 1]):
                    if out[i] != 0.0:
                        for c in range(width):
                            gradient[c] += out[i] * values[i, c]
            if (at + 1) % batch == 0 or at + 1 == visit.shape[0]:
                update_weights(&state, &gradient[0], at % batch + 1)


cdef void compute_query_lambdas(Query* q, int kind) noexcept nogil:
    """The gradient of one query."""
    cdef double near = sort_rows(q), top = q.score[q.order[0]]
    cdef int64_t k, i
    for k in range(q.rows):
        i = q.order[k]
        q.place[i] = k
        q.e[i] = exp(max(q.score[i] - top, -STEEP))
        q.slope[i] = 0.0
    if kind == 0:
        add_sum_lambdas(q)
    elif kind == 1:
        add_precision_lambdas(q)
    elif kind == 4:
        add_pair_lambdas(q)
    else:
        add_cascade_lambdas(q)
    average_ties(q, near)


cdef double sort_rows(Query* q) noexcept nogil:
    """Insertion sort of the last order. Near-equal scores: worst grade first. Returns how near that is."""
    cdef int64_t k, m, i, x, begin = 0, n = q.rows
    cdef double s, near
    cdef int64_t* order = q.order
    for k in range(1, n):
        i = order[k]
        s = q.score[i]
        m = k
        while m > 0 and (q.score[order[m - 1]] < s or (q.score[order[m - 1]] == s and order[m - 1] > i)):
            order[m] = order[m - 1]
            m -= 1
        order[m] = i
    near = NEAR * max(fabs(q.score[order[0]]), fabs(q.score[order[n - 1]]))
    for k in range(1, n + 1):
        if k < n and not q.score[order[k - 1]] - q.score[order[k]] > near:
            continue
        for x in range(begin + 1, k):
            i = order[x]
            m = x
            while m > begin and (
                q.level[order[m - 1]] > q.level[i] or (q.level[order[m - 1]] == q.level[i] and order[m - 1] > i)
            ):
                order[m] = order[m - 1]
                m -= 1
            order[m] = i
        begin = k
    return near


cdef void add_sum_lambdas(Query* q) noexcept nogil:
    """Rows are sorted best grade first, so the rows worse than row i are those after its grade."""
    cdef int64_t i, j, p, end = 0
    cdef double g, d, x, w, pull, pulled
    for i in range(q.rows):
        p = <int64_t>q.place[i]
        q.value[i] = q.discount[p] if p < q.limit else 0.0
    for i in range(q.rows):
        if i == 0 or q.level[i] != q.level[i - 1]:
            end = i
            while end < q.rows and q.level[end] == q.level[i]:
                end += 1
        g = q.gain[i]
        d = q.value[i]
        x = q.e[i]
        w = q.scale * q.weight[i]
        pulled = 0.0
        for j in range(end, q.rows):
            pull = fabs((g - q.gain[j]) * (d - q.value[j])) * w * q.weight[j] * (q.e[j] / (x + q.e[j]))
            pulled += pull
            q.slope[j] += pull
        q.slope[i] -= pulled


cdef void add_pair_lambdas(Query* q) noexcept nogil:
    """Every pair of different grades counts alike, wherever its two rows are (RankNet)."""
    cdef int64_t i, j, end = 0
    cdef double x, w, pull, pulled
    for i in range(q.rows):
        if i == 0 or q.level[i] != q.level[i - 1]:
            end = i
            while end < q.rows and q.level[end] == q.level[i]:
                end += 1
        x = q.e[i]
        w = q.scale * q.weight[i]
        pulled = 0.0
        for j in range(end, q.rows):
            pull = w * q.weight[j] * (q.e[j] / (x + q.e[j]))
            pulled += pull
            q.slope[j] += pull
        q.slope[i] -= pulled


cdef inline void add_pair_lambda(Query* q, int64_t i, int64_t j, double change) noexcept nogil:
    """Pull the better of two rows up and the other one down, by what swapping them changes."""
    cdef double pull
    change = fabs(change) * q.weight[i] * q.weight[j]
    if q.level[i] > q.level[j]:
        pull = change * (q.e[j] / (q.e[i] + q.e[j]))
        q.slope[i] -= pull
        q.slope[j] += pull
    elif q.level[i] < q.level[j]:
        pull = change * (q.e[i] / (q.e[i] + q.e[j]))
        q.slope[j] -= pull
        q.slope[i] += pull


cdef void add_precision_lambdas(Query* q) noexcept nogil:
    """Average precision; gains are 0 or 1."""
    cdef int64_t x, y, i, j
    cdef double here, there, inner, below, hits = 0.0  # relevant rows down to place x
    for x in range(q.rows):
        i = q.order[x]
        hits += q.gain[i]
        here = 1.0 / q.discount[x] if x < q.limit else 0.0
        inner = 0.0
        below = hits
        for y in range(x + 1, q.rows):
            j = q.order[y]
            there = 1.0 / q.discount[y] if y < q.limit else 0.0
            below += q.gain[j]
            if q.gain[i] > q.gain[j]:
                add_pair_lambda(q, i, j, q.scale * (below * there - hits * here - inner))
            elif q.gain[i] < q.gain[j]:
                add_pair_lambda(q, i, j, q.scale * ((hits + 1) * here + inner - below * there))
            inner += q.gain[j] * there


cdef void add_cascade_lambdas(Query* q) noexcept nogil:
    """A cascade: reading stops at a row with the probability of its gain."""
    cdef int64_t x, y, i, j
    cdef double g, h, d, f, old, new, inner, through, before = 1.0
    for x in range(q.rows):
        i = q.order[x]
        g = q.gain[i]
        d = q.discount[x] if x < q.limit else 0.0
        inner = 0.0
        through = 1.0
        for y in range(x + 1, q.rows):
            j = q.order[y]
            h = q.gain[j]
            f = q.discount[y] if y < q.limit else 0.0
            old = d * g + (1.0 - g) * (inner + through * f * h)
            new = d * h + (1.0 - h) * (inner + through * f * g)
            add_pair_lambda(q, i, j, q.scale * before * (new - old))
            inner += through * f * h
            through *= 1.0 - h
        before *= 1.0 - g


cdef void average_ties(Query* q, double near) noexcept nogil:
    """Average the gradient over rows of one grade in one run of near-equal scores."""
    cdef int64_t k, x, i, j, begin = 0
    cdef double total
    for k in range(1, q.rows + 1):
        if k < q.rows:
            i = q.order[k - 1]
            j = q.order[k]
            if not (q.score[i] - q.score[j] > near or q.level[i] != q.level[j]):
                continue
        if k - begin > 1:
            total = 0.0
            for x in range(begin, k):
                total += q.slope[q.order[x]]
            for x in range(begin, k):
                q.slope[q.order[x]] = total / (k - begin)
        begin = k
