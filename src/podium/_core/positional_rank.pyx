"""Points summed and ordered directly from rows grouped by query and list, one query at a time.

The rows of a query are read once and the state of its items stays in the nearest cache: numbering them for
later use, as preferences in memory need, would cost more than the sums.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from podium._core.bytes8 cimport load_prefix, mix
from podium._core.ordering cimport SortRoom, mark_ties, sort_scores
from podium._core.sorting cimport merge_sort
from podium._core.spans cimport Spans, hash_span, is_same_span, make_spans, sort_spans

cdef enum:
    ROOM = 2  # bits: four table positions per row, as an emptier table has fewer mispredicted branches
    CROWD = 24  # ties from which a merge sort beats insertion

ctypedef fused item_id:
    int32_t
    int64_t


cdef struct Entry:
    # one item of a query; its members are together, as every row needs them all
    double total
    int64_t key  # its id; for texts, its first row
    int64_t stamp  # the last list that held it
    uint64_t hash  # of a text


cdef struct Tally:
    # the items of a query, numbered from 1 by first appearance (0 marks a free position of the table)
    int32_t* table
    Entry* entry
    int64_t many
    bint repeated  # whether a list holds an item twice


def rank_by_points(
    int64_t first, int64_t last, const int64_t[::1] row_starts, const int64_t[::1] query_lists,
    const int64_t[::1] list_starts, const item_id[::1] item, bint plain, const uint8_t[::1] data,
    const int64_t[::1] at, const int32_t[::1] length, const int32_t[::1] rank, const double[::1] points,
    const double[::1] weight, double tolerance, int64_t top, item_id[::1] items, int32_t[::1] places,
    double[::1] scores, uint8_t[::1] tied, int64_t[::1] begins, int64_t[::1] counts, uint8_t[::1] bad,
):
    """Results of a range of queries, best first, from the position of the first row on and without gaps.

    `item` holds integer ids; or, if there are texts (at, length, in data), the text number of each row; or
    nothing, if the rows are the texts (`plain`). Fills begins and counts (where the results of a query are,
    and how many); a query in which a list repeats an item, or scores are not finite, is marked in `bad`.
    """
    cdef int64_t q, i, shown, most = 1, out = row_starts[first]
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    cdef int32_t[::1] table = np.empty(1 << (find_table_bits(most) + ROOM), np.int32)
    cdef uint64_t[:, ::1] entries = np.empty((most + 1, sizeof(Entry) // 8), np.uint64)
    # few arrays, as making one takes as long as summing a hundred rows
    cdef double[:, ::1] numbers = np.empty((2, most))
    cdef int32_t[:, ::1] positions = np.empty((2, most), np.int32)
    cdef uint64_t[:, ::1] bits_of_scores = np.empty((2, most), np.uint64)
    cdef double[::1] total = numbers[0], value = numbers[1]
    cdef int32_t[::1] place = positions[0]
    cdef uint8_t[::1] joined = np.empty(most + 1, np.uint8)
    cdef TieRoom room = TieRoom(most, len(at) > 0)
    cdef Spans spans = make_spans(data, at, length)
    cdef Tally tally = Tally(&table[0], <Entry*>&entries[0, 0], 0, False)
    cdef SortRoom sorting = SortRoom(
        &value[0], &place[0], &bits_of_scores[0, 0], &bits_of_scores[1, 0], &positions[1, 0]
    )
    cdef const Entry* entry = tally.entry + 1
    cdef int bits
    with nogil:
        for q in range(first, last):
            bits = find_table_bits(row_starts[q + 1] - row_starts[q]) + ROOM
            if plain:
                sum_text_points(
                    &spans, query_lists[q], query_lists[q + 1], list_starts, rank, points, weight, bits, &tally
                )
            else:
                sum_points(
                    item, query_lists[q], query_lists[q + 1], list_starts, rank, points, weight, bits, &tally
                )
            begins[q] = out
            for i in range(tally.many):
                total[i] = entry[i].total
            sort_scores(&total[0], tally.many, &sorting)
            if tally.repeated or not isfinite(value[0]):
                bad[q] = True
                counts[q] = 0
                continue
            shown = min(tally.many, top)
            resolve_ties(
                tally.many, shown, &value[0], &place[0], entry, &spans, tolerance, &joined[0], &tied[out], room
            )
            for i in range(shown):
                items[out + i] = <item_id>entry[place[i]].key
                places[out + i] = <int32_t>(i + 1)
                scores[out + i] = value[i]
            counts[q] = shown
            out += shown


cdef inline int find_table_bits(int64_t rows) noexcept nogil:
    """log2 of the smallest power of two that is not below the number of rows."""
    cdef int bits = 1
    while (<int64_t>1 << bits) < rows:
        bits += 1
    return bits


cdef inline void start_entry(Entry* e, int64_t key, uint64_t hash) noexcept nogil:
    """An item that no list has held yet."""
    e.total = 0.0
    e.key = key
    e.stamp = -1
    e.hash = hash


cdef void sum_points(
    const item_id[::1] item, int64_t first_list, int64_t last_list, const int64_t[::1] list_starts,
    const int32_t[::1] rank, const double[::1] points, const double[::1] weight, int bits, Tally* tally,
) noexcept nogil:
    """Number the items of a query and sum their points."""
    # locals, which stay in registers
    cdef int32_t* table = tally.table
    cdef Entry* entry = tally.entry
    cdef Entry* e
    cdef int shift = 64 - bits
    cdef uint64_t p, mask = (<uint64_t>1 << bits) - 1
    cdef int64_t lst, row, k
    cdef uint32_t n, many = 0
    cdef double w
    cdef bint repeated = False
    memset(table, 0, sizeof(int32_t) << bits)
    for lst in range(first_list, last_list):
        w = weight[lst]
        for row in range(list_starts[lst], list_starts[lst + 1]):
            k = item[row]
            p = mix(<uint64_t>k) >> shift
            while True:
                n = <uint32_t>table[p]
                if n == 0:
                    many += 1
                    table[p] = <int32_t>many
                    e = &entry[many]
                    start_entry(e, k, 0)
                    break
                e = &entry[n]
                if e.key == k:
                    break
                p = (p + 1) & mask
            e.total += w * points[rank[row]]
            repeated |= e.stamp == lst
            e.stamp = lst
    tally.many = many
    tally.repeated = repeated


cdef void sum_text_points(
    const Spans* s, int64_t first_list, int64_t last_list, const int64_t[::1] list_starts,
    const int32_t[::1] rank, const double[::1] points, const double[::1] weight, int bits, Tally* tally,
) noexcept nogil:
    """The same for rows that are texts; the key of an item is its first row."""
    cdef int32_t* table = tally.table
    cdef Entry* entry = tally.entry
    cdef Entry* e
    cdef int shift = 64 - bits
    cdef uint64_t h, p, mask = (<uint64_t>1 << bits) - 1
    cdef int64_t lst, row
    cdef uint32_t n, many = 0
    cdef double w
    cdef bint repeated = False
    memset(table, 0, sizeof(int32_t) << bits)
    for lst in range(first_list, last_list):
        w = weight[lst]
        for row in range(list_starts[lst], list_starts[lst + 1]):
            h = hash_span(s, row)
            p = h >> shift
            while True:
                n = <uint32_t>table[p]
                if n == 0:
                    many += 1
                    table[p] = <int32_t>many
                    e = &entry[many]
                    start_entry(e, row, h)
                    break
                e = &entry[n]
                if e.hash == h and is_same_span(s, row, e.key):
                    break
                p = (p + 1) & mask
            e.total += w * points[rank[row]]
            repeated |= e.stamp == lst
            e.stamp = lst
    tally.many = many
    tally.repeated = repeated


cdef class TieRoom:
    """Memory for sorting a group of ties by id, enough for all items of the largest query."""

    cdef int32_t[::1] index, index2, old
    cdef uint64_t[::1] word, word2
    cdef int64_t[::1] row

    def __cinit__(self, int64_t most, bint texts):
        cdef int32_t[:, ::1] numbers = np.empty((3, most), np.int32)
        cdef uint64_t[:, ::1] words = np.empty((2, most), np.uint64)
        self.index, self.index2, self.old = numbers[0], numbers[1], numbers[2]
        self.word, self.word2 = words[0], words[1]
        self.row = np.empty(most if texts else 0, np.int64)


cdef void resolve_ties(
    int64_t n, int64_t shown, double* value, int32_t* place, const Entry* entry, const Spans* spans,
    double tolerance, uint8_t* joined, uint8_t* tied, TieRoom room,
) noexcept nogil:
    """Mark ties among the output places, order them by id, and give them one score."""
    cdef int64_t k, begin, end = 0
    mark_ties(value, n, 0.0, tolerance, joined)
    while end < shown:
        begin = end
        end += 1
        tied[begin] = joined[end]
        if not joined[end]:
            continue
        while joined[end]:
            value[end] = value[begin]
            if end < shown:
                tied[end] = True
            end += 1
        if spans.at != NULL:
            sort_by_text(place + begin, end - begin, entry, spans, room)
        else:
            sort_by_number(place + begin, end - begin, entry, room)


cdef void sort_by_number(int32_t* group, int64_t n, const Entry* entry, TieRoom room) noexcept nogil:
    """Sort by id: a few by insertion, which would be too slow for many."""
    cdef int64_t k, j
    cdef int32_t p
    # the room for words serves as room for ids: both have eight bytes
    cdef int64_t* ids = <int64_t*>&room.word[0]
    if n > CROWD:
        for k in range(n):
            ids[k] = entry[group[k]].key
        merge_sort(ids, group, n, <int64_t*>&room.word2[0], &room.index2[0])
        return
    for k in range(1, n):
        p = group[k]
        j = k
        while j > 0 and entry[group[j - 1]].key > entry[p].key:
            group[j] = group[j - 1]
            j -= 1
        group[j] = p


cdef void sort_by_text(
    int32_t* group, int64_t n, const Entry* entry, const Spans* s, TieRoom room
) noexcept nogil:
    """Sort by the bytes of texts."""
    cdef int64_t k, row
    cdef int32_t* order
    for k in range(n):
        row = entry[group[k]].key
        room.row[k] = row
        room.old[k] = group[k]
        room.word[k] = load_prefix(s.data, s.size, s.at[row], s.length[row])
        room.index[k] = <int32_t>k
    order = sort_spans(s, &room.row[0], n, 0, &room.word[0], &room.index[0], &room.word2[0], &room.index2[0])
    for k in range(n):
        group[k] = room.old[order[k]]


def rank_scores(
    int64_t first, int64_t last, const int64_t[::1] list_starts, const double[::1] score, int32_t[::1] rank,
    uint8_t[::1] bad,
):
    """Ranks of lists by their scores; marks those in which a score rises or is not finite."""
    cdef int64_t lst, a, i
    cdef bint good
    with nogil:
        for lst in range(first, last):
            a = list_starts[lst]
            good = isfinite(score[a])
            rank[a] = 1
            for i in range(a + 1, list_starts[lst + 1]):
                good &= isfinite(score[i]) & (score[i] <= score[i - 1])
                rank[i] = rank[i - 1] if score[i] == score[i - 1] else <int32_t>(i - a + 1)
            bad[lst] = not good


def find_contradictions(
    int64_t first, int64_t last, const int64_t[::1] list_starts, const double[::1] score,
    const int32_t[::1] rank, uint8_t[::1] bad,
):
    """Mark the lists in which a score rises or is not finite, or a rank falls."""
    cdef int64_t lst, a, i
    cdef bint good
    with nogil:
        for lst in range(first, last):
            a = list_starts[lst]
            good = isfinite(score[a])
            for i in range(a + 1, list_starts[lst + 1]):
                good &= isfinite(score[i]) & (score[i] <= score[i - 1]) & (rank[i] >= rank[i - 1])
            bad[lst] = not good
