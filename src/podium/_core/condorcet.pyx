"""Merge sort by majority, without the matrix of all pairs where that is cheaper.

A sort uses about M log M of the M^2 pairs. The votes of lists on one pair follow from the two items' ranks in
every list, so they are counted on demand; the matrix is filled only where there are many short lists on many
items, or for single comparisons. Weights are integers, so sums are exact in any order.
"""

from libc.math cimport INFINITY, NAN, log2
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from podium._core.pairwise_votes cimport VoteColumns, add_comparisons, fill_vote_matrix, find_largest_query
from podium._core.sorting cimport merge_sort

cdef enum:
    FEW = 16  # items sorted by insertion


cdef struct Sources:
    # what the votes on a pair are counted from: ranks of the lists by item (lists of them), and a matrix
    double* ranks
    const double* weight
    int64_t lists
    double* table  # NULL: not needed
    int64_t size


cdef class SortRoom:
    """Memory for sorting the items of the largest query."""

    cdef double[::1] won, lost, key, falling, spare_key, row
    cdef int32_t[::1] order, spare_order
    cdef int64_t[::1] edges, block, spare_block
    cdef uint8_t[::1] cuts

    def __cinit__(self, int64_t size):
        self.won, self.lost, self.key, self.falling, self.spare_key, self.row = (np.empty(size) for _ in range(6))
        self.order, self.spare_order = np.empty(size, np.int32), np.empty(size, np.int32)
        self.edges, self.block, self.spare_block = (np.empty(size + 1, np.int64) for _ in range(3))
        self.cuts = np.empty(size + 1, np.uint8)


def condorcet(int64_t first, int64_t last, votes, double[::1] scores):
    """Merge sort by majority, from the order of net votes; items without votes start, and so stay, last."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, size = find_largest_query(columns, first, last), most = 1, cells = 1
    for q in range(first, last):
        if uses_matrix(columns, q) or columns.vote_starts[q] < columns.vote_starts[q + 1]:
            cells = max(cells, (columns.slots[q + 1] - columns.slots[q]) ** 2)
        if not uses_matrix(columns, q):
            most = max(most, (columns.query_starts[q + 1] - columns.query_starts[q])
                       * (columns.slots[q + 1] - columns.slots[q]))
    cdef double[::1] table = np.empty(cells), ranks = np.empty(most)
    cdef SortRoom room = SortRoom(size)
    with nogil:
        for q in range(first, last):
            if columns.slots[q] < columns.slots[q + 1]:
                sort_query(columns, q, &table[0], &ranks[0], room, scores)


cdef bint uses_matrix(VoteColumns votes, int64_t q) noexcept nogil:
    """Whether filling the matrix of a query costs less than counting the pairs that a sort compares."""
    cdef int64_t lst, length, size = votes.slots[q + 1] - votes.slots[q]
    cdef int64_t lists = votes.query_starts[q + 1] - votes.query_starts[q], cells = size * size
    if size == 0:
        return False
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        length = votes.starts[lst + 1] - votes.starts[lst]
        cells += length * (2 * size if votes.below else length) // 2
    return cells < lists * size * (log2(<double>size) + 2)


cdef void sort_query(
    VoteColumns votes, int64_t q, double* table, double* ranks, SortRoom room, double[::1] scores
) noexcept nogil:
    """Scores of one query."""
    cdef Sources sources = collect_votes(votes, q, table, ranks, room)
    cdef int64_t i, size = sources.size, blocks
    sum_won_and_lost(&sources, room)
    if sources.lists:
        add_list_votes(votes, q, room)
    for i in range(size):
        room.key[i] = room.won[i] - room.lost[i] if room.won[i] + room.lost[i] > 0 else -INFINITY
        room.order[i] = <int32_t>i
        room.cuts[i] = False
    room.cuts[0] = room.cuts[size] = True
    split_by_key(0, size, room)
    refine_blocks(&sources, room)
    blocks = sort_blocks(&sources, room)
    score_blocks(blocks, size, votes.slots[q], room, scores)


cdef Sources collect_votes(
    VoteColumns votes, int64_t q, double* table, double* ranks, SortRoom room
) noexcept nogil:
    """Prepare the sources of a query."""
    cdef int64_t i, lst, row, base = votes.slots[q], begin = votes.query_starts[q]
    cdef Sources sources
    sources.size = votes.slots[q + 1] - base
    sources.ranks = ranks
    sources.table = table
    sources.lists = 0
    sources.weight = NULL
    if uses_matrix(votes, q):
        fill_vote_matrix(votes, q, table, &room.row[0])
        return sources
    sources.lists = votes.query_starts[q + 1] - begin
    if sources.lists:
        sources.weight = &votes.list_weight[begin]
    # a missing rank is infinite, or not comparable to any other
    for i in range(sources.size * sources.lists):
        ranks[i] = INFINITY if votes.below else NAN
    for lst in range(sources.lists):
        for row in range(votes.starts[begin + lst], votes.starts[begin + lst + 1]):
            ranks[(votes.item[row] - base) * sources.lists + lst] = votes.rank[row]
    if votes.vote_starts[q] == votes.vote_starts[q + 1]:
        sources.table = NULL
        return sources
    for i in range(sources.size * sources.size):
        table[i] = 0.0
    add_comparisons(votes, q, table, sources.size)
    return sources


cdef inline double compute_lead(const Sources* s, int64_t i, int64_t j) noexcept nogil:
    """Votes by which item i leads item j; branch-free, as the branches would be unpredictable."""
    cdef double even = 0.0, odd = 0.0
    cdef const double* a = s.ranks + i * s.lists
    cdef const double* b = s.ranks + j * s.lists
    cdef int64_t k, pairs = s.lists & ~(<int64_t>1)
    # two sums, so that one addition need not wait for the other
    for k in range(0, pairs, 2):
        even += s.weight[k] * (<int>(a[k] < b[k]) - <int>(a[k] > b[k]))
        odd += s.weight[k + 1] * (<int>(a[k + 1] < b[k + 1]) - <int>(a[k + 1] > b[k + 1]))
    if pairs < s.lists:
        even += s.weight[pairs] * (<int>(a[pairs] < b[pairs]) - <int>(a[pairs] > b[pairs]))
    even += odd
    if s.table != NULL:
        even += s.table[i * s.size + j] - s.table[j * s.size + i]
    return even


cdef void sum_won_and_lost(const Sources* s, SortRoom room) noexcept nogil:
    """Sums of the rows and columns of the matrix, if there is one."""
    cdef int64_t i, j, size = s.size
    cdef double total
    cdef const double* row
    for i in range(size):
        room.won[i] = room.lost[i] = 0.0
    if s.table == NULL:
        return
    for i in range(size):
        row = s.table + i * size
        total = 0.0
        for j in range(size):
            total += row[j]
        room.won[i] = total
        for j in range(size):
            room.lost[j] += row[j]


cdef void add_list_votes(VoteColumns votes, int64_t q, SortRoom room) noexcept nogil:
    """Pairs won and lost in lists, from the places of their items."""
    cdef int64_t lst, a, b, row, i, start, stop, outside
    cdef int64_t base = votes.slots[q], size = votes.slots[q + 1] - votes.slots[q]
    cdef double w, everywhere = 0.0  # losses of an item that no list holds
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start = votes.starts[lst]
        stop = votes.starts[lst + 1]
        w = votes.list_weight[lst]
        outside = size - (stop - start) if votes.below else 0
        everywhere += w * (stop - start)
        a = start
        while a < stop:
            b = a + 1
            while b < stop and votes.rank[b] == votes.rank[a]:
                b += 1
            for row in range(a, b):
                i = votes.item[row] - base
                room.won[i] += w * (stop - b + outside)
                room.lost[i] += w * (a - start)
                if votes.below:
                    room.lost[i] -= w * (stop - start)
            a = b
    if votes.below:
        for i in range(size):
            room.lost[i] += everywhere


cdef bint split_by_key(int64_t start, int64_t stop, SortRoom room) noexcept nogil:
    """Sort a range of the order by falling key and cut it where the key changes; returns whether it was cut."""
    cdef int64_t i, j
    cdef int32_t item
    cdef bint cut = False
    if stop - start > FEW:
        for i in range(start, stop):
            room.falling[i] = -room.key[room.order[i]]
        merge_sort(
            &room.falling[start], &room.order[start], stop - start, &room.spare_key[0], &room.spare_order[0]
        )
    else:
        for i in range(start + 1, stop):
            item = room.order[i]
            j = i
            while j > start and room.key[room.order[j - 1]] < room.key[item]:
                room.order[j] = room.order[j - 1]
                j -= 1
            room.order[j] = item
    for i in range(start + 1, stop):
        if room.key[room.order[i]] != room.key[room.order[i - 1]]:
            room.cuts[i] = cut = True
    return cut


cdef void refine_blocks(const Sources* s, SortRoom room) noexcept nogil:
    """Split tied ranges by wins minus losses within them until nothing more can be separated."""
    cdef int64_t a, b, stop, start = 0
    cdef double lead, sign
    cdef bint again
    while start < s.size:
        stop = start + 1
        while not room.cuts[stop]:
            stop += 1
        again = False
        if stop - start > 1 and room.key[room.order[start]] > -INFINITY:
            for a in range(start, stop):
                room.key[room.order[a]] = 0.0
            for a in range(start, stop):
                for b in range(a + 1, stop):
                    lead = compute_lead(s, room.order[a], room.order[b])
                    sign = (lead > 0) - (lead < 0)
                    room.key[room.order[a]] += sign
                    room.key[room.order[b]] -= sign
            again = split_by_key(start, stop, room)
        if not again:
            start = stop


cdef int64_t sort_blocks(const Sources* s, SortRoom room) noexcept nogil:
    """Sort the blocks of the order by majority, bottom up and stable, into room.block; returns their number.

    Block b holds the places room.edges[b] .. room.edges[b + 1].
    """
    cdef int64_t i, j, k, low, middle, high, width = 1, count = -1
    cdef bint right
    for i in range(s.size + 1):
        if room.cuts[i]:
            count += 1
            room.edges[count] = i
    for i in range(count):
        room.block[i] = i
    while width < count:
        low = 0
        while low < count:
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            i = low
            j = middle
            for k in range(low, high):
                right = j < high and (i >= middle or sum_between(s, room, room.block[j], room.block[i]) > 0)
                room.spare_block[k] = room.block[j] if right else room.block[i]
                j += right
                i += not right
            low = high
        for i in range(count):
            room.block[i] = room.spare_block[i]
        width *= 2
    return count


cdef double sum_between(const Sources* s, SortRoom room, int64_t a, int64_t b) noexcept nogil:
    """Votes by which block a beats block b."""
    cdef int64_t i, j
    cdef double total = 0.0
    for i in range(room.edges[a], room.edges[a + 1]):
        for j in range(room.edges[b], room.edges[b + 1]):
            total += compute_lead(s, room.order[i], room.order[j])
    return total


cdef void score_blocks(
    int64_t blocks, int64_t size, int64_t base, SortRoom room, double[::1] scores
) noexcept nogil:
    """Items below minus items above."""
    cdef int64_t k, a, begin, end, above = 0
    for k in range(blocks):
        begin = room.edges[room.block[k]]
        end = room.edges[room.block[k] + 1]
        for a in range(begin, end):
            scores[base + room.order[a]] = size - 2 * above - (end - begin)
        above += end - begin
