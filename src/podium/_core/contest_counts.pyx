"""Votes merged by pair, by plain loops: a table of all pairs where it is small, else two counting sorts."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from podium._core.pairwise_votes cimport VoteColumns, fill_vote_matrix

cdef enum:
    WIN = 0
    LOSS = 1
    TIE = 2


cdef struct PairBlock:
    # the pairs of one query, smaller slot first
    int32_t* first
    int32_t* second
    double* won
    double* lost
    double* tied  # zeros at first


cdef inline void add_pair(
    PairBlock* out, int64_t n, int64_t first, int64_t second, double won, double lost, double tied
) noexcept nogil:
    """Write pair number n."""
    out.first[n] = <int32_t>first
    out.second[n] = <int32_t>second
    out.won[n] = won
    out.lost[n] = lost
    if tied > 0:
        out.tied[n] = tied


def count_contests(
    int64_t first_query, int64_t last_query, votes, const uint8_t[::1] dense, const int64_t[::1] room_starts,
    int32_t[::1] first, int32_t[::1] second, double[::1] won, double[::1] lost, double[::1] tied,
    int64_t[::1] found,
):
    """The pairs of a range of queries, each query in its own block; `tied` must be zeros."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, a, size = 1, most = 0
    cdef PairBlock out
    for q in range(first_query, last_query):
        if dense[q]:
            size = max(size, columns.slots[q + 1] - columns.slots[q])
        else:
            most = max(most, count_single_votes(columns, q))
    cdef double[::1] table = np.empty(size * size), ties = np.empty(size * size), spare = np.empty(size)
    cdef SortRoom sorting = None
    if most:
        sorting = SortRoom(most, find_largest_sparse(columns, first_query, last_query, dense))
    with nogil:
        for q in range(first_query, last_query):
            a = room_starts[q]
            if a == room_starts[q + 1]:  # no votes
                found[q] = 0
                continue
            out = PairBlock(&first[a], &second[a], &won[a], &lost[a], &tied[a])
            if dense[q]:
                found[q] = count_by_table(columns, q, &table[0], &ties[0], &spare[0], &out)
            else:
                found[q] = count_by_sorting(columns, q, sorting, &out)


cdef int64_t find_largest_sparse(VoteColumns votes, int64_t first, int64_t last, const uint8_t[::1] dense):
    """The number of items of the largest query that is counted by sorting."""
    cdef int64_t q, size = 0
    for q in range(first, last):
        if not dense[q]:
            size = max(size, votes.slots[q + 1] - votes.slots[q])
    return size


cdef int64_t count_by_table(
    VoteColumns votes, int64_t q, double* table, double* ties, double* spare, PairBlock* out
) noexcept nogil:
    """The pairs of a query by its whole table; returns their number."""
    cdef int64_t i, j, n = 0, base = votes.slots[q]
    cdef int64_t size = votes.slots[q + 1] - base
    cdef double t
    cdef bint any_tie
    fill_vote_matrix(votes, q, table, spare)
    any_tie = add_ties(votes, q, ties, size)
    for i in range(size):
        for j in range(i + 1, size):
            t = ties[i * size + j] if any_tie else 0.0
            if table[i * size + j] + table[j * size + i] + t > 0:
                add_pair(out, n, base + i, base + j, table[i * size + j], table[j * size + i], t)
                n += 1
    return n


cdef bint add_ties(VoteColumns votes, int64_t q, double* ties, int64_t size) noexcept nogil:
    """The weight of ties by pair, smaller slot first; returns whether there are any."""
    cdef int64_t lst, a, b, v, base = votes.slots[q]
    cdef bint cleared = False
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        for a in range(votes.starts[lst], votes.starts[lst + 1] - 1):
            b = a + 1
            while b < votes.starts[lst + 1] and votes.rank[b] == votes.rank[a]:
                cleared = add_tie(
                    ties, size, votes.item[a] - base, votes.item[b] - base, votes.list_weight[lst], cleared
                )
                b += 1
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if votes.tie[v]:
            cleared = add_tie(
                ties, size, votes.winner[v] - base, votes.loser[v] - base, votes.vote_weight[v], cleared
            )
    return cleared


cdef inline bint add_tie(
    double* ties, int64_t size, int64_t i, int64_t j, double weight, bint cleared
) noexcept nogil:
    """Add one tie; the table is cleared before the first one, as most queries have none."""
    cdef int64_t k
    if not cleared:
        for k in range(size * size):
            ties[k] = 0.0
    ties[min(i, j) * size + max(i, j)] += weight
    return True


cdef struct SingleVotes:
    const int32_t* winner
    const int32_t* loser
    const uint8_t* tie
    const double* weight
    int64_t count


cdef class SortRoom:
    """Memory for the single votes of the largest query that is counted by sorting."""

    cdef int32_t[::1] winner, loser
    cdef uint8_t[::1] tie, held
    cdef double[::1] weight, weight2, weight3
    cdef uint32_t[::1] other, other2
    cdef int64_t[::1] starts, starts2, at

    def __cinit__(self, int64_t votes, int64_t items):
        # few arrays, as making one takes as long as counting a hundred votes
        cdef int32_t[:, ::1] sides = np.empty((2, votes), np.int32)
        cdef double[:, ::1] weights = np.empty((3, votes))
        cdef uint32_t[:, ::1] others = np.empty((2, votes), np.uint32)
        cdef int64_t[:, ::1] offsets = np.empty((3, items + 1), np.int64)
        self.winner, self.loser = sides[0], sides[1]
        self.tie, self.held = np.empty(votes, np.uint8), np.empty(items, np.uint8)
        self.weight, self.weight2, self.weight3 = weights[0], weights[1], weights[2]
        self.other, self.other2 = others[0], others[1]
        self.starts, self.starts2, self.at = offsets[0], offsets[1], offsets[2]


cdef int64_t count_single_votes(VoteColumns votes, int64_t q) noexcept nogil:
    """The number of single votes that the lists and comparisons of a query stand for."""
    cdef int64_t lst, length, size = votes.slots[q + 1] - votes.slots[q]
    cdef int64_t n = votes.vote_starts[q + 1] - votes.vote_starts[q]
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        length = votes.starts[lst + 1] - votes.starts[lst]
        n += length * (length - 1) // 2 + (length * (size - length) if votes.below else 0)
    return n


cdef int64_t count_by_sorting(VoteColumns votes, int64_t q, SortRoom room, PairBlock* out) noexcept nogil:
    """The pairs of a query by sorting its votes; returns their number."""
    cdef int64_t v, base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    cdef SingleVotes single = collect_votes(votes, q, room)
    cdef bint equal = True
    for v in range(1, single.count):
        if single.weight[v] != single.weight[0]:
            equal = False
            break
    sort_by_second(base, size, &single, equal, room)
    sort_by_first(size, single.count, equal, room)
    return merge_equal_pairs(base, size, equal, single.weight, room, out)


cdef SingleVotes collect_votes(VoteColumns votes, int64_t q, SortRoom room) noexcept nogil:
    """The single votes of a query: its comparisons where they are, or copied behind those of its lists."""
    cdef int64_t a = votes.vote_starts[q]
    cdef SingleVotes single
    if votes.starts[votes.query_starts[q]] < votes.starts[votes.query_starts[q + 1]]:
        single.count = expand_votes(votes, q, room)
        single.winner = &room.winner[0]
        single.loser = &room.loser[0]
        single.tie = &room.tie[0]
        single.weight = &room.weight[0]
    else:
        single.count = votes.vote_starts[q + 1] - a
        single.winner = &votes.winner[a]
        single.loser = &votes.loser[a]
        single.tie = &votes.tie[a]
        single.weight = &votes.vote_weight[a]
    return single


cdef int64_t expand_votes(VoteColumns votes, int64_t q, SortRoom room) noexcept nogil:
    """Single votes for all lists and comparisons of a query; returns their number."""
    cdef int64_t lst, a, b, i, v, start, stop, begin, at = 0
    cdef int64_t base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start = votes.starts[lst]
        stop = votes.starts[lst + 1]
        begin = at
        for i in range(size):
            room.held[i] = False
        for a in range(start, stop):
            room.held[votes.item[a] - base] = True
            for b in range(a + 1, stop):
                room.winner[at] = votes.item[a]
                room.loser[at] = votes.item[b]
                room.tie[at] = votes.rank[a] == votes.rank[b]
                at += 1
        if votes.below:
            for i in range(size):
                if not room.held[i]:
                    for a in range(start, stop):
                        room.winner[at] = votes.item[a]
                        room.loser[at] = <int32_t>(base + i)
                        room.tie[at] = False
                        at += 1
        for i in range(begin, at):
            room.weight[i] = votes.list_weight[lst]
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        room.winner[at] = votes.winner[v]
        room.loser[at] = votes.loser[v]
        room.tie[at] = votes.tie[v]
        room.weight[at] = votes.vote_weight[v]
        at += 1
    return at


cdef void accumulate_offsets(int64_t[::1] count, int64_t size, int64_t[::1] at) noexcept nogil:
    """Counts, shifted by one place, to offsets in place, and a copy of them."""
    cdef int64_t i
    at[0] = count[0]
    for i in range(1, size + 1):
        count[i] += count[i - 1]
        at[i] = count[i]


cdef void sort_by_second(
    int64_t base, int64_t size, const SingleVotes* single, bint equal, SortRoom room
) noexcept nogil:
    """Rows by the larger slot: the smaller one with the kind of vote in two low bits, offsets, weights."""
    cdef int64_t v, i, j, low, high, place
    cdef uint32_t kind
    for i in range(size + 1):
        room.starts[i] = 0
    for v in range(single.count):
        room.starts[max(single.winner[v], single.loser[v]) - base + 1] += 1
    accumulate_offsets(room.starts, size, room.at)
    for v in range(single.count):
        i = single.winner[v] - base
        j = single.loser[v] - base
        kind = TIE if single.tie[v] else (WIN if i < j else LOSS)
        low = min(i, j)
        high = max(i, j)
        place = room.at[high]
        room.other[place] = <uint32_t>(low << 2) | kind
        if not equal:
            room.weight2[place] = single.weight[v]
        room.at[high] += 1


cdef void sort_by_first(int64_t size, int64_t n, bint equal, SortRoom room) noexcept nogil:
    """The same rows by the smaller slot, then by the larger one."""
    cdef int64_t v, i, j, place
    for i in range(size + 1):
        room.starts2[i] = 0
    for v in range(n):
        room.starts2[(room.other[v] >> 2) + 1] += 1
    accumulate_offsets(room.starts2, size, room.at)
    for j in range(size):
        for v in range(room.starts[j], room.starts[j + 1]):
            i = room.other[v] >> 2
            place = room.at[i]
            room.other2[place] = <uint32_t>(j << 2) | (room.other[v] & 3)
            if not equal:
                room.weight3[place] = room.weight2[v]
            room.at[i] += 1


cdef int64_t merge_equal_pairs(
    int64_t base, int64_t size, bint equal, const double* weight, SortRoom room, PairBlock* out
) noexcept nogil:
    """Merge equal neighbors into one pair; pairs without weight are dropped."""
    cdef int64_t i, v, n = 0
    cdef uint32_t j, kind
    cdef double up, down, neither, mine
    for i in range(size):
        v = room.starts2[i]
        while v < room.starts2[i + 1]:
            j = room.other2[v] >> 2
            up = down = neither = 0.0
            while v < room.starts2[i + 1] and room.other2[v] >> 2 == j:
                mine = weight[0] if equal else room.weight3[v]
                kind = room.other2[v] & 3
                if kind == WIN:
                    up += mine
                elif kind == LOSS:
                    down += mine
                else:
                    neither += mine
                v += 1
            if up + down + neither > 0:
                add_pair(out, n, base + i, base + j, up, down, neither)
                n += 1
    return n


def find_weak_components(const int32_t[::1] first, const int32_t[::1] second, int64_t[::1] label):
    """Union of the two ends of every pair; `label` starts as slot numbers and ends as smallest slots."""
    cdef int64_t p, a, b
    with nogil:
        for p in range(first.shape[0]):
            a = first[p]
            b = second[p]
            while label[a] != a:
                label[a] = label[label[a]]
                a = label[a]
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            if a != b:
                label[max(a, b)] = min(a, b)
        for a in range(label.shape[0]):
            label[a] = label[label[a]]


def count_wins_and_losses(
    const int32_t[::1] first, const int32_t[::1] second, const double[::1] won, const double[::1] lost,
    const double[::1] tied, double[::1] wins, double[::1] losses,
):
    """Wins and losses of every item, ties half."""
    cdef int64_t p, i, j
    cdef double half
    with nogil:
        for p in range(first.shape[0]):
            i = first[p]
            j = second[p]
            half = 0.5 * tied[p]
            wins[i] += won[p] + half
            wins[j] += lost[p] + half
            losses[i] += lost[p] + half
            losses[j] += won[p] + half
