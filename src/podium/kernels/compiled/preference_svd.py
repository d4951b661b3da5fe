"""Products with pairwise matrices of several lists and votes, and iterations with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from podium.kernels.compiled.single_list_svd import (
    compute_gaps,
    dot,
    multiply_list,
    multiply_list_transposed,
    replace_unit_vector,
)
from podium.kernels.dispatch import B1, F8, I8


class MatrixBuffers(NamedTuple):
    """Memory for one matrix, over the items that it mentions."""

    binary: bool
    bounds: I8  # rows of each list
    at: Any  # item of each row; unsigned, to avoid the check for negative indices
    gap: F8  # value of each row minus that of the row before it
    partial: B1  # lists that put items below
    slot: I8  # slot of each item
    number: I8  # item of each slot of the query, or -1
    winner: Any
    loser: Any
    strength: F8
    given: F8  # entries of a vector for the rows of a list
    got: F8  # sums for these rows


class MatrixCounts(NamedTuple):
    """Sizes of what is stored."""

    items: int
    lists: int
    votes: int


@njit(cache=True, nogil=True)
def allocate_buffers(m, first, last, which):
    """Memory for every matrix of a range, one after the other."""
    lists = rows = size = votes = longest = 0
    for at in range(first, last):
        g = which[at]
        a, b = m.list_starts[g], m.list_starts[g + 1]
        lists, rows = max(lists, b - a), max(rows, m.starts[b] - m.starts[a])
        size = max(size, m.slots[m.query[g] + 1] - m.slots[m.query[g]])
        votes = max(votes, m.vote_starts[g + 1] - m.vote_starts[g])
        for number in range(a, b):
            longest = max(longest, m.starts[number + 1] - m.starts[number])
    return MatrixBuffers(
        m.binary,
        np.zeros(lists + 1, np.int64),
        np.empty(rows, np.uint32),
        np.empty(rows),
        np.empty(lists, np.bool_),
        np.empty(size, np.int64),
        np.full(size, -1, np.int64),
        np.empty(votes, np.uint32),
        np.empty(votes, np.uint32),
        np.empty(votes),
        np.empty(longest),
        np.empty(longest),
    )


@njit(cache=True, nogil=True)
def load_matrix(m, g, p):
    """Load matrix g."""
    q, a, b = m.query[g], m.list_starts[g], m.list_starts[g + 1]
    first, rows, size = m.starts[a], m.starts[b] - m.starts[a], m.slots[q + 1] - m.slots[q]
    votes = m.vote_starts[g + 1] - m.vote_starts[g]
    for number in range(a, b):
        start, stop = m.starts[number], m.starts[number + 1]
        p.bounds[number - a + 1] = stop - first
        p.partial[number - a] = m.below and 0 < stop - start < size
        compute_gaps(m.binary, m.value, start, stop - start, p.gap[start - first :])
    return MatrixCounts(number_items(m, g, p, rows, votes, size), b - a, votes)


@njit(cache=True, nogil=True)
def number_items(m, g, p, rows, votes, size):
    """Number the items of a matrix: all of its query, or only the mentioned ones when they are few."""
    base, first, vote = m.slots[m.query[g]], m.starts[m.list_starts[g]], m.vote_starts[g]
    n = 0
    if (m.below and rows > 0) or rows + 2 * votes >= size:
        n = size
        for i in range(n):
            p.slot[i] = base + i
            p.number[i] = i
    else:
        for k in range(rows):
            n = number_item(p, m.item[first + k], base, n)
        for k in range(votes):
            n = number_item(p, m.loser[vote + k], base, number_item(p, m.winner[vote + k], base, n))
    for k in range(rows):
        p.at[k] = p.number[m.item[first + k] - base]
    for k in range(votes):
        p.winner[k], p.loser[k] = p.number[m.winner[vote + k] - base], p.number[m.loser[vote + k] - base]
        p.strength[k] = m.strength[vote + k]
    for i in range(n):
        p.number[p.slot[i] - base] = -1
    return n


@njit(cache=True, nogil=True)
def number_item(p, slot, base, n):
    """Number an item that was not seen before; returns the count."""
    if p.number[slot - base] < 0:
        p.number[slot - base] = n
        p.slot[n] = slot
        n += 1
    return n


@njit(cache=True, nogil=True)
def multiply(p, count, x, y):
    """y = Y x."""
    y[: count.items] = 0.0
    whole = sum_entries(x, count.items)
    for number in range(count.lists):
        start, n = p.bounds[number], p.bounds[number + 1] - p.bounds[number]
        for k in range(n):
            p.given[k] = x[p.at[start + k]]
        held = multiply_list(p.binary, p.gap[start:], n, 0.0, p.given, p.got)
        rest = whole - held if p.partial[number] else 0.0
        for k in range(n):
            y[p.at[start + k]] += p.got[k] + rest
    for k in range(count.votes):
        y[p.winner[k]] += p.strength[k] * x[p.loser[k]]


@njit(cache=True, nogil=True)
def multiply_transposed(p, count, x, y):
    """y = Y' x."""
    y[: count.items] = 0.0
    raised = 0.0
    for number in range(count.lists):
        start, n = p.bounds[number], p.bounds[number + 1] - p.bounds[number]
        for k in range(n):
            p.given[k] = x[p.at[start + k]]
        held = multiply_list_transposed(p.binary, p.gap[start:], n, p.given, p.got)
        rest = held if p.partial[number] else 0.0
        raised += rest
        for k in range(n):
            y[p.at[start + k]] += p.got[k] - rest
    if raised != 0.0:
        for i in range(count.items):
            y[i] += raised
    for k in range(count.votes):
        y[p.loser[k]] += p.strength[k] * x[p.winner[k]]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def sum_entries(x, n):
    """Sum of the entries."""
    found = 0.0
    for i in range(n):
        found += x[i]
    return found


@njit(cache=True, nogil=True)
def sum_rows_and_columns(first, last, which, m, offsets, row, column):
    """Sums of the rows and columns of every matrix."""
    p = allocate_buffers(m, first, last, which)
    ones, y = np.ones(len(p.slot)), np.empty(len(p.slot))
    for at in range(first, last):
        g = which[at]
        count = load_matrix(m, g, p)
        shift = offsets[g] - m.slots[m.query[g]]
        multiply(p, count, ones, y)
        for i in range(count.items):
            row[p.slot[i] + shift] = y[i]
        multiply_transposed(p, count, ones, y)
        for i in range(count.items):
            column[p.slot[i] + shift] = y[i]


@njit(cache=True, nogil=True)
def compute_leading_vectors(
    first, last, which, m, offsets, tolerance, slow, patience, most, u, v, sigma, iterations
):
    """Leading singular vectors; iterations are negative where `most` were not enough."""
    p = allocate_buffers(m, first, last, which)
    w = np.empty((7, len(p.slot)))
    for at in range(first, last):
        g = which[at]
        count = load_matrix(m, g, p)
        steps, done = iterate_power(p, count, tolerance, slow, patience, most, w)
        if not done:
            more = iterate_conjugate(p, count, tolerance, most, w)
            steps = -steps - most if more == most else steps + more
        for i in range(count.items):
            w[0, i] = max(w[0, i], 0.0)  # noise
        multiply(p, count, w[0], w[6])
        length = np.sqrt(dot(w[6], w[6], count.items))
        inverse, shift = 1 / length if length > 0 else 0.0, offsets[g] - m.slots[m.query[g]]
        for i in range(count.items):
            v[p.slot[i] + shift] = w[0, i]
            u[p.slot[i] + shift] = max(w[6, i] * inverse, 0.0)
        sigma[g], iterations[g] = length, steps


@njit(cache=True, nogil=True)
def iterate_power(p, count, tolerance, slow, patience, most, w):
    """Power iteration with Y'Y from the vector of ones; returns its steps, and whether they were enough."""
    n, before = count.items, np.inf
    w[0, :n], w[6, :n] = 0.0, 1.0
    for step in range(most + 1):
        multiply_transposed(p, count, w[6], w[1])
        change = replace_unit_vector(w[0], w[1], n)
        if change <= tolerance:
            return max(step, 1), True
        if step >= patience and not change <= slow * before:
            return step, False
        before = change
        multiply(p, count, w[0], w[6])
    return most, False


@njit(cache=True, nogil=True)
def iterate_conjugate(p, count, tolerance, most, w):
    """Locally optimal conjugate directions, as in `podium.kernels.preference_svd`; returns the steps taken.

    Rows of `w`: the vector, its residual and the last step, the products of Y'Y with these, and a spare one.
    """
    n = count.items
    h, c = np.empty((3, 3)), np.empty((3, 3))
    w[2, :n], w[5, :n] = 0.0, 0.0
    for step in range(most):
        multiply(p, count, w[0], w[6])
        multiply_transposed(p, count, w[6], w[3])
        rho = dot(w[0], w[3], n)
        for i in range(n):
            w[1, i] = w[3, i] - rho * w[0, i]
        if np.sqrt(dot(w[1], w[1], n)) <= tolerance * rho:
            return step
        orthogonalize_vector(w, 1, 0, n)
        normalize_vector(w, 1, n)
        multiply(p, count, w[1], w[6])
        multiply_transposed(p, count, w[6], w[4])
        orthogonalize_vector(w, 2, 0, n)
        orthogonalize_vector(w, 2, 1, n)
        normalize_vector(w, 2, n)
        for j in range(3):
            for k in range(3):
                h[j, k] = (dot(w[j], w[3 + k], n) + dot(w[k], w[3 + j], n)) / 2
        top = find_leading_eigenvector(h, c)
        for i in range(n):
            w[2, i] = c[1, top] * w[1, i] + c[2, top] * w[2, i]
            w[5, i] = c[1, top] * w[4, i] + c[2, top] * w[5, i]
            w[0, i] = c[0, top] * w[0, i] + w[2, i]
        normalize_vector(w, 0, n)
    return most


@njit(cache=True, nogil=True)
def orthogonalize_vector(w, a, b, n):
    """Orthogonalize vector a against vector b, and its product likewise."""
    share = dot(w[a], w[b], n)
    for i in range(n):
        w[a, i] -= share * w[b, i]
        w[a + 3, i] -= share * w[b + 3, i]


@njit(cache=True, nogil=True)
def normalize_vector(w, a, n):
    """Scale vector a and its product to length one; zero stays zero."""
    length = np.sqrt(dot(w[a], w[a], n))
    if length > 0:
        for i in range(n):
            w[a, i] /= length
            w[a + 3, i] /= length


@njit(cache=True, nogil=True)
def find_leading_eigenvector(h, c):
    """Eigenvectors of a symmetric matrix (destroyed) as columns of c, by Jacobi rotations; the leading one."""
    size = len(h)
    for i in range(size):
        for j in range(size):
            c[i, j] = 1.0 if i == j else 0.0
    for _ in range(20):
        for i in range(size - 1):
            for j in range(i + 1, size):
                rotate_jacobi(h, c, i, j)
    top = 0
    for i in range(size):
        if h[i, i] > h[top, top]:
            top = i
    sign = -1.0 if c[0, top] < 0 else 1.0
    for i in range(size):
        c[i, top] *= sign
    return top


@njit(cache=True, nogil=True)
def rotate_jacobi(h, c, i, j):
    """One Jacobi rotation that clears h[i, j]."""
    if h[i, j] == 0.0:
        return
    half = (h[j, j] - h[i, i]) / (2 * h[i, j])
    t = (1.0 if half >= 0 else -1.0) / (abs(half) + np.hypot(half, 1.0))
    cosine = 1 / np.hypot(t, 1.0)
    sine = t * cosine
    for k in range(len(h)):
        h[k, i], h[k, j] = cosine * h[k, i] - sine * h[k, j], sine * h[k, i] + cosine * h[k, j]
    for k in range(len(h)):
        h[i, k], h[j, k] = cosine * h[i, k] - sine * h[j, k], sine * h[i, k] + cosine * h[j, k]
        c[k, i], c[k, j] = cosine * c[k, i] - sine * c[k, j], sine * c[k, i] + cosine * c[k, j]
