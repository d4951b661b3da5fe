"""Sorting the slots of every query by score.

A comparison sort of a few hundred scores costs several times the summing that made them. Scores are therefore
dealt into as many buckets as there are items (linear between best and worst), crowded buckets are sorted by
comparison, and one insertion pass finishes the order. All steps are stable, so equal scores stay in slot order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CROWD = 24  # items in one bucket from which a merge sort beats insertion


@njit(cache=True, nogil=True)
def rank_order(first, last, starts, scores, order, tied, tie_key, tolerance):
    """Per query: sort by falling score, find tie groups, sort inside them, snap their scores."""
    widest = 0
    for q in range(first, last):
        widest = max(widest, starts[q + 1] - starts[q])
    place, bucket = np.empty(widest, np.int32), np.empty(widest, np.int32)
    count = np.empty(widest + 2, np.int64)
    for q in range(first, last):
        a, n = starts[q], starts[q + 1] - starts[q]
        if n == 0:
            continue
        here = scores[a : a + n]
        largest = _sort(here, place[:n], bucket, count)
        begin = 0
        for i in range(1, n + 1):
            if i < n and here[place[i - 1]] - here[place[i]] <= tolerance * largest:
                continue
            if i - begin > 1:
                _settle(place[begin:i], here, tie_key, a)
                tied[a + begin : a + i] = True
            begin = i
        for i in range(n):
            order[a + i] = a + place[i]


@njit(cache=True, nogil=True)
def _sort(scores, place, bucket, count):
    """Fill `place` with positions by falling score; returns the largest magnitude."""
    n = len(scores)
    low = high = scores[0]
    for i in range(1, n):
        low, high = min(low, scores[i]), max(high, scores[i])
    spread = high - low
    scale = (n - 1) / spread if spread > 0 else 0.0
    if not (np.isfinite(spread) and np.isfinite(scale)):
        scale = 0.0  # one bucket for all, sorted by comparison
    for b in range(n + 1):
        count[b] = 0
    for i in range(n):
        b = int((high - scores[i]) * scale) if scale > 0 else 0
        bucket[i] = b
        count[b + 1] += 1
    for b in range(n):
        count[b + 1] += count[b]
    for i in range(n):
        b = bucket[i]
        place[count[b]] = i
        count[b] += 1
    begin = 0
    for b in range(n):  # count[b] is now the end of bucket b
        end = count[b]
        if end - begin > CROWD:
            part = place[begin:end].copy()
            by_score = np.argsort(-scores[part], kind="mergesort")
            for i in range(end - begin):
                place[begin + i] = part[by_score[i]]
        begin = end
    for i in range(1, n):
        p, s, j = place[i], scores[place[i]], i
        while j > 0 and scores[place[j - 1]] < s:
            place[j] = place[j - 1]
            j -= 1
        place[j] = p
    return max(abs(low), abs(high))


@njit(cache=True, nogil=True)
def _settle(group, scores, tie_key, base):
    """Put one tie group in the order of the tie rule and give it one score."""
    best = scores[group[0]]
    exact = scores[group[-1]] == best
    for i in range(len(group)):
        scores[group[i]] = best
    if not exact:
        group.sort()
    if tie_key is not None:
        keys = np.empty(len(group), np.int64)
        for i in range(len(group)):
            keys[i] = tie_key[base + group[i]]
        group[:] = group[np.argsort(keys, kind="mergesort")]
