"""Slots for the items of every query, and sorted lists over them, from ids in the bytes of a file."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.bytes8 import copy_bytes, count_shared_bytes, load_prefix, load_word
from podium.kernels.compiled.local_items import MULTIPLIER


@njit(cache=True, nogil=True)
def compare_tails(data, a, a_len, b, b_len, skip):
    """Order of two spans with a common prefix of `skip` bytes."""
    limit = min(a_len, b_len)
    if skip < limit:
        k = skip + count_shared_bytes(data, a + skip, b + skip, limit - skip)
        if k < limit:
            return np.int64(data[a + k]) - np.int64(data[b + k])
    return np.int64(a_len) - np.int64(b_len)


@njit(cache=True, nogil=True)
def _insertion_sort(data, at, length, row, skip, key, idx, begin, end):
    """Insertion sort of a few spans."""
    for i in range(begin + 1, end):
        k, x = key[i], idx[i]
        j = i - 1
        while j >= begin and key[j] >= k:
            y = idx[j]
            if (
                key[j] == k
                and compare_tails(data, at[row[y]], length[row[y]], at[row[x]], length[row[x]], skip + 8) <= 0
            ):
                break
            key[j + 1], idx[j + 1] = key[j], y
            j -= 1
        key[j + 1], idx[j + 1] = k, x


@njit(cache=True, nogil=True)
def sort_spans(data, at, length, row, skip, key, idx, key2, idx2):
    """Stable merge sort of spans by their bytes: `key` holds eight bytes after the common prefix."""
    n, width = len(key), 12
    for begin in range(0, n, width):
        _insertion_sort(data, at, length, row, skip, key, idx, begin, min(begin + width, n))
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for to in range(begin, end):
                left = b >= end
                if not left and a < middle:
                    left = key[a] < key[b]
                    if key[a] == key[b]:
                        x, y = row[idx[a]], row[idx[b]]
                        left = compare_tails(data, at[x], length[x], at[y], length[y], skip + 8) <= 0
                if left:
                    key2[to], idx2[to] = key[a], idx[a]
                    a += 1
                else:
                    key2[to], idx2[to] = key[b], idx[b]
                    b += 1
        key, key2 = key2, key
        idx, idx2 = idx2, idx
        width *= 2
    return key, idx


@njit(cache=True, nogil=True)
def _gather_rows(runs, run_rows, row):
    n = 0
    for r in runs:
        for k in range(run_rows[r], run_rows[r + 1]):
            row[n] = k
            n += 1


@njit(cache=True, nogil=True)
def index_items(
    first, last, data, at, length, run_rows, order, query_runs, row_starts, slot, rep, counts, widths
):
    """Number the distinct items of every query in byte order.

    Fills slot (number of each row's item within its query), rep (a row for each distinct item, from the
    query's row start on), counts (items) and widths (bytes of their ids).
    """
    most = 0
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    row, own = np.empty(most, np.int64), np.empty(most, np.int64)
    key, key2 = np.empty(most, np.uint64), np.empty(most, np.uint64)
    idx, idx2 = np.empty(most, np.int32), np.empty(most, np.int32)
    table = np.empty(1 << _table_bits(most), np.int32)
    for q in range(first, last):
        n = row_starts[q + 1] - row_starts[q]
        _gather_rows(order[query_runs[q] : query_runs[q + 1]], run_rows, row)
        count = _number_spans(data, at, length, row[:n], table, key, slot, own)
        skip = length[own[0]]
        for i in range(1, count):
            skip = count_shared_bytes(data, at[own[i]], at[own[0]], min(skip, length[own[i]]))
        for i in range(count):
            key[i] = load_prefix(data, at[own[i]] + skip, length[own[i]] - skip)
            idx[i] = i
        _, found = sort_spans(
            data, at, length, own, skip, key[:count], idx[:count], key2[:count], idx2[:count]
        )
        place = table  # reused for another purpose
        width = 0
        for i in range(count):
            r = own[found[i]]
            rep[row_starts[q] + i] = r
            width += length[r]
            place[found[i]] = i
        for i in range(n):
            slot[row[i]] = place[slot[row[i]]]
        counts[q], widths[q] = count, width


@njit(cache=True, nogil=True)
def _table_bits(rows):
    """log2 of the size of a table that is at most half full."""
    bits = 1
    while (1 << bits) < 2 * rows:
        bits += 1
    return bits


@njit(cache=True, nogil=True)
def _number_spans(data, at, length, row, table, hashes, slot, own):
    """Number the spans by first appearance; `own` gets the first row of each. A full sort would be slower."""
    bits = _table_bits(len(row))
    mask, shift = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    table[: 1 << bits] = -1
    count = np.int32(0)
    for i in range(len(row)):
        r = row[i]
        h = hash_span(data, at[r], length[r])
        p = h >> shift
        while True:
            found = table[p]
            if found < 0:
                found = count
                table[p], hashes[found], own[found] = found, h, r
                count += np.int32(1)
                break
            if hashes[found] == h:
                o = own[found]
                if length[o] == length[r] and count_shared_bytes(data, at[o], at[r], length[r]) == length[r]:
                    break
            p = (p + np.uint64(1)) & mask
        slot[r] = found
    return count


@njit(cache=True, nogil=True)
def hash_span(data, at, length):
    """A hash of some bytes; its upper bits are well mixed."""
    h = np.uint64(length)
    if length < 8:
        return (h ^ load_prefix(data, at, length)) * MULTIPLIER
    k = 0
    while k + 8 < length:
        h = (h ^ load_word(data, at + k)) * MULTIPLIER
        h ^= h >> np.uint64(32)
        k += 8
    return (h ^ load_word(data, at + length - 8)) * MULTIPLIER


@njit(cache=True, nogil=True)
def write_items(
    first,
    last,
    data,
    at,
    length,
    run_rows,
    order,
    query_runs,
    row_starts,
    slot,
    rep,
    starts,
    text,
    buffer,
    offsets,
    arrival,
):
    """Copy the distinct ids of every query and record their order of first appearance."""
    for q in range(first, last):
        to, stop = text[q], text[q + 1]
        for k in range(starts[q + 1] - starts[q]):
            r = rep[row_starts[q] + k]
            offsets[starts[q] + k] = to
            copy_bytes(data, at[r], np.int64(length[r]), buffer, to, stop)
            to += length[r]
        came = 0
        for r in order[query_runs[q] : query_runs[q + 1]]:
            for i in range(run_rows[r], run_rows[r + 1]):
                s = starts[q] + slot[i]
                if arrival[s] < 0:
                    arrival[s] = came
                    came += 1


@njit(cache=True, nogil=True)
def _sort_rows(row, slot, value, sign):
    """The rows by ascending sign * value, then slot."""
    slots, values = np.empty(len(row)), np.empty(len(row))
    for i in range(len(row)):
        slots[i], values[i] = slot[row[i]], sign * value[row[i]]
    by_slot = np.argsort(slots, kind="mergesort")
    return row[by_slot[np.argsort(values[by_slot], kind="mergesort")]]


@njit(cache=True, nogil=True)
def _is_ordered(row, slot, rank):
    for i in range(1, len(row)):
        a, b = row[i - 1], row[i]
        if rank[b] < rank[a] or (rank[b] == rank[a] and slot[b] < slot[a]):
            return False
    return True


@njit(cache=True, nogil=True)
def _has_consistent_ranks(row, rank, score):
    """Whether the ranks of ordered rows are valid and follow from their scores."""
    for i in range(len(row)):
        b = row[i]
        if rank[b] < 1:
            return False
        if i:
            a = row[i - 1]
            if score[b] > score[a] or (rank[a] == rank[b] and score[a] != score[b]):
                return False
    return True


@njit(cache=True, nogil=True)
def _find_repeat(row, slot, stamp, mark):
    """A row whose slot occurred before in the same list, or -1."""
    found = -1
    for i in range(len(row)):
        s = slot[row[i]]
        if stamp[s] == mark:
            found = row[i]
        stamp[s] = mark
    return found


@njit(cache=True, nogil=True)
def sort_list_rows(
    first,
    last,
    list_runs,
    order,
    run_rows,
    starts,
    base,
    slot,
    rank,
    score,
    by,
    width,
    in_place,
    out_item,
    out_rank,
    out_score,
    disagree,
    repeat,
):
    """Sort the rows of every list by rank or score (`by` 0: rank where scores agree, 1: rank, 2: score).

    `base` is the first slot of each list's query and `width` the largest number of slots of a query. With
    `in_place` the rows of a list are already in position, and out_rank and out_score are rank and score
    themselves. Records in `disagree` the lists whose ranks contradict their scores and in `repeat` a row that
    repeats an item, or -1.
    """
    stamp = np.full(width, -1, np.int64)
    most = 0
    for t in range(first, last):
        most = max(most, starts[t + 1] - starts[t])
    rows = np.empty(most, np.int64)
    for t in range(first, last):
        row = rows[: starts[t + 1] - starts[t]]
        _gather_rows(order[list_runs[t] : list_runs[t + 1]], run_rows, row)
        repeat[t] = _find_repeat(row, slot, stamp, t)
        scored, moved = by == 2, not in_place
        if not scored:
            if not _is_ordered(row, slot, rank):
                row, moved = _sort_rows(row, slot, rank, 1.0), True
            scored = by == 0 and not _has_consistent_ranks(row, rank, score)
            disagree[t] = scored
        if scored:
            row, moved = _sort_rows(row, slot, score, -1.0), True
        for i in range(len(row)):
            out_item[starts[t] + i] = base[t] + slot[row[i]]
        if moved:
            _reorder_columns(
                row,
                rank,
                score,
                scored,
                out_rank[starts[t] : starts[t + 1]],
                out_score[starts[t] : starts[t + 1]],
            )


@njit(cache=True, nogil=True)
def _reorder_columns(row, rank, score, scored, out_rank, out_score):
    """Put ranks and scores in the order of `row`; ranks are derived from scores if these sorted the list."""
    n = len(row)
    new_rank, new_score = np.empty(n, np.int32), np.empty(n)  # the output may alias the input
    for i in range(n):
        new_score[i] = score[row[i]]
        if not scored:
            new_rank[i] = rank[row[i]]
        elif i and new_score[i] == new_score[i - 1]:
            new_rank[i] = new_rank[i - 1]
        else:
            new_rank[i] = i + 1
    for i in range(n):
        out_rank[i], out_score[i] = new_rank[i], new_score[i]
