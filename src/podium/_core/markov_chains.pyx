"""Random walks over items: steps along lists in linear time, and sweeps over the majority matrix."""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from podium._core.ballots cimport BallotTable
from podium._core.pairwise_votes cimport VoteColumns, fill_vote_matrix, find_largest_query, subtract_transpose
from podium._core.sorting cimport merge_sort
from podium._core.vectors cimport dot_long


cdef class WalkRoom:
    """Room for the walk over the largest query."""

    cdef double[::1] out, stay, total, y

    def __cinit__(self, int64_t rows, int64_t size):
        self.out = np.empty(rows)
        self.stay, self.total, self.y = (np.empty(size) for _ in range(3))


def solve_list_chain(
    int64_t first, int64_t last, votes, int kind, double teleport, double tolerance, int64_t most_steps,
    double[::1] found, int64_t[::1] steps,
):
    """MC1 (kind 1), MC2 (2) and MC3 (3), by power iteration."""
    cdef BallotTable ballots = BallotTable(votes, first, last)
    cdef int64_t q, i, step, base, size
    cdef WalkRoom room = WalkRoom(len(ballots.item), find_largest_query(ballots.votes, first, last))
    cdef double change
    cdef double* x
    with nogil:
        for q in range(first, last):
            base = ballots.votes.slots[q]
            size = ballots.votes.slots[q + 1] - base
            steps[q] = most_steps + 1
            if size == 0:
                steps[q] = 1
                continue
            ballots.fill(q)
            compute_shares(ballots, size, kind, room)
            x = &found[base]
            for i in range(size):
                x[i] = 1.0 / size
            for step in range(most_steps):
                step_along_lists(ballots, size, kind == 3, x, room)
                change = apply_teleport(x, size, teleport, room)
                if change * (1 - teleport) <= tolerance * teleport:
                    steps[q] = step + 1
                    break
            normalize(x, size)


cdef void normalize(double* x, int64_t size) noexcept nogil:
    """Divide by the sum."""
    cdef double total = 0.0
    cdef int64_t i
    for i in range(size):
        total += x[i]
    for i in range(size):
        x[i] /= total


cdef void compute_shares(BallotTable lists, int64_t size, int kind, WalkRoom room) noexcept nogil:
    """The mass each row sends to every target in its list, the part of each item that stays, listed items."""
    cdef int64_t i, lst, row, start, stop, upto, above, count
    cdef double divisor
    for i in range(size):
        room.total[i] = 0.0
        room.stay[i] = 1.0 if kind == 3 else 0.0
    for lst in range(lists.count):
        start = lists.starts[lst]
        stop = lists.starts[lst + 1]
        upto = start
        for row in range(start, stop):
            while upto < stop and lists.rank[upto] <= lists.rank[row]:
                upto += 1
            count = upto - start
            room.total[lists.item[row]] += lists.weight[lst] * (count if kind == 1 else 1)
            divisor = 1 if kind == 1 else (count if kind == 2 else stop - start)
            room.out[row] = lists.weight[lst] / divisor
    for row in range(lists.rows):
        room.out[row] /= room.total[lists.item[row]]
    if kind == 3:
        for lst in range(lists.count):
            above = lists.starts[lst]
            for row in range(lists.starts[lst], lists.starts[lst + 1]):
                while lists.rank[above] < lists.rank[row]:
                    above += 1
                room.stay[lists.item[row]] -= room.out[row] * (above - lists.starts[lst])


cdef void step_along_lists(
    BallotTable lists, int64_t size, bint strictly, const double* x, WalkRoom room
) noexcept nogil:
    """One step along the lists: from every row to the rows above it (and to those at its rank, with itself)."""
    cdef int64_t i, lst, row, top, r
    cdef double risen, here, given
    for i in range(size):
        room.y[i] = 0.0
    for lst in range(lists.count):
        risen = 0.0
        row = lists.starts[lst + 1] - 1
        while row >= lists.starts[lst]:
            top = row
            here = x[lists.item[row]] * room.out[row]
            while top > lists.starts[lst] and lists.rank[top - 1] == lists.rank[row]:
                top -= 1
                here += x[lists.item[top]] * room.out[top]
            given = risen if strictly else risen + here
            risen += here
            for r in range(top, row + 1):
                room.y[lists.item[r]] += given
            row = top - 1


cdef double apply_teleport(double* x, int64_t size, double teleport, WalkRoom room) noexcept nogil:
    """Add the staying and the teleporting mass, replace x, and return the change."""
    cdef int64_t i
    cdef double new, anywhere, jumping = 0.0, change = 0.0
    for i in range(size):
        if not room.total[i] > 0:
            jumping += x[i]
    anywhere = (teleport + (1 - teleport) * jumping) / size
    for i in range(size):
        new = anywhere + (1 - teleport) * (room.y[i] + (room.stay[i] * x[i] if room.total[i] > 0 else 0.0))
        change += fabs(new - x[i])
        x[i] = new
    return change


def solve_majority_chain(
    int64_t first, int64_t last, votes, double teleport, double tolerance, int64_t most_steps,
    double[::1] found, int64_t[::1] steps,
):
    """MC4, by Gauss-Seidel sweeps from the weakest item up: without cycles the first sweep is exact."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, i, j, step, held_items, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), losses = np.empty(size), spare = np.empty(size)
    cdef double[::1] key = np.empty(size)
    cdef int32_t[::1] order = np.empty(size, np.int32), spare_order = np.empty(size, np.int32)
    cdef uint8_t[::1] held = np.empty(size, np.uint8)
    cdef double lone, change
    cdef double* x
    with nogil:
        for q in range(first, last):
            size = columns.slots[q + 1] - columns.slots[q]
            steps[q] = most_steps + 1
            if size == 0:
                steps[q] = 1
                continue
            fill_vote_matrix(columns, q, &table[0], &spare[0])
            subtract_transpose(&table[0], size)
            for i in range(size):
                losses[i] = 0.0
            for i in range(size):
                for j in range(size):
                    table[i * size + j] = 1.0 if table[i * size + j] > 0 else 0.0
                    losses[j] += table[i * size + j]
            for i in range(size):
                key[i] = -losses[i]
                order[i] = <int32_t>i
            merge_sort(&key[0], &order[0], size, &spare[0], &spare_order[0])
            held_items = find_compared_items(columns, q, held)
            lone = teleport / size / (1 - (1 - teleport) * (size - held_items) / size)
            x = &found[columns.slots[q]]
            for i in range(size):
                # the exact value of items in no list, and a start for the others
                x[i] = 1.0 / size if held[i] else lone
            for step in range(most_steps):
                change = sweep_balance(&table[0], size, losses, order, held, lone, teleport, x)
                if change * (1 - teleport) <= tolerance * teleport:
                    steps[q] = step + 1
                    break
            normalize(x, size)


cdef int64_t find_compared_items(VoteColumns votes, int64_t q, uint8_t[::1] held) noexcept nogil:
    """Which items of a query appear in some list or vote of positive weight; returns their number."""
    cdef int64_t i, lst, row, v, base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q], count = 0
    for i in range(size):
        held[i] = False
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        if votes.list_weight[lst] > 0 and votes.starts[lst] < votes.starts[lst + 1]:
            if votes.below:
                for i in range(size):
                    held[i] = True
            for row in range(votes.starts[lst], votes.starts[lst + 1]):
                held[votes.item[row] - base] = True
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if votes.vote_weight[v] > 0:
            held[votes.winner[v] - base] = held[votes.loser[v] - base] = True
    for i in range(size):
        count += held[i]
    return count


cdef double sweep_balance(
    const double* beaten, int64_t size, const double[::1] losses, const int32_t[::1] order,
    const uint8_t[::1] held, double anywhere, double teleport, double* x,
) noexcept nogil:
    """Solve each item's balance in turn with the newest values of the others; returns the change.

    `anywhere` is the mass that teleports and items without votes bring to every item.
    """
    cdef int64_t k, i
    cdef double new, change = 0.0
    for k in range(size):
        i = order[k]
        if held[i]:
            new = (anywhere + (1 - teleport) / size * dot_long(beaten + i * size, x, size)) / (
                1 - (1 - teleport) * (1 - losses[i] / size)
            )
            change += fabs(new - x[i])
            x[i] = new
    return change
