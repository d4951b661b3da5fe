"""Pairwise matrices of one list each: walks along the list, and power iteration with them.

The items of such a matrix are the rows of its list. If the list also puts c items below, these are all alike,
and one more entry stands for them: their common value times the square root of c, which preserves vector
norms.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PLACES, ROOM = 64, 131_072  # cache of solved lists: number of lists, and total rows


@njit(cache=True, nogil=True, inline="always")
def multiply_list(binary, gap, n, rest, x, y):
    """Wins of each row of a list: y = Y x, plus `rest`; returns the sum of x."""
    later, got = 0.0, rest
    if binary:
        for k in range(n - 1, -1, -1):
            y[k] = got
            later += x[k]
            got = later + rest if gap[k] > 0 else got
    else:
        for k in range(n - 1, -1, -1):
            y[k] = got
            later += x[k]
            got += gap[k] * later
    return later


@njit(cache=True, nogil=True, inline="always")
def multiply_list_transposed(binary, gap, n, x, y):
    """Losses of each row of a list: y = Y' x; returns the sum of x."""
    earlier = got = 0.0
    if binary:
        for k in range(n):
            got = earlier if gap[k] > 0 else got
            earlier += x[k]
            y[k] = got
    else:
        for k in range(n):
            got += gap[k] * earlier
            earlier += x[k]
            y[k] = got
    return earlier


@njit(cache=True, nogil=True, inline="always")
def compute_gaps(binary, value, start, n, gap):
    """Steps between the values of a list's rows; for binary strengths, 1 where the value rises."""
    for k in range(n):
        rise = value[start + k] - value[start + k - 1] if k > 0 else 0.0
        gap[k] = (1.0 if rise > 0 else 0.0) if binary else rise


@njit(cache=True, nogil=True)
def find_longest_list(m, first, last, which):
    """The length of the longest list."""
    most = 0
    for at in range(first, last):
        number = m.list_starts[which[at]]
        most = max(most, m.starts[number + 1] - m.starts[number])
    return most


@njit(cache=True, nogil=True)
def sum_rows_and_columns(first, last, which, m, offsets, row, column):
    """Sums of the rows and columns of every matrix."""
    width = find_longest_list(m, first, last, which)
    gap, ones, y = np.empty(width), np.ones(width), np.empty(width)
    for at in range(first, last):
        g = which[at]
        number, shift = m.list_starts[g], offsets[g] - m.slots[m.query[g]]
        start, n = m.starts[number], m.starts[number + 1] - m.starts[number]
        unlisted = offsets[g + 1] - offsets[g] - n if m.below and n > 0 else 0
        compute_gaps(m.binary, m.value, start, n, gap)
        multiply_list(m.binary, gap, n, float(unlisted), ones, y)
        for k in range(n):
            row[m.item[start + k] + shift] = y[k]
        if unlisted > 0:
            column[offsets[g] : offsets[g + 1]] = n
        multiply_list_transposed(m.binary, gap, n, ones, y)
        for k in range(n):
            column[m.item[start + k] + shift] = y[k]


@njit(cache=True, nogil=True)
def compute_leading_vectors(
    first, last, which, m, offsets, tolerance, slow, patience, u, v, sigma, iterations
):
    """Leading singular vectors; matrices that converge slowly are left to another method, with iterations 0.

    The vectors depend on the gaps alone, so the last list of each length is cached: full rankings are all
    alike.
    """
    width = find_longest_list(m, first, last, which) + 1
    places = max(1, min(PLACES, ROOM // width))
    gap, z, key = np.empty(width), np.empty(width), np.full((places, 2), -1.0)
    old, right, left = np.empty((places, width)), np.empty((places, width)), np.empty((places, width))
    length, steps = np.empty(places), np.empty(places, np.int64)
    for at in range(first, last):
        g = which[at]
        number, shift = m.list_starts[g], offsets[g] - m.slots[m.query[g]]
        start, n = m.starts[number], m.starts[number + 1] - m.starts[number]
        unlisted = offsets[g + 1] - offsets[g] - n if m.below and n > 0 else 0
        root, place = np.sqrt(unlisted), n % places
        compute_gaps(m.binary, m.value, start, n, gap)
        x, y = right[place], left[place]
        if key[place, 0] != n or key[place, 1] != root or count_equal_prefix(old[place], gap, n) < n:
            steps[place] = iterate_power(m.binary, gap, n, root, tolerance, slow, patience, x, y, z)
            key[place, 0], key[place, 1] = n, root
            old[place, :n] = gap[:n]
            length[place] = np.sqrt(dot(y, y, n))
        if steps[place] > 0:
            inverse = 1 / length[place] if length[place] > 0 else 0.0
            if root > 0:
                v[offsets[g] : offsets[g + 1]] = x[n] / root
            for k in range(n):
                v[m.item[start + k] + shift] = x[k]
                u[m.item[start + k] + shift] = y[k] * inverse
            sigma[g], iterations[g] = length[place], steps[place]


@njit(cache=True, nogil=True)
def count_equal_prefix(a, b, n):
    """Length of the common prefix of the first n entries."""
    k = 0
    while k < n and a[k] == b[k]:
        k += 1
    return k


@njit(cache=True, nogil=True)
def iterate_power(binary, gap, n, root, tolerance, slow, patience, x, y, z):
    """Power iteration with Y'Y from the vector of ones, to x and y = Y x; returns its steps, 0 if slow."""
    entries = n + 1 if root > 0 else n
    x[:entries], y[:n] = 0.0, 1.0
    step, before, change = 0, np.inf, np.inf
    while True:
        whole = multiply_list_transposed(binary, gap, n, y, z)
        if root > 0:
            z[n] = root * whole
        change = replace_unit_vector(x, z, entries)
        multiply_list(binary, gap, n, root * x[n] if root > 0 else 0.0, x, y)
        if change <= tolerance:
            return max(step, 1)
        if step >= patience and not change <= slow * before:
            return 0
        before = change
        step += 1


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a, b, n):
    """Sum of products; the compiler may reorder the terms, which makes it fast."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def replace_unit_vector(x, new, n):
    """Replace the old vector by a new one, normalized; returns their distance, 0 for a zero vector."""
    length = np.sqrt(dot(new, new, n))
    if length == 0.0:
        return 0.0
    factor, total = 1 / length, 0.0
    for i in range(n):
        scaled = new[i] * factor
        d = scaled - x[i]
        total += d * d
        x[i] = scaled
    return np.sqrt(total)
