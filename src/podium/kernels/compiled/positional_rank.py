"""Points summed and ordered directly from rows grouped by query and list, one query at a time.

The rows of a query are read once and the state of its items stays in the nearest cache: numbering them for
later use, as preferences in memory need, would cost more than the sums.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.bytes8 import count_shared_bytes, load_prefix
from podium.kernels.compiled.local_items import MULTIPLIER
from podium.kernels.compiled.ordering import BUCKETS, CROWD, ONE, is_tied, merge_sort, sort_scores
from podium.kernels.compiled.text_items import hash_span, sort_spans

# two bits, four table positions per row: an emptier table has fewer mispredicted branches
ROOM = np.uint64(2)


@njit(cache=True, nogil=True)
def rank_by_points(
    first, last, row_starts, query_lists, list_starts, item, plain, data, at, length, rank, points, weight,
    tolerance, top, items, places, scores, tied, begins, counts, bad,
):  # fmt: skip
    """Results of a range of queries, best first, from the position of the first row on and without gaps.

    `item` holds integer ids; or, if there are texts (at, length, in data), the text number of each row; or
    nothing, if the rows are the texts (`plain`). Fills begins and counts (where the results of a query are,
    and how many); a query in which a list repeats an item, or scores are not finite, is marked in `bad`.
    """
    most = 1
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    table, hashes = np.empty(ONE << (_table_bits(most) + ROOM), np.int32), np.empty(most + 1, np.uint64)
    key, total, stamp = np.empty(most + 1, item.dtype), np.empty(most + 1), np.empty(most + 1, np.int64)
    value, place = np.empty(most), np.empty(most, np.int32)
    bucket, count = np.empty(most, np.uint32), np.empty(BUCKETS * np.uint64(most), np.uint32)
    out = row_starts[first]
    for q in range(first, last):
        a, b = query_lists[q], query_lists[q + 1]
        bits, lists, weights = (
            _table_bits(row_starts[q + 1] - row_starts[q]) + ROOM,
            list_starts[a : b + 1],
            weight[a:b],
        )
        given = (lists, rank, points, weights, bits, table, key, total, stamp)
        many, wrong = (
            _sum_text_points(data, at, length, hashes, *given) if plain else _sum_points(item, *given)
        )
        begins[q] = out
        sort_scores(total[1 : 1 + many], value, place, bucket, count)
        if wrong or not np.isfinite(value[0]):
            bad[q] = True
            counts[q] = 0
            continue
        shown = min(many, top)
        _resolve_ties(
            np.uint64(many), value, place, key, data, at, length, tolerance, tied[out : out + shown]
        )
        for i in range(shown):
            items[out + i], places[out + i], scores[out + i] = key[place[i] + 1], i + 1, value[i]
        counts[q] = shown
        out += shown


@njit(cache=True, nogil=True)
def _table_bits(rows):
    bits = ONE
    while (ONE << bits) < np.uint64(rows):
        bits += ONE
    return bits


@njit(cache=True, nogil=True)
def _sum_points(item, lists, rank, points, weight, bits, table, key, total, stamp):
    """Number the items of a query from 1 by first appearance and sum their points; returns their number, and
    whether a list repeats one. Unsigned indices avoid the check for negative ones.
    """
    size = ONE << bits
    shift, mask = np.uint64(64) - bits, size - ONE
    table[:size] = 0
    many, wrong = np.uint32(0), False
    for lst in range(len(lists) - 1):
        here, ranks, w = item[lists[lst] : lists[lst + 1]], rank[lists[lst] : lists[lst + 1]], weight[lst]
        for i in range(np.uint64(len(here))):
            k = here[i]
            p = (np.uint64(np.int64(k)) * MULTIPLIER) >> shift
            while True:
                n = np.uint32(table[p])
                if n == 0:
                    many += np.uint32(1)
                    n = many
                    table[p], key[n], total[n], stamp[n] = n, k, 0.0, -1
                    break
                if key[n] == k:
                    break
                p = (p + ONE) & mask
            total[n] += w * points[np.uint32(ranks[i])]
            wrong |= stamp[n] == lst
            stamp[n] = lst
    return np.int64(many), wrong


@njit(cache=True, nogil=True)
def _sum_text_points(data, at, length, hashes, lists, rank, points, weight, bits, table, key, total, stamp):
    """The same for rows that are texts; the key of an item is its first row."""
    size = ONE << bits
    shift, mask = np.uint64(64) - bits, size - ONE
    table[:size] = 0
    many, wrong = np.uint32(0), False
    for lst in range(len(lists) - 1):
        w = weight[lst]
        for row in range(lists[lst], lists[lst + 1]):
            h = hash_span(data, at[row], length[row])
            p = h >> shift
            while True:
                n = np.uint32(table[p])
                if n == 0:
                    many += np.uint32(1)
                    n = many
                    table[p], hashes[n], key[n], total[n], stamp[n] = n, h, row, 0.0, -1
                    break
                k = key[n]
                same = hashes[n] == h and length[k] == length[row]
                if same and count_shared_bytes(data, at[k], at[row], length[row]) == length[row]:
                    break
                p = (p + ONE) & mask
            total[n] += w * points[np.uint32(rank[row])]
            wrong |= stamp[n] == lst
            stamp[n] = lst
    return np.int64(many), wrong


@njit(cache=True, nogil=True)
def _resolve_ties(n, value, place, key, data, at, length, tolerance, tied):
    """Mark ties among the output places, order them by id, and give them one score."""
    shown = np.uint64(len(tied))
    begin = np.uint64(0)
    for i in range(ONE, n + ONE):
        if i < n and is_tied(value[i - ONE], value[i], 0.0, tolerance):
            continue
        for k in range(begin, min(i, shown)):
            tied[k] = i - begin > ONE
        if i - begin > ONE:
            value[begin:i] = value[begin]
            if len(at):
                _sort_by_text(place[begin:i], key, data, at, length)
            else:
                _sort_by_number(place[begin:i], key)
        begin = i
        if begin >= shown:
            break


@njit(cache=True, nogil=True)
def _sort_by_number(group, key):
    """Sort by id: a few by insertion, which would be too slow for many."""
    if len(group) > CROWD:
        ids = np.empty(len(group), key.dtype)
        for k in range(len(group)):
            ids[k] = key[group[k] + 1]
        merge_sort(ids, group)
        return
    for k in range(1, len(group)):
        p, j = group[k], k
        while j > 0 and key[group[j - 1] + 1] > key[p + 1]:
            group[j] = group[j - 1]
            j -= 1
        group[j] = p


@njit(cache=True, nogil=True)
def _sort_by_text(group, key, data, at, length):
    """Sort by the bytes of texts."""
    n = len(group)
    row, old = np.empty(n, np.int64), group.copy()
    word, word2 = np.empty(n, np.uint64), np.empty(n, np.uint64)
    index, index2 = np.empty(n, np.int32), np.empty(n, np.int32)
    for k in range(n):
        row[k] = key[group[k] + 1]
        word[k], index[k] = load_prefix(data, at[row[k]], length[row[k]]), k
    _, found = sort_spans(data, at, length, row, 0, word, index, word2, index2)
    for k in range(n):
        group[k] = old[found[k]]


@njit(cache=True, nogil=True)
def rank_scores(first, last, list_starts, score, rank, bad):
    """Ranks of lists by their scores; marks those in which a score rises or is not finite."""
    for lst in range(first, last):
        a, b = list_starts[lst], list_starts[lst + 1]
        good = np.isfinite(score[a])
        rank[a] = 1
        for i in range(a + 1, b):
            good &= np.isfinite(score[i]) & (score[i] <= score[i - 1])
            rank[i] = rank[i - 1] if score[i] == score[i - 1] else i - a + 1
        bad[lst] = not good


@njit(cache=True, nogil=True)
def find_contradictions(first, last, list_starts, score, rank, bad):
    """Mark the lists in which a score rises or is not finite, or a rank falls."""
    for lst in range(first, last):
        a, b = list_starts[lst], list_starts[lst + 1]
        good = np.isfinite(score[a])
        for i in range(a + 1, b):
            good &= np.isfinite(score[i]) & (score[i] <= score[i - 1]) & (rank[i] >= rank[i - 1])
        bad[lst] = not good
