"""Joins over ids kept as UTF-8 text."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.bytes8 import load_word


@njit(cache=True, nogil=True)
def compare_spans(a, a0, a1, b, b0, b1):
    """Byte order of two spans: negative, zero or positive."""
    n = min(a1 - a0, b1 - b0)
    equal = 0
    while equal + 8 <= n and load_word(a, a0 + equal) == load_word(b, b0 + equal):
        equal += 8
    for i in range(equal, n):
        d = np.int64(a[a0 + i]) - np.int64(b[b0 + i])  # bytes are unsigned, and so would be their difference
        if d != 0:
            return d
    return (a1 - a0) - (b1 - b0)


@njit(cache=True, nogil=True)
def match_text_ids(
    first, last, match, starts, buffer, offsets, other_starts, other_buffer, other_offsets, found
):
    """Merge join of two sorted id columns, query by query."""
    for q in range(first, last):
        m = match[q]
        if m < 0:
            continue
        i, j = starts[q], other_starts[m]
        while i < starts[q + 1] and j < other_starts[m + 1]:
            d = compare_spans(
                buffer, offsets[i], offsets[i + 1], other_buffer, other_offsets[j], other_offsets[j + 1]
            )
            if d == 0:
                found[i] = j
                i += 1
                j += 1
            elif d < 0:
                i += 1
            else:
                j += 1
