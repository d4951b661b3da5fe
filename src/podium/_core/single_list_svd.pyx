"""Pairwise matrices of one list each: sums, and power iteration with them.

The items of such a matrix are the rows of its list. If the list also puts c items below, these are all alike,
and one more entry stands for them: their common value times the square root of c, which preserves vector
norms.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t

import numpy as np

from podium._core.list_products cimport (
    MatrixColumns,
    compute_gaps,
    multiply_list,
    multiply_list_transposed,
    replace_unit_vector,
)
from podium._core.vectors cimport dot

cdef enum:
    PLACES = 64  # lists in the cache of solved ones
    ROOM = 131_072  # their rows, at most


cdef int64_t find_longest_list(
    MatrixColumns m, int64_t first, int64_t last, const int64_t[::1] which
) noexcept nogil:
    """The length of the longest list."""
    cdef int64_t at, number, most = 0
    for at in range(first, last):
        number = m.list_starts[which[at]]
        most = max(most, m.starts[number + 1] - m.starts[number])
    return most


def sum_rows_and_columns(
    int64_t first, int64_t last, const int64_t[::1] which, matrices, const int64_t[::1] offsets,
    double[::1] row, double[::1] column,
):
    """Sums of the rows and columns of every matrix."""
    cdef MatrixColumns m = MatrixColumns(matrices)
    cdef int64_t at, g, k, shift, start, n, unlisted, width = find_longest_list(m, first, last, which) + 1
    cdef double[::1] gap = np.empty(width), ones = np.ones(width), y = np.empty(width)
    with nogil:
        for at in range(first, last):
            g = which[at]
            shift = offsets[g] - m.slots[m.query[g]]
            start = m.starts[m.list_starts[g]]
            n = m.starts[m.list_starts[g] + 1] - start
            if n == 0:
                continue
            unlisted = offsets[g + 1] - offsets[g] - n if m.below else 0
            compute_gaps(m.binary, &m.value[start], n, &gap[0])
            multiply_list(m.binary, &gap[0], n, <double>unlisted, &ones[0], &y[0])
            for k in range(n):
                row[m.item[start + k] + shift] = y[k]
            if unlisted > 0:
                for k in range(offsets[g], offsets[g + 1]):
                    column[k] = n
            multiply_list_transposed(m.binary, &gap[0], n, &ones[0], &y[0])
            for k in range(n):
                column[m.item[start + k] + shift] = y[k]


cdef class SolvedLists:
    """The last solved list of each length: vectors depend on the gaps alone, and full rankings are all alike."""

    cdef double[::1] gap, z, length
    cdef double[:, ::1] key, old, right, left
    cdef int64_t[::1] steps
    cdef int64_t places

    def __cinit__(self, int64_t width):
        self.places = max(1, min(PLACES, ROOM // width))
        self.gap, self.z, self.length = np.empty(width), np.empty(width), np.empty(self.places)
        self.key = np.full((self.places, 2), -1.0)
        self.old, self.right, self.left = (np.empty((self.places, width)) for _ in range(3))
        self.steps = np.empty(self.places, np.int64)

    cdef bint is_known(self, int64_t place, int64_t n, double root) noexcept nogil:
        """Whether the list with these gaps is the one at this place."""
        cdef int64_t k = 0
        if self.key[place, 0] != n or self.key[place, 1] != root:
            return False
        while k < n and self.old[place, k] == self.gap[k]:
            k += 1
        return k == n


def compute_leading_vectors(
    int64_t first, int64_t last, const int64_t[::1] which, matrices, const int64_t[::1] offsets,
    double tolerance, double slow, int64_t patience, double[::1] u, double[::1] v, double[::1] sigma,
    int64_t[::1] iterations,
):
    """Leading singular vectors; matrices that converge slowly are left to another method, with iterations 0."""
    cdef MatrixColumns m = MatrixColumns(matrices)
    cdef SolvedLists solved = SolvedLists(find_longest_list(m, first, last, which) + 1)
    cdef int64_t at, g, k, shift, start, n, unlisted, place
    cdef double root, inverse
    cdef double* x
    cdef double* y
    with nogil:
        for at in range(first, last):
            g = which[at]
            shift = offsets[g] - m.slots[m.query[g]]
            start = m.starts[m.list_starts[g]]
            n = m.starts[m.list_starts[g] + 1] - start
            unlisted = offsets[g + 1] - offsets[g] - n if m.below and n > 0 else 0
            root = sqrt(<double>unlisted)
            place = n % solved.places
            if n > 0:
                compute_gaps(m.binary, &m.value[start], n, &solved.gap[0])
            x = &solved.right[place, 0]
            y = &solved.left[place, 0]
            if not solved.is_known(place, n, root):
                solved.steps[place] = iterate_power(
                    m.binary, &solved.gap[0], n, root, tolerance, slow, patience, x, y, &solved.z[0]
                )
                solved.key[place, 0] = n
                solved.key[place, 1] = root
                for k in range(n):
                    solved.old[place, k] = solved.gap[k]
                solved.length[place] = sqrt(dot(y, y, n))
            if solved.steps[place] > 0:
                inverse = 1 / solved.length[place] if solved.length[place] > 0 else 0.0
                if root > 0:
                    for k in range(offsets[g], offsets[g + 1]):
                        v[k] = x[n] / root
                for k in range(n):
                    v[m.item[start + k] + shift] = x[k]
                    u[m.item[start + k] + shift] = y[k] * inverse
                sigma[g] = solved.length[place]
                iterations[g] = solved.steps[place]


cdef int64_t iterate_power(
    bint binary, const double* gap, int64_t n, double root, double tolerance, double slow, int64_t patience,
    double* x, double* y, double* z,
) noexcept nogil:
    """Power iteration with Y'Y from the vector of ones, to x and y = Y x; returns its steps, 0 if slow."""
    cdef int64_t k, step = 0, entries = n + 1 if root > 0 else n
    cdef double whole, change, before = INFINITY
    for k in range(entries):
        x[k] = 0.0
    for k in range(n):
        y[k] = 1.0
    while True:
        whole = multiply_list_transposed(binary, gap, n, y, z)
        if root > 0:
            z[n] = root * whole
        change = replace_unit_vector(x, z, entries)
        multiply_list(binary, gap, n, root * x[n] if root > 0 else 0.0, x, y)
        if change <= tolerance:
            return max(step, <int64_t>1)
        if step >= patience and not change <= slow * before:
            return 0
        before = change
        step += 1
