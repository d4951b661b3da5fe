"""Numbering the items of every query from rows grouped by query, with a small table per query.

One table over all ids of a file would exceed the caches; the ids of one query fit into the nearest one.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from podium._core.bytes8 cimport mix
from podium._core.sorting cimport count_bits, radix_sort

cdef enum:
    CROWD = 16  # values per bucket from which a radix sort replaces insertion

ctypedef fused integer:
    int32_t
    int64_t


cdef class NumberingRoom:
    """Memory for numbering the items of the largest query."""

    cdef uint64_t* held
    cdef uint64_t* key
    cdef uint64_t* key2
    cdef int64_t* row
    cdef int32_t* table
    cdef int32_t* name
    cdef int32_t* name2
    cdef int32_t* place

    def __cinit__(self, int64_t most):
        cdef int64_t size = <int64_t>1 << find_table_bits(most)
        # one block, as making an array for each would take as long as numbering a hundred rows
        self.held = <uint64_t*>malloc(size * 12 + most * 36)
        if self.held == NULL:
            raise MemoryError()
        self.key = self.held + size
        self.key2 = self.key + most
        self.row = <int64_t*>(self.key2 + most)
        self.table = <int32_t*>(self.row + most)
        self.name = self.table + size
        self.name2 = self.name + most
        self.place = self.name2 + most

    def __dealloc__(self):
        free(self.held)


cdef inline int find_table_bits(int64_t rows) noexcept nogil:
    """log2 of the size of a table that is at most half full."""
    cdef int bits = 4
    while (<int64_t>1 << bits) < 2 * rows:
        bits += 1
    return bits


def number_items(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const integer[::1] value, bint ordered,
    int32_t[::1] slot, int64_t[::1] rep, int32_t[::1] came, int64_t[::1] counts,
):
    """Number the distinct values of each query, by value (`ordered`) or by first appearance.

    Fills slot (number of each row's value within its query), counts, and from the query's first row on, for
    every number, rep (the row of its first appearance) and came (its rank by first appearance).
    """
    cdef int64_t q, a, b, i, count, most = 1  # not 0: the keys of an empty query are looked at too
    cdef int32_t n
    cdef int32_t* names
    cdef int32_t* place
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    cdef NumberingRoom room = NumberingRoom(most)
    place = room.place
    with nogil:
        for q in range(first, last):
            a = row_starts[q]
            b = row_starts[q + 1]
            count = number_values(value, a, b, room, slot)
            counts[q] = count
            if not ordered:
                for i in range(count):
                    rep[a + i] = room.row[i]
                continue
            names = sort_keys(count, room)
            for i in range(count):
                n = names[i]
                place[n] = <int32_t>i
                came[a + i] = n
                rep[a + i] = room.row[n]
            for i in range(a, b):
                slot[i] = place[slot[i]]


cdef int64_t number_values(
    const integer[::1] value, int64_t begin, int64_t end, NumberingRoom room, int32_t[::1] slot
) noexcept nogil:
    """Number values by first appearance; `key` orders them as signed integers.

    `held` repeats the key of each table position, so that a lookup takes one step.
    """
    cdef int bits = find_table_bits(end - begin)
    cdef int shift = 64 - bits
    cdef uint64_t v, at, mask = (<uint64_t>1 << bits) - 1
    cdef int64_t i
    cdef int32_t found, count = 0
    # locals, which stay in registers
    cdef int32_t* table = room.table
    cdef uint64_t* held = room.held
    cdef uint64_t* key = room.key
    cdef int64_t* row = room.row
    memset(table, 255, sizeof(int32_t) << bits)  # -1: free
    for i in range(begin, end):
        v = <uint64_t><int64_t>value[i] ^ (<uint64_t>1 << 63)
        at = mix(v) >> shift
        while True:
            found = table[at]
            if found < 0:
                found = count
                table[at] = found
                held[at] = v
                key[count] = v
                row[count] = i
                count += 1
                break
            if held[at] == v:
                break
            at = (at + 1) & mask
        slot[i] = found
    return count


cdef int32_t* sort_keys(int64_t n, NumberingRoom room) noexcept nogil:
    """The numbers 0, 1, ... by ascending key: distributed into buckets by the upper bits, then insertion."""
    cdef uint64_t* key = room.key
    cdef uint64_t* key2 = room.key2
    cdef int32_t* name2 = room.name2
    cdef int32_t* count = room.table  # no longer needed as a table, and large enough
    cdef uint64_t k, low = key[0], high = key[0]
    cdef int64_t i, j, b
    cdef int32_t x, here, total = 0
    cdef int bits, shift, log = 1
    cdef bint crowded = False
    for i in range(n):
        low = min(low, key[i])
        high = max(high, key[i])
    bits = count_bits(high - low)
    while (<int64_t>1 << log) < n:
        log += 1
    shift = max(bits - log, 0)
    memset(count, 0, sizeof(int32_t) << log)
    for i in range(n):
        count[(key[i] - low) >> shift] += 1
    for b in range(<int64_t>1 << log):
        here = count[b]
        crowded |= here > CROWD
        count[b] = total
        total += here
    if crowded:  # clustered values
        for i in range(n):
            room.name[i] = <int32_t>i
        radix_sort(key, room.name, n, key2, name2, low, bits)
        return room.name
    for i in range(n):
        b = (key[i] - low) >> shift
        key2[count[b]] = key[i]
        name2[count[b]] = <int32_t>i
        count[b] += 1
    for i in range(1, n):
        k = key2[i]
        x = name2[i]
        j = i - 1
        while j >= 0 and key2[j] > k:
            key2[j + 1] = key2[j]
            name2[j + 1] = name2[j]
            j -= 1
        key2[j + 1] = k
        name2[j + 1] = x
    return name2


def find_list_starts(const int64_t[::1] row_starts, const integer[::1] expert, int64_t[::1] starts):
    """Fill `starts` with the rows at which query or expert changes, and the end; returns their number."""
    cdef int64_t q, a, i, count = 0
    with nogil:
        for q in range(row_starts.shape[0] - 1):
            a = row_starts[q]
            starts[count] = a
            count += 1
            for i in range(a + 1, row_starts[q + 1]):
                if expert[i] != expert[i - 1]:
                    starts[count] = i
                    count += 1
        starts[count] = row_starts[row_starts.shape[0] - 1]
    return count + 1


def relabel_slots(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const int64_t[::1] starts,
    const int32_t[::1] new, int32_t[::1] slot,
):
    """slot = the new number of each row's old slot."""
    cdef int64_t q, row
    with nogil:
        for q in range(first, last):
            for row in range(row_starts[q], row_starts[q + 1]):
                slot[row] = new[starts[q] + slot[row]]


def gather_items(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const int64_t[::1] starts,
    const int64_t[::1] rep, const int32_t[::1] came, int64_t[::1] first_row, int32_t[::1] arrival,
):
    """The output of `number_items`, without the gaps."""
    cdef int64_t q, i, begin
    with nogil:
        for q in range(first, last):
            begin = row_starts[q] - starts[q]
            for i in range(starts[q], starts[q + 1]):
                first_row[i] = rep[begin + i]
                arrival[i] = came[begin + i]


def fill_lists(
    int64_t first, int64_t last, const int64_t[::1] starts, const int64_t[::1] query_lists,
    const int64_t[::1] list_starts, const int32_t[::1] expert, const int32_t[::1] slot, int32_t[::1] rank,
    const double[::1] score, bint ranked, int32_t[::1] item, uint8_t[::1] bad,
):
    """Slots of the rows of lists that are in order; a query with other lists is marked in `bad` and skipped.

    In order: experts by code, rows by rank (or, without ranks, falling score), then slot; ranks from 1,
    scores finite, no repeated item in a list. Without ranks, `rank` is filled from the scores.
    """
    cdef int64_t q, lst, a, b, i, who, widest = 0
    cdef int32_t s
    cdef bint wrong
    for q in range(first, last):
        widest = max(widest, starts[q + 1] - starts[q])
    cdef int64_t[::1] stamp = np.full(widest, -1, np.int64)
    with nogil:
        for q in range(first, last):
            who = -1
            for lst in range(query_lists[q], query_lists[q + 1]):
                a = list_starts[lst]
                b = list_starts[lst + 1]
                wrong = expert[lst] <= who
                who = expert[lst]
                if ranked:
                    wrong |= not is_sorted_by_rank(a, b, slot, rank)
                else:
                    wrong |= not rank_falling_scores(a, b, slot, rank, score)
                for i in range(a, b):
                    s = slot[i]
                    wrong |= stamp[s] == lst
                    stamp[s] = lst
                    item[i] = <int32_t>(starts[q] + s)
                if wrong:
                    bad[q] = True
                    break


cdef bint is_sorted_by_rank(
    int64_t begin, int64_t end, const int32_t[::1] slot, const int32_t[::1] rank
) noexcept nogil:
    """Whether the rows of a list are ordered by rank, then slot, and ranks start at 1 or later."""
    cdef bint good = rank[begin] >= 1
    cdef int64_t i
    for i in range(begin + 1, end):
        good &= (rank[i] > rank[i - 1]) | ((rank[i] == rank[i - 1]) & (slot[i] > slot[i - 1]))
    return good


cdef bint rank_falling_scores(
    int64_t begin, int64_t end, const int32_t[::1] slot, int32_t[::1] rank, const double[::1] score
) noexcept nogil:
    """Whether scores fall; fills the ranks."""
    cdef bint same, good = isfinite(score[begin])
    cdef int64_t i
    rank[begin] = 1
    for i in range(begin + 1, end):
        same = score[i] == score[i - 1]
        good &= isfinite(score[i]) & ((score[i] < score[i - 1]) | (same & (slot[i] > slot[i - 1])))
        rank[i] = rank[i - 1] if same else <int32_t>(i - begin + 1)
    return good
