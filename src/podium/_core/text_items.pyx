"""Slots for the items of every query, and sorted lists over them, from ids in the bytes of a file."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from podium._core.bytes8 cimport copy_bytes, count_shared_bytes, load_prefix
from podium._core.sorting cimport merge_sort
from podium._core.spans cimport Spans, hash_span, is_same_span, make_spans, sort_spans


cdef inline int find_table_bits(int64_t rows) noexcept nogil:
    """log2 of the size of a table that is at most half full."""
    cdef int bits = 1
    while (<int64_t>1 << bits) < 2 * rows:
        bits += 1
    return bits


cdef void gather_rows(
    const int64_t[::1] order, int64_t begin, int64_t end, const int64_t[::1] run_rows, int64_t* row
) noexcept nogil:
    """The rows of the runs order[begin:end], in sequence."""
    cdef int64_t r, k, n = 0
    for r in range(begin, end):
        for k in range(run_rows[order[r]], run_rows[order[r] + 1]):
            row[n] = k
            n += 1


def index_items(
    int64_t first, int64_t last, const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length,
    const int64_t[::1] run_rows, const int64_t[::1] order, const int64_t[::1] query_runs,
    const int64_t[::1] row_starts, int32_t[::1] slot, int32_t[::1] rep, int64_t[::1] counts,
    int64_t[::1] widths,
):
    """Number the distinct ids of every query in byte order.

    Fills slot (of every row, within its query), counts, the total bytes of the distinct ids (widths), and from
    row_starts[q] on a row that holds each id (rep).
    """
    cdef int64_t q, i, n, count, skip, width, r, most = 1
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    cdef int32_t[::1] table = np.empty(1 << find_table_bits(most), np.int32)
    cdef uint64_t[::1] key = np.empty(most, np.uint64), key2 = np.empty(most, np.uint64)
    cdef int32_t[::1] index = np.empty(most, np.int32), index2 = np.empty(most, np.int32)
    cdef int64_t[::1] row = np.empty(most, np.int64), own = np.empty(most, np.int64)
    cdef Spans spans = make_spans(data, at, length)
    cdef int32_t* by_text
    with nogil:
        for q in range(first, last):
            n = row_starts[q + 1] - row_starts[q]
            if n == 0:
                counts[q] = widths[q] = 0
                continue
            gather_rows(order, query_runs[q], query_runs[q + 1], run_rows, &row[0])
            count = number_spans(&spans, &row[0], n, &table[0], &key[0], slot, &own[0])
            skip = length[own[0]]
            for i in range(1, count):
                skip = count_shared_bytes(
                    spans.data + at[own[i]], spans.data + at[own[0]], min(skip, <int64_t>length[own[i]])
                )
            for i in range(count):
                key[i] = load_prefix(spans.data, spans.size, at[own[i]] + skip, length[own[i]] - skip)
                index[i] = <int32_t>i
            by_text = sort_spans(&spans, &own[0], count, skip, &key[0], &index[0], &key2[0], &index2[0])
            width = 0
            for i in range(count):
                r = own[by_text[i]]
                rep[row_starts[q] + i] = <int32_t>r
                width += length[r]
                table[by_text[i]] = <int32_t>i  # from here on the place of each number
            for i in range(n):
                slot[row[i]] = table[slot[row[i]]]
            counts[q] = count
            widths[q] = width


cdef int64_t number_spans(
    const Spans* s, const int64_t* row, int64_t n, int32_t* table, uint64_t* hashes, int32_t[::1] slot, int64_t* own
) noexcept nogil:
    """Number the spans by first appearance; `own` gets the first row of each. A full sort would be slower."""
    cdef int bits = find_table_bits(n)
    cdef int shift = 64 - bits
    cdef uint64_t h, p, mask = (<uint64_t>1 << bits) - 1
    cdef int64_t i, r
    cdef int32_t found, count = 0
    memset(table, 255, sizeof(int32_t) << bits)  # -1: free
    for i in range(n):
        r = row[i]
        h = hash_span(s, r)
        p = h >> shift
        while True:
            found = table[p]
            if found < 0:
                found = count
                table[p] = found
                hashes[found] = h
                own[found] = r
                count += 1
                break
            if hashes[found] == h and is_same_span(s, r, own[found]):
                break
            p = (p + 1) & mask
        slot[r] = found
    return count


def write_items(
    int64_t first, int64_t last, const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length,
    const int64_t[::1] run_rows, const int64_t[::1] order, const int64_t[::1] query_runs,
    const int64_t[::1] row_starts, const int32_t[::1] slot, const int32_t[::1] rep,
    const int64_t[::1] starts, const int64_t[::1] text, uint8_t[::1] buffer, int64_t[::1] offsets,
    int32_t[::1] arrival,
):
    """Copy the distinct ids of every query and record their order of first appearance."""
    cdef int64_t q, k, i, r, s, to
    cdef int32_t came
    cdef const uint8_t* source = &data[0] if data.shape[0] else NULL
    cdef uint8_t* target = &buffer[0] if buffer.shape[0] else NULL
    with nogil:
        for q in range(first, last):
            to = text[q]
            for k in range(starts[q + 1] - starts[q]):
                r = rep[row_starts[q] + k]
                offsets[starts[q] + k] = to
                copy_bytes(source, data.shape[0], at[r], length[r], target, to, text[q + 1])
                to += length[r]
            came = 0
            for k in range(query_runs[q], query_runs[q + 1]):
                for i in range(run_rows[order[k]], run_rows[order[k] + 1]):
                    s = starts[q] + slot[i]
                    if arrival[s] < 0:
                        arrival[s] = came
                        came += 1


cdef class ListRoom:
    """Memory for sorting the rows of the longest list."""

    cdef int64_t[::1] row, old
    cdef int32_t[::1] index, index2, rank
    cdef double[::1] value, value2

    def __cinit__(self, int64_t most):
        self.row, self.old = np.empty(most, np.int64), np.empty(most, np.int64)
        self.index, self.index2, self.rank = (np.empty(most, np.int32) for _ in range(3))
        self.value, self.value2 = np.empty(most), np.empty(most)


def sort_list_rows(
    int64_t first, int64_t last, const int64_t[::1] list_runs, const int64_t[::1] order,
    const int64_t[::1] run_rows, const int64_t[::1] starts, const int64_t[::1] base,
    const int32_t[::1] slot, const int32_t[::1] rank, const double[::1] score, int by, int64_t width,
    bint in_place, int32_t[::1] out_item, int32_t[::1] out_rank, double[::1] out_score,
    uint8_t[::1] disagree, int64_t[::1] repeat,
):
    """Sort the rows of every list by rank or score (`by` 0: rank where scores agree, 1: rank, 2: score).

    `base` is the first slot of each list's query and `width` the largest number of slots of a query. With
    `in_place` the rows of a list are already in position, and out_rank and out_score are rank and score
    themselves. Records in `disagree` the lists whose ranks contradict their scores and in `repeat` a row that
    repeats an item, or -1.
    """
    cdef int64_t t, i, n, most = 1
    cdef bint scored, moved
    for t in range(first, last):
        most = max(most, starts[t + 1] - starts[t])
    cdef int64_t[::1] stamp = np.full(width, -1, np.int64)
    cdef ListRoom room = ListRoom(most)
    cdef int64_t* row = &room.row[0]
    with nogil:
        for t in range(first, last):
            n = starts[t + 1] - starts[t]
            gather_rows(order, list_runs[t], list_runs[t + 1], run_rows, row)
            repeat[t] = find_repeat(row, n, slot, stamp, t)
            scored = by == 2
            moved = not in_place
            if not scored:
                if not is_ordered(row, n, slot, rank):
                    for i in range(n):
                        room.value[i] = rank[row[i]]
                    sort_rows(n, slot, room)
                    moved = True
                scored = by == 0 and not has_consistent_ranks(row, n, rank, score)
                disagree[t] = scored
            if scored:
                for i in range(n):
                    room.value[i] = -1.0 * score[row[i]]
                sort_rows(n, slot, room)
                moved = True
            for i in range(n):
                out_item[starts[t] + i] = <int32_t>(base[t] + slot[row[i]])
            if moved:
                reorder_columns(n, rank, score, scored, starts[t], out_rank, out_score, room)


cdef void sort_rows(int64_t n, const int32_t[::1] slot, ListRoom room) noexcept nogil:
    """Sort room.row by ascending room.value, then slot."""
    cdef int64_t i, begin, end
    for i in range(n):
        room.index[i] = <int32_t>i
        room.old[i] = room.row[i]
    merge_sort(&room.value[0], &room.index[0], n, &room.value2[0], &room.index2[0])
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and room.value[end] == room.value[begin]:
            end += 1
        if end - begin > 1:
            sort_by_slot(begin, end, slot, room)
        begin = end
    for i in range(n):
        room.row[i] = room.old[room.index[i]]


cdef void sort_by_slot(int64_t begin, int64_t end, const int32_t[::1] slot, ListRoom room) noexcept nogil:
    """Sort a range of equal values by slot, stably."""
    cdef int64_t i
    for i in range(begin, end):
        room.rank[i] = slot[room.old[room.index[i]]]
    merge_sort(&room.rank[begin], &room.index[begin], end - begin, <int32_t*>&room.value2[0], &room.index2[0])


cdef bint is_ordered(
    const int64_t* row, int64_t n, const int32_t[::1] slot, const int32_t[::1] rank
) noexcept nogil:
    """Whether rows are ordered by rank, then slot."""
    cdef int64_t i, a, b
    for i in range(1, n):
        a = row[i - 1]
        b = row[i]
        if rank[b] < rank[a] or (rank[b] == rank[a] and slot[b] < slot[a]):
            return False
    return True


cdef bint has_consistent_ranks(
    const int64_t* row, int64_t n, const int32_t[::1] rank, const double[::1] score
) noexcept nogil:
    """Whether the ranks of ordered rows are valid and follow from their scores."""
    cdef int64_t i, a, b
    for i in range(n):
        b = row[i]
        if rank[b] < 1:
            return False
        if i:
            a = row[i - 1]
            if score[b] > score[a] or (rank[a] == rank[b] and score[a] != score[b]):
                return False
    return True


cdef int64_t find_repeat(
    const int64_t* row, int64_t n, const int32_t[::1] slot, int64_t[::1] stamp, int64_t mark
) noexcept nogil:
    """A row whose slot occurred before in the same list, or -1."""
    cdef int64_t i, repeated = -1
    for i in range(n):
        if stamp[slot[row[i]]] == mark:
            repeated = row[i]
        stamp[slot[row[i]]] = mark
    return repeated


cdef void reorder_columns(
    int64_t n, const int32_t[::1] rank, const double[::1] score, bint scored, int64_t begin,
    int32_t[::1] out_rank, double[::1] out_score, ListRoom room,
) noexcept nogil:
    """Put ranks and scores in the order of the rows; ranks are derived from scores if these sorted the list."""
    cdef int64_t i
    # copies first: the output may alias the input
    for i in range(n):
        room.value[i] = score[room.row[i]]
        if not scored:
            room.rank[i] = rank[room.row[i]]
        elif i and room.value[i] == room.value[i - 1]:
            room.rank[i] = room.rank[i - 1]
        else:
            room.rank[i] = <int32_t>(i + 1)
    for i in range(n):
        out_rank[begin + i] = room.rank[i]
        out_score[begin + i] = room.value[i]
