"""Rankings filled stage by stage; handles a range of queries with one table of costs each."""

from libc.math cimport INFINITY, fabs, floor
from libc.stdint cimport int64_t

import numpy as np


cdef class StageRoom:
    """Room for the largest query: the table of costs (size x size), and vectors by item."""

    cdef double[::1] table, cost, inside
    cdef int64_t[::1] left, taken

    def __cinit__(self, int64_t size):
        self.table = np.empty(size * size)
        self.cost, self.inside = np.empty(size), np.empty(size)
        self.left, self.taken = np.empty(size, np.int64), np.empty(size, np.int64)


def compute_stage_scores(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[:, ::1] places,
    const double[::1] theta, bint pairs, double near, double[::1] scores,
):
    """Take the cheapest items at each stage; see `podium.kernels.stagewise_model`."""
    cdef int64_t q, k, i, size, most = 0
    cdef double total = 0.0
    for k in range(theta.shape[0]):
        total += fabs(theta[k])
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    cdef StageRoom room = StageRoom(most)
    with nogil:
        for q in range(first, last):
            size = starts[q + 1] - starts[q]
            if size == 0:
                continue
            for i in range(size * size):
                room.table[i] = 0.0
            if pairs:
                compute_pair_costs(places, starts[q], size, theta, room)
            else:
                compute_gap_costs(places, starts[q], size, theta, room)
            score_query(size, pairs, near * size * total, room, &scores[starts[q]])


cdef void compute_pair_costs(
    const double[:, ::1] places, int64_t base, int64_t size, const double[::1] theta, StageRoom room
) noexcept nogil:
    """Cost of x while y is left, at (y, x)."""
    cdef int64_t x, y, k
    for y in range(size):
        for x in range(y):
            for k in range(theta.shape[0]):
                if places[base + y, k] < places[base + x, k]:
                    room.table[y * size + x] += theta[k]
                elif places[base + y, k] > places[base + x, k]:
                    room.table[x * size + y] += theta[k]
                else:
                    room.table[y * size + x] += 0.5 * theta[k]
                    room.table[x * size + y] += 0.5 * theta[k]


cdef void compute_gap_costs(
    const double[:, ::1] places, int64_t base, int64_t n, const double[::1] theta, StageRoom room
) noexcept nogil:
    """Cost of x at each stage, at (stage, x)."""
    cdef int64_t stage, x, k
    cdef double whole = n * (n + 1) / 2.0, before, place, split, upto, sums
    for stage in range(1, n + 1):
        before = stage * (stage + 1) / 2.0
        for x in range(n):
            for k in range(theta.shape[0]):
                place = places[base + x, k]
                split = min(max(floor(place), <double>stage), <double>n)
                upto = split * (split + 1) / 2
                sums = (split - stage) * place - (upto - before) + (whole - upto) - (n - split) * place
                room.table[(stage - 1) * n + x] += theta[k] * (
                    fabs(place - stage) - sums / max(n - stage, <int64_t>1)
                )


cdef void score_query(int64_t size, bint pairs, double near, StageRoom room, double* score) noexcept nogil:
    """Items below minus items above, block by block of items of equal cost."""
    cdef int64_t i, t, x, rest, count, fewer, above = 0
    cdef double* cost = &room.cost[0]
    for i in range(size):
        room.left[i] = i
    if pairs:
        sum_inside(room.table, size, room.left, size, cost)
    while above < size:
        rest = size - above
        if not pairs:
            cost = &room.table[above * size]
        count = select_cheapest(room.left, rest, cost, near, room.taken)
        while pairs and count > 1:
            sum_inside(room.table, size, room.taken, count, &room.inside[0])
            fewer = select_cheapest(room.taken, count, &room.inside[0], near, room.taken)
            if fewer == count:
                break
            count = fewer
        for t in range(count):
            score[room.taken[t]] = size - 2 * above - count
        drop_taken(room.left, rest, room.taken, count)
        above += count
        if pairs:
            for t in range(count):
                for i in range(size - above):
                    x = room.left[i]
                    cost[x] -= room.table[room.taken[t] * size + x]


cdef void sum_inside(
    const double[::1] table, int64_t size, const int64_t[::1] items, int64_t count, double* cost
) noexcept nogil:
    """For each of the first items, its cost while the others of them are left."""
    cdef int64_t a, b
    for b in range(count):
        cost[items[b]] = 0.0
    for a in range(count):
        for b in range(count):
            cost[items[b]] += table[items[a] * size + items[b]]


cdef int64_t select_cheapest(
    const int64_t[::1] items, int64_t count, const double* cost, double near, int64_t[::1] chosen
) noexcept nogil:
    """Write those of the first items with the least cost, in order, and return their number."""
    cdef double least = INFINITY
    cdef int64_t t, x, kept = 0
    for t in range(count):
        least = min(least, cost[items[t]])
    for t in range(count):  # `chosen` may be `items`: it is never written beyond what was read
        x = items[t]
        if cost[x] <= least + near:
            chosen[kept] = x
            kept += 1
    return kept


cdef void drop_taken(int64_t[::1] left, int64_t rest, const int64_t[::1] taken, int64_t count) noexcept nogil:
    """Remove the taken items; both are in ascending order."""
    cdef int64_t i, kept = 0, t = 0
    for i in range(rest):
        if t < count and left[i] == taken[t]:
            t += 1
        else:
            left[kept] = left[i]
            kept += 1
