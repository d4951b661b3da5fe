"""Numbering the items of every query from rows grouped by query, with a small table per query.

One table over all ids of a file would exceed the caches; the ids of one query fit into the nearest one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the upper bits of the product are well mixed
CROWD = 16  # values per bucket from which a radix sort replaces insertion
DIGIT = 8


@njit(cache=True, nogil=True)
def number_items(first, last, row_starts, value, ordered, slot, rep, came, counts):
    """Number the distinct values of each query, by value (`ordered`) or by first appearance.

    Fills slot (number of each row's value within its query), counts, and from the query's first row on, for
    every number, rep (the row of its first appearance) and came (its rank by first appearance).
    """
    most = 0
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    bits = 4
    while (1 << bits) < 2 * most:
        bits += 1
    table, held = np.empty(1 << bits, np.int32), np.empty(1 << bits, np.uint64)
    key, key2 = np.empty(most, np.uint64), np.empty(most, np.uint64)
    name, name2 = np.empty(most, np.int32), np.empty(most, np.int32)
    row, place = np.empty(most, np.int64), np.empty(most, np.int32)
    for q in range(first, last):
        a, b = row_starts[q], row_starts[q + 1]
        here = slot[a:b]
        count = _number_values(value[a:b], a, table, held, here, key, row)
        counts[q] = count
        if not ordered:
            rep[a : a + count] = row[:count]
            continue
        names = _sort_keys(key[:count], key2[:count], name[:count], name2[:count], table)
        for i in range(count):
            n = np.uint32(names[i])
            place[n] = i
            came[a + i] = n
            rep[a + i] = row[n]
        for i in range(len(here)):
            here[i] = place[np.uint32(here[i])]


@njit(cache=True, nogil=True)
def _number_values(value, base, table, held, slot, key, row):
    """Number values by first appearance; `key` orders them as signed integers.

    `held` repeats the key of each table position, so that a lookup takes one step. Unsigned indices avoid
    the check for negative ones.
    """
    n = np.uint64(len(value))
    bits = 4
    while (np.uint64(1) << np.uint64(bits)) < np.uint64(2) * n:
        bits += 1
    table[: 1 << bits] = -1
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    count = np.uint32(0)
    for i in range(n):
        v = np.uint64(np.int64(value[i])) ^ np.uint64(1 << 63)
        at = (v * MULTIPLIER) >> shift
        while True:
            found = table[at]
            if found < 0:
                found = np.int32(count)
                table[at], held[at] = found, v
                key[count], row[count] = v, base + np.int64(i)
                count += np.uint32(1)
                break
            if held[at] == v:
                break
            at = (at + np.uint64(1)) & mask
        slot[i] = found
    return np.int64(count)


@njit(cache=True, nogil=True)
def _sort_keys(key, key2, name, name2, count):
    """The numbers 0, 1, ... by ascending key: distributed into buckets by the upper bits, then insertion."""
    n = len(key)
    low = high = key[0]
    for i in range(n):
        low, high = min(low, key[i]), max(high, key[i])
    bits, wide = 0, high - low
    while wide:
        wide >>= np.uint64(1)
        bits += 1
    log = 1
    while (1 << log) < n:
        log += 1
    shift = np.uint64(max(bits - log, 0))
    count[: 1 << log] = 0
    for i in range(n):
        count[(key[i] - low) >> shift] += 1
    total, crowded = 0, False
    for b in range(1 << log):
        here = count[b]
        crowded |= here > CROWD
        count[b] = total
        total += here
    if crowded:
        return _radix_sort(key, key2, name, name2, low, bits)
    for i in range(n):
        b = (key[i] - low) >> shift
        p = count[b]
        count[b] = p + 1
        key2[p], name2[p] = key[i], i
    for i in range(1, n):
        k, x, j = key2[i], name2[i], i - 1
        while j >= 0 and key2[j] > k:
            key2[j + 1], name2[j + 1] = key2[j], name2[j]
            j -= 1
        key2[j + 1], name2[j + 1] = k, x
    return name2


@njit(cache=True, nogil=True)
def _radix_sort(key, key2, name, name2, low, bits):
    """The same by radix sort from the lowest digit; for clustered values."""
    n = len(key)
    for i in range(n):
        name[i] = i
    count = np.empty(1 << DIGIT, np.int64)
    for begin in range(0, bits, DIGIT):
        shift, mask = np.uint64(begin), np.uint64((1 << DIGIT) - 1)
        count[:] = 0
        for i in range(n):
            count[((key[i] - low) >> shift) & mask] += 1
        total = 0
        for d in range(1 << DIGIT):
            here = count[d]
            count[d] = total
            total += here
        for i in range(n):
            d = ((key[i] - low) >> shift) & mask
            key2[count[d]], name2[count[d]] = key[i], name[i]
            count[d] += 1
        key, key2 = key2, key
        name, name2 = name2, name
    return name


@njit(cache=True, nogil=True)
def find_list_starts(row_starts, expert, starts):
    """Fill `starts` with the rows at which query or expert changes, and the end; returns their number."""
    count = 0
    for q in range(len(row_starts) - 1):
        a, b = row_starts[q], row_starts[q + 1]
        starts[count] = a
        count += 1
        here = expert[a:b]
        for i in range(1, len(here)):
            if here[i] != here[i - 1]:
                starts[count] = a + i
                count += 1
    starts[count] = row_starts[-1]
    return count + 1


@njit(cache=True, nogil=True)
def relabel_slots(first, last, row_starts, starts, new, slot):
    """slot = the new number of each row's old slot."""
    for q in range(first, last):
        base = starts[q]
        for row in range(row_starts[q], row_starts[q + 1]):
            slot[row] = new[base + slot[row]]


@njit(cache=True, nogil=True)
def gather_items(first, last, row_starts, starts, rep, came, first_row, arrival):
    """The output of `number_items`, without the gaps."""
    for q in range(first, last):
        a, size = starts[q], starts[q + 1] - starts[q]
        begin = row_starts[q]
        first_row[a : a + size] = rep[begin : begin + size]
        arrival[a : a + size] = came[begin : begin + size]


@njit(cache=True, nogil=True)
def fill_lists(first, last, starts, query_lists, list_starts, expert, slot, rank, score, ranked, item, bad):
    """Slots of the rows of lists that are in order; a query with other lists is marked in `bad` and skipped.

    In order: experts by code, rows by rank (or, without ranks, falling score), then slot; ranks from 1,
    scores finite, no repeated item in a list. Without ranks, `rank` is filled from the scores.
    """
    widest = 0
    for q in range(first, last):
        widest = max(widest, starts[q + 1] - starts[q])
    stamp = np.full(widest, -1, np.int64)
    for q in range(first, last):
        base, who = starts[q], -1
        for lst in range(query_lists[q], query_lists[q + 1]):
            a, b = list_starts[lst], list_starts[lst + 1]
            wrong = expert[lst] <= who
            who = expert[lst]
            slots, ranks = slot[a:b], rank[a:b]
            if ranked:
                wrong |= not _is_sorted_by_rank(slots, ranks)
            else:
                wrong |= not _rank_falling_scores(slots, ranks, score[a:b])
            items = item[a:b]
            for i in range(b - a):
                s = np.uint32(slots[i])
                wrong |= stamp[s] == lst
                stamp[s] = lst
                items[i] = base + s
            if wrong:
                bad[q] = True
                break


@njit(cache=True, nogil=True)
def _is_sorted_by_rank(slot, rank):
    good = rank[0] >= 1
    for i in range(1, len(rank)):
        good &= (rank[i] > rank[i - 1]) | ((rank[i] == rank[i - 1]) & (slot[i] > slot[i - 1]))
    return good


@njit(cache=True, nogil=True)
def _rank_falling_scores(slot, rank, score):
    """Whether scores fall; fills the ranks."""
    good = np.isfinite(score[0])
    rank[0] = 1
    for i in range(1, len(score)):
        same = score[i] == score[i - 1]
        good &= np.isfinite(score[i]) & ((score[i] < score[i - 1]) | (same & (slot[i] > slot[i - 1])))
        rank[i] = rank[i - 1] if same else i + 1
    return good
