"""Elo ratings: the events of every query in sequence."""

from libc.math cimport exp
from libc.stdint cimport int64_t, uint8_t

import numpy as np

from podium._core.pairwise_votes cimport VoteColumns, find_largest_query
from podium._core.smooth_sums cimport HALF_TANH, SeriesRoom, add_sums


cdef class EloRoom:
    """Room for the items of the largest query."""

    cdef double[::1] change, x, y, gain, loss, ones, minus
    cdef int64_t[::1] inside, outside
    cdef uint8_t[::1] held
    cdef SeriesRoom series

    def __cinit__(self, int64_t size, near):
        self.change, self.x, self.y, self.gain, self.loss = (np.empty(size) for _ in range(5))
        self.ones, self.minus = np.ones(size), -np.ones(size)
        self.inside, self.outside = np.empty(size, np.int64), np.empty(size, np.int64)
        self.held = np.empty(size, np.uint8)
        self.series = SeriesRoom(near)


cdef inline double compute_chance(double rate, double mine, double other) noexcept nogil:
    """The expected outcome of a contest."""
    return 1.0 / (1.0 + exp(rate * (other - mine)))


def compute_elo(
    int64_t first_query, int64_t last_query, votes, const int64_t[::1] starts, const int64_t[::1] order,
    double k, double rate, int64_t long, near, double[::1] ratings,
):
    """Play the events of each query in order: its lists (numbered first), then its comparisons."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef EloRoom room = EloRoom(max(find_largest_query(columns, first_query, last_query), 1), near)
    cdef int64_t q, n, event, lists, lst, v, i, j
    cdef double won, gain
    with nogil:
        for q in range(first_query, last_query):
            lists = columns.query_starts[q + 1] - columns.query_starts[q]
            for n in range(starts[q], starts[q + 1]):
                event = order[n]
                if event < lists:
                    lst = columns.query_starts[q] + event
                    if columns.starts[lst + 1] - columns.starts[lst] > long:
                        play_long_list(columns, q, lst, k, rate, ratings, room)
                    else:
                        play_list(columns, q, lst, k, rate, ratings, room)
                    continue
                v = columns.vote_starts[q] + event - lists
                i = columns.winner[v]
                j = columns.loser[v]
                won = 0.5 if columns.tie[v] else 1.0
                gain = k * columns.vote_weight[v] * (won - compute_chance(rate, ratings[i], ratings[j]))
                ratings[i] += gain
                ratings[j] -= gain


cdef void play_list(
    VoteColumns votes, int64_t q, int64_t lst, double k, double rate, double[::1] ratings, EloRoom room
) noexcept nogil:
    """All contests of a list at once, each item's gain averaged over its opponents."""
    cdef int64_t a, b, i, j, rivals, base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    cdef int64_t start = votes.starts[lst], stop = votes.starts[lst + 1]
    cdef double won, gain, weight = k * votes.list_weight[lst]
    for i in range(size):
        room.change[i] = 0.0
        room.held[i] = False
    for a in range(start, stop):
        i = votes.item[a] - base
        room.held[i] = True
        for b in range(a + 1, stop):
            j = votes.item[b] - base
            won = 0.5 if votes.rank[a] == votes.rank[b] else 1.0
            gain = won - compute_chance(rate, ratings[base + i], ratings[base + j])
            room.change[i] += gain
            room.change[j] -= gain
    if votes.below:
        for a in range(start, stop):
            i = votes.item[a] - base
            for j in range(size):
                if not room.held[j]:
                    gain = 1.0 - compute_chance(rate, ratings[base + i], ratings[base + j])
                    room.change[i] += gain
                    room.change[j] -= gain
    for i in range(size):
        rivals = (size if votes.below else stop - start) - 1 if room.held[i] else stop - start
        if room.change[i] != 0:
            ratings[base + i] += weight * room.change[i] / rivals


cdef void play_long_list(
    VoteColumns votes, int64_t q, int64_t lst, double k, double rate, double[::1] ratings, EloRoom room
) noexcept nogil:
    """The same for a long list, in linear time: a gain is half of wins minus losses, minus expectations."""
    cdef int64_t a, i, base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    cdef int64_t start = votes.starts[lst], stop = votes.starts[lst + 1]
    cdef int64_t listed = stop - start, first = start, last = stop, others = 0
    cdef double weight = k * votes.list_weight[lst]
    for i in range(size):
        room.held[i] = False
    for a in range(start, stop):
        i = votes.item[a] - base
        room.inside[a - start] = base + i
        room.held[i] = True
        room.x[a - start] = rate * ratings[base + i]
        if a > start and votes.rank[a] != votes.rank[a - 1]:
            first = a
        room.gain[a - start] = first - start
    for a in range(stop - 1, start - 1, -1):
        if a < stop - 1 and votes.rank[a] != votes.rank[a + 1]:
            last = a + 1
        # half of items below minus items above
        room.gain[a - start] = ((stop - last) - room.gain[a - start]) / 2.0
    add_sums(
        HALF_TANH, room.series, &room.x[0], &room.ones[0], listed, &room.x[0], &room.minus[0], listed,
        &room.gain[0],
    )
    if votes.below and listed < size:
        for i in range(size):
            if not room.held[i]:
                room.outside[others] = base + i
                room.y[others] = rate * ratings[base + i]
                room.loss[others] = -listed / 2.0
                others += 1
        add_sums(
            HALF_TANH, room.series, &room.x[0], &room.ones[0], listed, &room.y[0], &room.minus[0], others,
            &room.loss[0],
        )
        add_sums(
            HALF_TANH, room.series, &room.y[0], &room.ones[0], others, &room.x[0], &room.minus[0], listed,
            &room.gain[0],
        )
        for i in range(listed):
            room.gain[i] += others / 2.0
        for i in range(others):
            ratings[room.outside[i]] += weight * room.loss[i] / listed
    for i in range(listed):
        ratings[room.inside[i]] += weight * room.gain[i] / ((size if votes.below else listed) - 1)
