"""Newton steps for contests with a dense Hessian, for all queries of few items in a range."""

from libc.math cimport INFINITY, atanh, exp, fabs, isfinite, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from podium._core.contest_laws cimport (
    DAVIDSON,
    LOGIT,
    RAO_KUPPER,
    PairDerivatives,
    Pairs,
    differentiate_pair,
    sum_pair_values,
)
from podium._core.vectors cimport dot, find_largest_magnitude


cdef struct Law:
    # the model of a query, and its prior
    int kind
    bint half
    double l2
    double shape
    double extra


cdef struct Limits:
    double tolerance
    int64_t max_iterations
    double longest_step
    double smooth
    double stall
    double flat_stall
    double flat


cdef struct Query:
    # one problem: `size` scores, then the width of ties and the advantage where they are estimated
    Pairs pairs
    Law law
    const int64_t* label
    int64_t size
    int64_t unknowns


cdef struct Room:
    double* matrix
    double* x
    double* gradient
    double* move
    double* new
    double* total
    double* number


def solve_small_queries(
    int64_t first_query, int64_t last_query, contests, const int64_t[::1] label, law, limits,
    int64_t largest, found,
):
    """Solve all queries of up to `largest` items in a range; see `kernels.contest_solvers.iterate_newton`."""
    cdef const int64_t[::1] starts = contests[0], pair_starts = contests[1]
    cdef const int32_t[::1] first = contests[2], second = contests[3]
    cdef const double[::1] won = contests[4], lost = contests[5], tied = contests[6], side = contests[7]
    cdef double[::1] scores = found[0], width = found[1], advantage = found[2], gradient = found[3]
    cdef double[::1] objective = found[4]
    cdef int64_t[::1] iterations = found[5]
    cdef uint8_t[::1] converged = found[6]
    cdef Law asked = Law(law[0], law[1], law[2], law[3], law[4])
    cdef Limits stop = Limits(limits[0], limits[1], limits[2], limits[3], limits[4], limits[5], limits[6])
    cdef double[:, ::1] memory = np.empty((6, largest + 2))
    cdef double[::1] matrix = np.empty((largest + 2) ** 2)
    cdef Room room = Room(
        &matrix[0], &memory[0, 0], &memory[1, 0], &memory[2, 0], &memory[3, 0], &memory[4, 0], &memory[5, 0]
    )
    cdef int64_t q, base, a, i
    cdef double share, e
    cdef Query query
    cdef bint sided = side.shape[0] > 0
    with nogil:
        for q in range(first_query, last_query):
            base = starts[q]
            query.size = starts[q + 1] - base
            if query.size > largest or query.size == 0:
                continue
            a = pair_starts[q]
            query.pairs = Pairs(NULL, NULL, NULL, NULL, NULL, NULL, pair_starts[q + 1] - a, base)
            if query.pairs.count:
                query.pairs.first = &first[a]
                query.pairs.second = &second[a]
                query.pairs.won = &won[a]
                query.pairs.lost = &lost[a]
                query.pairs.tied = &tied[a]
                query.pairs.side = &side[a] if sided else NULL
            share = compute_tie_share(&query.pairs)
            query.law = asked
            if asked.kind >= DAVIDSON and share == 0:
                query.law.kind = LOGIT
            query.label = &label[base]
            query.unknowns = query.size + (query.law.kind >= DAVIDSON) + sided
            fill_start(&query, share, &scores[base], room.x)
            converged[q] = iterate_newton(&query, &stop, &room, &iterations[q])
            for i in range(query.size):
                scores[base + i] = room.x[i]
            e = 0.0
            if query.law.kind >= DAVIDSON:
                e = room.x[query.size]
                width[q] = e
            if sided:
                advantage[q] = room.x[query.unknowns - 1]
            gradient[q] = find_largest_magnitude(room.gradient, query.unknowns)
            objective[q] = sum_pair_values(
                &query.pairs, 0, query.pairs.count, query.law.kind, query.law.half, room.x, e,
                room.x[query.unknowns - 1],
            )
            objective[q] += compute_prior_value(&query, room.x)


cdef double compute_tie_share(const Pairs* pairs) noexcept nogil:
    """The fraction of ties among all votes."""
    cdef double ties = 0.0, votes = 0.0
    cdef int64_t p
    for p in range(pairs.count):
        ties += pairs.tied[p]
        votes += pairs.won[p] + pairs.lost[p] + pairs.tied[p]
    return ties / votes if votes > 0 else 0.0


cdef void fill_start(const Query* query, double share, const double* scores, double* x) noexcept nogil:
    """Initial unknowns: scores, the width that gives the observed fraction of ties, no advantage."""
    cdef int64_t i
    for i in range(query.unknowns):
        x[i] = scores[i] if i < query.size else 0.0
    if query.law.kind >= DAVIDSON:
        share = min(max(share, 1e-6), 1 - 1e-6)
        x[query.size] = log(2 * share / (1 - share)) if query.law.kind == DAVIDSON else 2 * atanh(share)


cdef void compute_derivatives(
    const Query* query, const double* x, double* gradient, double* matrix
) noexcept nogil:
    """Gradient and lower half of the Hessian of all pairs at x."""
    cdef const Pairs* pairs = &query.pairs
    cdef int64_t p, i, j, n = query.unknowns, size = query.size
    cdef int64_t last = n - 1
    cdef double e = x[size] if query.law.kind >= DAVIDSON else 0.0
    cdef double a = x[last] if pairs.side != NULL else 0.0
    cdef double s, more
    cdef PairDerivatives t
    for i in range(n):
        gradient[i] = 0.0
    for i in range(n * n):
        matrix[i] = 0.0
    for p in range(pairs.count):
        i = pairs.first[p] - pairs.base
        j = pairs.second[p] - pairs.base
        s = pairs.side[p] if pairs.side != NULL else 0.0
        more = 0.5 * pairs.tied[p] if query.law.half else 0.0
        t = differentiate_pair(
            query.law.kind, x[i] - x[j] + s * a, e, pairs.won[p] + more, pairs.lost[p] + more, pairs.tied[p]
        )
        gradient[i] += t.d
        gradient[j] -= t.d
        matrix[i * n + i] += t.dd
        matrix[j * n + j] += t.dd
        matrix[j * n + i] -= t.dd  # j > i
        if query.law.kind >= DAVIDSON:
            gradient[size] += t.e
            matrix[size * n + i] += t.de
            matrix[size * n + j] -= t.de
            matrix[size * n + size] += t.ee
        if pairs.side != NULL:
            gradient[last] += s * t.d
            matrix[last * n + i] += s * t.dd
            matrix[last * n + j] -= s * t.dd
            matrix[last * n + last] += s * s * t.dd
            if query.law.kind >= DAVIDSON:
                matrix[last * n + size] += s * t.de


cdef void remove_component_excess(const Query* query, const Room* room) noexcept nogil:
    """Remove the sum of each component's gradient, zero except for rounding, in proportion to the diagonal."""
    cdef int64_t i, c, n = query.unknowns
    for i in range(query.size):
        room.total[i] = room.number[i] = 0.0
    for i in range(query.size):
        c = query.label[i] - query.pairs.base
        room.total[c] += room.gradient[i]
        room.number[c] += room.matrix[i * n + i]
    for i in range(query.size):
        c = query.label[i] - query.pairs.base
        if room.number[c] > 0:
            room.gradient[i] -= room.matrix[i * n + i] * room.total[c] / room.number[c]


cdef void center_components(const Query* query, double* x, const Room* room) noexcept nogil:
    """Shift each component to the level its prior prefers: mean 0, or mean strength 1."""
    cdef int64_t i, c
    cdef double mean, top = 0.0
    cdef bint strengths = query.law.shape > 1
    if strengths:
        for i in range(query.size):
            top = max(top, x[i])
    for i in range(query.size):
        room.total[i] = room.number[i] = 0.0
    for i in range(query.size):
        c = query.label[i] - query.pairs.base
        room.total[c] += exp(x[i] - top) if strengths else x[i]
        room.number[c] += 1
    for i in range(query.size):
        c = query.label[i] - query.pairs.base
        mean = room.total[c] / room.number[c]
        x[i] -= top + log(mean) if strengths else mean


cdef void add_prior(const Query* query, const double* x, double* gradient, double* matrix) noexcept nogil:
    """Add the prior; `matrix` gets it on its diagonal."""
    cdef int64_t i, n = query.unknowns
    cdef double ridge, strength, shape = query.law.shape
    for i in range(n):
        ridge = query.law.l2 if i < query.size else query.law.extra
        gradient[i] += ridge * x[i]
        matrix[i * n + i] += ridge
        if shape > 1 and i < query.size:
            strength = (shape - 1) * exp(x[i])
            gradient[i] += strength - (shape - 1)
            matrix[i * n + i] += strength


cdef double compute_prior_value(const Query* query, const double* x) noexcept nogil:
    """The negative log of the prior."""
    cdef int64_t i
    cdef double total = 0.0
    for i in range(query.unknowns):
        total += (query.law.l2 if i < query.size else query.law.extra) / 2 * (x[i] * x[i])
        if query.law.shape > 1 and i < query.size:
            total += (query.law.shape - 1) * (exp(x[i]) - 1 - x[i])
    return total


cdef void solve_cholesky_step(double* matrix, int64_t n, const double* gradient, double* move) noexcept nogil:
    """Solve matrix . move = -gradient; the lower half of the matrix is replaced by its factor."""
    cdef int64_t i, j
    cdef double whole
    cdef double* row
    for i in range(n):
        row = matrix + i * n
        whole = row[i]
        for j in range(i):
            row[j] = (row[j] - dot(row, matrix + j * n, j)) / matrix[j * n + j]
        row[i] = sqrt(max(whole - dot(row, row, i), 1e-15 * whole + 1e-300))
        move[i] = (-gradient[i] - dot(row, move, i)) / row[i]
    for i in range(n - 1, -1, -1):
        move[i] /= matrix[i * n + i]
        for j in range(i):
            move[j] -= matrix[i * n + j] * move[i]


cdef void compute_centered_derivatives(const Query* query, double* x, const Room* room) noexcept nogil:
    """Center x, and compute the gradient and the Hessian there."""
    cdef int64_t i, j, n = query.unknowns
    center_components(query, x, room)
    compute_derivatives(query, x, room.gradient, room.matrix)
    remove_component_excess(query, room)
    add_prior(query, x, room.gradient, room.matrix)
    if query.law.l2 == 0 and query.law.shape == 1:  # the level of a component is undetermined: pin it
        for i in range(query.size):
            for j in range(i + 1):
                if query.label[i] == query.label[j]:
                    room.matrix[i * n + j] += 1.0


cdef bint iterate_newton(
    const Query* query, const Limits* stop, const Room* room, int64_t* steps
) noexcept nogil:
    """Damped Newton steps; leaves x and its gradient at the end. The steps, and whether they converged."""
    cdef int64_t i, step, n = query.unknowns
    cdef double limit, longest, share, down, rising, most, before = INFINITY
    compute_centered_derivatives(query, room.x, room)
    for step in range(1, stop.max_iterations + 1):
        solve_cholesky_step(room.matrix, n, room.gradient, room.move)
        limit = max(stop.longest_step, find_largest_magnitude(room.x, n))
        if find_largest_magnitude(room.move, n) > limit:  # see `kernels.contest_solvers`
            compute_centered_derivatives(query, room.x, room)
            solve_steeper_step(room, n, limit)
        longest = find_largest_magnitude(room.move, n)
        if not isfinite(longest):  # without a prior there may be no finite solution
            break
        share = 1.0
        if query.law.kind == RAO_KUPPER and room.move[query.size] < 0:  # the width must stay positive
            share = min(share, -0.9 * room.x[query.size] / room.move[query.size])
        down = max(-dot(room.gradient, room.move, n), 0.0)
        while True:
            for i in range(n):
                room.new[i] = room.x[i] + share * room.move[i]
            compute_centered_derivatives(query, room.new, room)
            rising = dot(room.gradient, room.move, n)
            if longest * share <= stop.smooth or rising <= 0.5 * down:
                break
            share *= min(max(down / (down + rising), 0.1), 0.7)
        for i in range(n):
            room.x[i] = room.new[i]
        most = stop.flat_stall if compute_axis_error(room, n) <= stop.flat else stop.stall
        if share == 1.0 and (longest <= stop.tolerance or 0.25 * before <= longest <= most):
            steps[0] = step
            return True
        before = longest
    steps[0] = stop.max_iterations
    return False


cdef double compute_axis_error(const Room* room, int64_t n) noexcept nogil:
    """The largest step along one axis."""
    cdef int64_t i
    cdef double most = 0.0
    for i in range(n):
        most = max(most, fabs(room.gradient[i]) / max(room.matrix[i * n + i], 1e-300))
    return most


cdef void solve_steeper_step(const Room* room, int64_t n, double limit) noexcept nogil:
    """A step with a larger ridge, and no longer than the limit."""
    cdef int64_t i
    cdef double longest, more = find_largest_magnitude(room.gradient, n) / limit
    for i in range(n):
        room.matrix[i * n + i] += more
    solve_cholesky_step(room.matrix, n, room.gradient, room.move)
    longest = find_largest_magnitude(room.move, n)
    if longest > limit:
        for i in range(n):
            room.move[i] *= limit / longest
