"""Completion of skew matrices by projection onto rank two, one query after the other."""

from libc.math cimport fabs, isinf, log, sqrt
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

import numpy as np

from podium._core.conjugate_gradient cimport dot_in_order
from podium._core.pairwise_votes cimport VoteColumns, find_largest_query

# as in `podium.kernels.matrix_completion`
cdef double INNER = 1e-2, FINEST = 1e-28, NOTHING = 1e-14
cdef enum:
    MOST_TURNS = 500


cdef class Rule:
    """The columns of `podium.kernels.matrix_completion.DifferenceRule`."""

    cdef const double[::1] value, bottom
    cdef bint binary
    cdef int combine
    cdef double unit

    def __cinit__(self, value, bottom, bint binary, int combine, double unit):
        self.value, self.bottom, self.binary, self.combine, self.unit = value, bottom, binary, combine, unit


cdef struct Room:
    # matrices of size x size: differences, 1 where they are known, three iterates, the filled matrix
    double* table
    double* known
    double* x
    double* y
    double* z
    double* filled
    # two vectors each
    double* plane
    double* turned
    double* new
    uint8_t* held
    int64_t size
    double shrink


def complete_matrices(
    int64_t first, int64_t last, votes, value, bottom, bint binary, int combine, double unit, double shrink,
    double tolerance, int64_t most_steps, double[::1] score, int64_t[::1] steps, double[::1] change,
    double[::1] error, double[::1] norm,
):
    """Complete the matrices of a range of queries."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef Rule rule = Rule(value, bottom, binary, combine, unit)
    cdef int64_t q, i, size = max(find_largest_query(columns, first, last), 1)
    cdef double[:, ::1] matrices = np.empty((6, size * size)), planes = np.empty((3, 2 * size))
    cdef uint8_t[::1] held = np.empty(size, np.uint8)
    cdef Room room = Room(
        &matrices[0, 0], &matrices[1, 0], &matrices[2, 0], &matrices[3, 0], &matrices[4, 0], &matrices[5, 0],
        &planes[0, 0], &planes[1, 0], &planes[2, 0], &held[0], 0, shrink,
    )
    with nogil:
        for q in range(first, last):
            size = columns.slots[q + 1] - columns.slots[q]
            if size < 2:
                continue
            room.size = size
            fill_differences(columns, q, rule, room.table, room.known, room.held)
            steps[q] = solve_completion(&room, tolerance, most_steps, &score[columns.slots[q]], &change[q])
            for i in range(size):
                norm[q] += dot_in_order(room.table + i * size, room.table + i * size, size)
            error[q] = norm[q] if steps[q] == 0 else compute_misfit(&room, room.x)


def build_differences(votes, int64_t q, value, bottom, bint binary, int combine, double unit):
    """Y of one query, and 1 where it is known."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef Rule rule = Rule(value, bottom, binary, combine, unit)
    size = int(columns.slots[q + 1] - columns.slots[q])
    cdef double[:, ::1] net = np.zeros((size, size)), known = np.zeros((size, size))
    cdef uint8_t[::1] held = np.empty(size, np.uint8)
    if size:
        fill_differences(columns, q, rule, &net[0, 0], &known[0, 0], &held[0])
    return np.asarray(net), np.asarray(known)


def complete_matrix(const double[:, ::1] table, const double[:, ::1] known, double shrink, double tolerance,
                    int64_t most_steps):
    """Row means, number of projections and completed matrix of one given matrix."""
    cdef int64_t size = table.shape[0]
    cdef double[:, ::1] matrices = np.empty((6, size * size)), planes = np.empty((3, 2 * size))
    cdef double[::1] score = np.zeros(size)
    cdef double change = 0.0
    np.asarray(matrices)[0] = np.asarray(table).ravel()
    np.asarray(matrices)[1] = np.asarray(known).ravel()
    cdef Room room = Room(
        &matrices[0, 0], &matrices[1, 0], &matrices[2, 0], &matrices[3, 0], &matrices[4, 0], &matrices[5, 0],
        &planes[0, 0], &planes[1, 0], &planes[2, 0], NULL, size, shrink,
    )
    steps = solve_completion(&room, tolerance, most_steps, &score[0], &change)
    return np.asarray(score), steps, np.asarray(matrices[2]).reshape(size, size)


cdef inline void add_preference(
    double* net, double* known, int64_t size, int64_t i, int64_t j, double gain, double weight
) noexcept nogil:
    """Add a preference for i over j with this weight and strength."""
    net[i * size + j] += gain
    net[j * size + i] -= gain
    known[i * size + j] += weight
    known[j * size + i] += weight


cdef void fill_differences(
    VoteColumns votes, int64_t q, Rule rule, double* net, double* known, uint8_t* held
) noexcept nogil:
    """Y of one query in `net`, and 1 in `known` where it is known."""
    cdef int64_t base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    cdef int64_t lst, a, b, i, j, v, start, stop
    cdef double gap, weight, n, h
    for i in range(size * size):
        net[i] = known[i] = 0.0
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start = votes.starts[lst]
        stop = votes.starts[lst + 1]
        weight = votes.list_weight[lst]
        for i in range(size):
            held[i] = False
        for a in range(start, stop):
            i = votes.item[a] - base
            held[i] = True
            for b in range(a + 1, stop):
                gap = rule.value[b] - rule.value[a]
                if rule.binary:
                    gap = (gap > 0) - (gap < 0)
                add_preference(net, known, size, i, votes.item[b] - base, weight * gap, weight)
        if votes.below:
            for a in range(start, stop):
                gap = 1.0 if isinf(rule.bottom[lst]) else rule.bottom[lst] - rule.value[a]
                for j in range(size):
                    if not held[j]:
                        add_preference(net, known, size, votes.item[a] - base, j, weight * gap, weight)
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        weight = votes.vote_weight[v]
        gap = 0.0 if votes.tie[v] else weight
        add_preference(net, known, size, votes.winner[v] - base, votes.loser[v] - base, gap, weight)
    for i in range(size * size):
        n = net[i] * rule.unit
        h = known[i] * rule.unit
        if rule.combine == 1:
            n = n / h if h > 0 else 0.0
        elif rule.combine == 2:
            n = log((h + n + 2) / (h - n + 2))
        net[i] = n
        known[i] = 1.0 if h > 0 else 0.0


cdef int64_t solve_completion(
    const Room* room, double tolerance, int64_t most_steps, double* s, double* last_change
) noexcept nogil:
    """Project and extrapolate until a projection changes little; adds the row means to s, leaves X in room.x."""
    cdef int64_t i, j, size = room.size, steps = 1, done = most_steps + 1
    cdef size_t whole = size * size * sizeof(double)
    cdef double change = 1.0
    if not find_start_plane(room):
        last_change[0] = 0.0
        return 0
    project_rank_two(room.table, room.plane, FINEST, room.x, room)
    while steps < most_steps:
        project_filled(room, room.x, room.plane, change, room.y)
        change = compute_relative_change(room)
        steps += 1
        if change <= tolerance:
            memcpy(room.x, room.y, whole)
            done = steps
            break
        # two plain projections provide the direction of an extrapolation (SQUAREM)
        project_filled(room, room.y, room.plane, change, room.z)
        steps += 1
        if extrapolate_matrices(room):  # leaves the extrapolation in x
            memcpy(room.turned, room.plane, 2 * size * sizeof(double))
            project_filled(room, room.x, room.turned, change, room.y)
            steps += 1
            if compute_misfit(room, room.y) <= compute_misfit(room, room.z):
                memcpy(room.z, room.y, whole)
                memcpy(room.plane, room.turned, 2 * size * sizeof(double))
        memcpy(room.x, room.z, whole)
    for i in range(size):
        for j in range(size):
            s[i] += room.x[i * size + j] / size
    last_change[0] = change
    return done


cdef bint find_start_plane(const Room* room) noexcept nogil:
    """A plane through the row sums; false when they are all zero."""
    cdef int64_t i, j, n = room.size
    cdef double size, top = 0.0, most = 0.0
    for i in range(n):
        room.plane[i] = size = 0.0
        for j in range(n):
            room.plane[i] += room.table[i * n + j]
            size += fabs(room.table[i * n + j])
        top = max(top, fabs(room.plane[i]))
        most = max(most, size)
    if top <= NOTHING * most:
        return False
    for i in range(n):
        room.plane[n + i] = dot_in_order(room.table + i * n, room.plane, n)
    orthonormalize(room.plane, n)
    return True


cdef void orthonormalize(double* plane, int64_t n) noexcept nogil:
    """Make the two vectors orthonormal."""
    cdef double* u = plane
    cdef double* v = plane + n
    cdef int64_t i, turn
    cdef double share, factor = 1 / sqrt(dot_in_order(u, u, n))
    for i in range(n):
        u[i] *= factor
    for turn in range(2):
        share = dot_in_order(u, v, n)
        for i in range(n):
            v[i] -= share * u[i]
    factor = 1 / sqrt(dot_in_order(v, v, n))
    for i in range(n):
        v[i] *= factor


cdef void project_filled(
    const Room* room, const double* x, double* plane, double change, double* out
) noexcept nogil:
    """Fill in the unknown cells from x, and project; `out` may not be x."""
    cdef int64_t i
    for i in range(room.size * room.size):
        room.filled[i] = room.table[i] + (1 - room.shrink) * (1 - room.known[i]) * x[i]
    project_rank_two(room.filled, plane, (INNER * change) * (INNER * change), out, room)


cdef void project_rank_two(
    const double* table, double* plane, double tolerance, double* out, const Room* room
) noexcept nogil:
    """The nearest skew-symmetric matrix of rank two, by power iteration from a nearby plane."""
    cdef int64_t turn, i, j, k, n = room.size
    cdef double off, a, b, d, height = 0.0
    cdef double* new = room.new
    for turn in range(MOST_TURNS):
        for i in range(n):
            new[i] = dot_in_order(table + i * n, plane, n)
            new[n + i] = dot_in_order(table + i * n, plane + n, n)
        orthonormalize(new, n)
        off = 0.0
        for k in range(2):
            a = dot_in_order(new + k * n, plane, n)
            b = dot_in_order(new + k * n, plane + n, n)
            for i in range(n):
                d = new[k * n + i] - a * plane[i] - b * plane[n + i]
                off += d * d
        memcpy(plane, new, 2 * n * sizeof(double))
        if off <= max(tolerance, FINEST):
            break
    for i in range(n):
        height += plane[i] * dot_in_order(table + i * n, plane + n, n)
    for i in range(n):
        for j in range(n):
            out[i * n + j] = height * (plane[i] * plane[n + j] - plane[n + i] * plane[j])


cdef double compute_relative_change(const Room* room) noexcept nogil:
    """The distance of y from x, relative to y."""
    cdef int64_t i
    cdef double d, gap = 0.0, size = 0.0
    for i in range(room.size * room.size):
        d = room.y[i] - room.x[i]
        gap += d * d
        size += room.y[i] * room.y[i]
    return sqrt(gap / size)


cdef bint extrapolate_matrices(const Room* room) noexcept nogil:
    """Replace x by the extrapolation of x, y, z; false, and x unchanged, where it leads no further than z."""
    cdef int64_t i
    cdef double a, b, c, d, stride, first = 0.0, bend = 0.0
    for i in range(room.size * room.size):
        d = room.y[i] - room.x[i]
        first += d * d
        d = room.z[i] - 2 * room.y[i] + room.x[i]
        bend += d * d
    if bend == 0.0 or first <= bend:
        return False
    stride = sqrt(first / bend)
    for i in range(room.size * room.size):
        a = room.x[i]
        b = room.y[i]
        c = room.z[i]
        room.x[i] = a + 2 * stride * (b - a) + stride * stride * (c - 2 * b + a)
    return True


cdef double compute_misfit(const Room* room, const double* x) noexcept nogil:
    """The squared distance to the known cells, plus the shrunk squares of the rest."""
    cdef int64_t i
    cdef double d, total = 0.0
    for i in range(room.size * room.size):
        d = x[i] - room.table[i]
        total += (room.known[i] + room.shrink * (1 - room.known[i])) * (d * d)
    return total
