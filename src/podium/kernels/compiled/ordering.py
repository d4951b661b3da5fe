"""Sorting the slots of every query by score."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rank_order(first, last, starts, scores, order, tied, tie_key, tolerance):
    """Per query: sort by falling score, find tie groups, sort inside them, snap their scores."""
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        if a == b:
            continue
        here = scores[a:b]
        largest = np.max(np.abs(here))
        place = np.argsort(-here, kind="mergesort")
        begin = 0
        for i in range(1, b - a + 1):
            if i < b - a and here[place[i - 1]] - here[place[i]] <= tolerance * largest:
                continue
            if i - begin > 1:
                _finish_ties(place[begin:i], here, tie_key, a)
                tied[a + begin : a + i] = True
            begin = i
        for i in range(b - a):
            order[a + i] = a + place[i]


@njit(cache=True, nogil=True)
def _finish_ties(group, scores, tie_key, base):
    best = scores[group[0]]
    for i in range(len(group)):
        scores[group[i]] = best
    group.sort()
    if tie_key is not None:
        keys = np.empty(len(group), np.int64)
        for i in range(len(group)):
            keys[i] = tie_key[base + group[i]]
        group[:] = group[np.argsort(keys, kind="mergesort")]
