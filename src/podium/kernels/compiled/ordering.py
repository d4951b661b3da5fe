"""Sorting the slots of every query by score.

A comparison sort of a few hundred scores costs several times as much as summing them. Scores are therefore
distributed into buckets (linear between best and worst), crowded buckets are sorted by comparison, and one
insertion pass finishes the order. All steps are stable, so equal scores stay in slot order. Unsigned indices
avoid the check for negative ones, which is noticeable in loops this short.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BUCKETS = np.uint64(4)  # per item; fewer leave more to insertion, more cost clearing
CROWD = np.uint32(24)  # items per bucket from which a merge sort beats insertion
ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def rank_order(first, last, starts, scores, order, tied, tie_key, tolerance, share, least):
    """Per query: sort by falling score, determine tie groups, sort inside them, snap their scores."""
    widest = np.uint64(0)
    for q in range(first, last):
        widest = max(widest, np.uint64(starts[q + 1] - starts[q]))
    value, place = np.empty(widest), np.empty(widest, np.int32)
    bucket, count = np.empty(widest, np.uint32), np.empty(BUCKETS * widest, np.uint32)
    for q in range(first, last):
        a, n = np.uint64(starts[q]), np.uint64(starts[q + 1] - starts[q])
        if n == 0:
            continue
        floor = share * max(least[q], sort_scores(scores[a : a + n], value, place, bucket, count))
        close = np.uint64(0)
        for i in range(ONE, n):
            close += is_tied(value[i - ONE], value[i], floor, tolerance)
        if close:
            _resolve_ties(np.int64(n), a, value, place, floor, tolerance, scores, tied, tie_key)
        for i in range(n):
            order[a + i] = np.int32(a) + place[i]


@njit(cache=True, nogil=True, inline="always")
def is_tied(above, here, floor, tolerance):
    """Whether two neighbors are tied; see `podium.kernels.ordering`."""
    step = above - here
    return (step <= tolerance * above) | (step <= tolerance * floor) | (step <= tolerance * -here)


@njit(cache=True, nogil=True)
def sort_scores(scores, value, place, bucket, count):
    """Fill `place` with positions by falling score, `value` with the scores; returns the largest magnitude."""
    n = np.uint64(len(scores))
    low = high = scores[0]
    for i in range(n):
        low, high = min(low, scores[i]), max(high, scores[i])
    many = BUCKETS * n
    spread = high - low
    scale = (many - ONE) / spread if spread > 0 else 0.0
    if not (np.isfinite(spread) and np.isfinite(scale)):
        scale = 0.0  # one bucket for all, sorted by comparison
    for b in range(many):
        count[b] = np.uint32(0)
    for i in range(n):
        b = np.uint32(np.int32((high - scores[i]) * scale)) if scale > 0 else np.uint32(0)
        bucket[i] = b
        count[b] += np.uint32(1)
    crowded = False
    total = np.uint32(0)
    for b in range(many):
        here = count[b]
        crowded |= here > CROWD
        count[b] = total
        total += here
    for i in range(n):
        p = count[bucket[i]]
        count[bucket[i]] = p + np.uint32(1)
        value[p], place[p] = scores[i], np.int32(i)
    if crowded:
        _sort_buckets(many, value, place, count)
    _insertion_sort(n, value, place)
    return max(abs(low), abs(high))


@njit(cache=True, nogil=True)
def _sort_buckets(many, value, place, count):
    """Merge sort inside buckets of many items; count[b] is the end of bucket b."""
    begin = np.uint32(0)
    for b in range(many):
        end = count[b]
        if end - begin > CROWD:
            key = np.empty(end - begin)
            for k in range(len(key)):
                key[k] = -value[begin + np.uint32(k)]
            merge_sort(key, place[begin:end])
            for k in range(len(key)):
                value[begin + np.uint32(k)] = -key[k]
        begin = end


@njit(cache=True, nogil=True)
def merge_sort(key, item):
    """Stable sort of both by ascending key; numpy's own sorts take numba seconds to compile."""
    n = len(key)
    spare_key, spare_item = np.empty(n, key.dtype), np.empty(n, np.int32)
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and key[i] <= key[j]):
                    spare_key[k], spare_item[k] = key[i], item[i]
                    i += 1
                else:
                    spare_key[k], spare_item[k] = key[j], item[j]
                    j += 1
        for k in range(n):
            key[k], item[k] = spare_key[k], spare_item[k]
        width *= 2


@njit(cache=True, nogil=True)
def _insertion_sort(n, value, place):
    """Stable insertion sort by falling value; values are nearly in place."""
    for i in range(ONE, n):
        v = value[i]
        if value[i - ONE] >= v:
            continue
        p, j = place[i], i
        while j > 0 and value[j - ONE] < v:
            value[j], place[j] = value[j - ONE], place[j - ONE]
            j -= ONE
        value[j], place[j] = v, p


@njit(cache=True, nogil=True)
def _resolve_ties(n, base, value, place, floor, tolerance, scores, tied, tie_key):
    """Order every tie group by the tie rule and give it one score."""
    begin = 0
    for i in range(1, n + 1):
        if i < n and is_tied(value[i - 1], value[i], floor, tolerance):
            continue
        if i - begin > 1:
            group = place[begin:i]
            snapped = value[i - 1] != value[begin]
            if snapped:
                for k in range(len(group)):
                    scores[base + np.uint64(group[k])] = value[begin]
            if snapped or tie_key is not None:
                key = np.empty(len(group))
                for k in range(len(group)):
                    key[k] = group[k] if tie_key is None else tie_key[base + np.uint64(group[k])]
                merge_sort(key, group)
            for k in range(begin, i):
                tied[base + np.uint64(k)] = True
        begin = i
