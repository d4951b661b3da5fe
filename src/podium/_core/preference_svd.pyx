"""Products with pairwise matrices of several lists and votes, and iterations with them."""

from libc.math cimport INFINITY, fabs, hypot, sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from podium._core.list_products cimport (
    MatrixColumns,
    compute_gaps,
    multiply_list,
    multiply_list_transposed,
    replace_unit_vector,
)
from podium._core.vectors cimport dot


cdef class LoadedMatrix:
    """One matrix after the other, over the items that it mentions; vectors have `items` entries."""

    cdef MatrixColumns m
    cdef int64_t[::1] bounds, slot, number  # rows of each list; slot of each item; item of each slot, or -1
    cdef uint32_t[::1] at, winner, loser  # item of each row and vote
    cdef double[::1] gap, strength
    cdef uint8_t[::1] partial  # lists that put items below
    cdef double[::1] given, got  # entries of a vector for the rows of a list, and sums for these rows
    cdef double[:, ::1] w  # vectors of an iteration
    cdef int64_t items, lists, votes, size

    def __cinit__(self, matrices, int64_t first, int64_t last, const int64_t[::1] which):
        cdef MatrixColumns m = MatrixColumns(matrices)
        cdef int64_t at, g, a, b, number, lists = 0, rows = 0, size = 0, votes = 0, longest = 0
        for at in range(first, last):
            g = which[at]
            a = m.list_starts[g]
            b = m.list_starts[g + 1]
            lists = max(lists, b - a)
            rows = max(rows, m.starts[b] - m.starts[a])
            size = max(size, m.slots[m.query[g] + 1] - m.slots[m.query[g]])
            votes = max(votes, m.vote_starts[g + 1] - m.vote_starts[g])
            for number in range(a, b):
                longest = max(longest, m.starts[number + 1] - m.starts[number])
        self.m = m
        self.bounds, self.partial = np.zeros(lists + 1, np.int64), np.empty(lists, np.uint8)
        self.at, self.gap = np.empty(rows, np.uint32), np.empty(rows)
        self.slot, self.number = np.empty(size, np.int64), np.full(size, -1, np.int64)
        self.winner, self.loser = np.empty(votes, np.uint32), np.empty(votes, np.uint32)
        self.strength, self.given, self.got = np.empty(votes), np.empty(longest), np.empty(longest)
        self.w = np.empty((7, max(size, 1)))

    cdef void load(self, int64_t g) noexcept nogil:
        """Load matrix g."""
        cdef int64_t q = self.m.query[g], a = self.m.list_starts[g], b = self.m.list_starts[g + 1]
        cdef int64_t first = self.m.starts[a], rows = self.m.starts[b] - first, number, start, n
        self.size = self.m.slots[q + 1] - self.m.slots[q]
        self.votes = self.m.vote_starts[g + 1] - self.m.vote_starts[g]
        self.lists = b - a
        for number in range(a, b):
            start = self.m.starts[number]
            n = self.m.starts[number + 1] - start
            self.bounds[number - a + 1] = start + n - first
            self.partial[number - a] = self.m.below and 0 < n < self.size
            if n > 0:
                compute_gaps(self.m.binary, &self.m.value[start], n, &self.gap[start - first])
        self.number_items(self.m.slots[q], first, rows, self.m.vote_starts[g])

    cdef void number_items(self, int64_t base, int64_t first, int64_t rows, int64_t vote) noexcept nogil:
        """Number the items of a matrix: all of its query, or only the mentioned ones when they are few."""
        cdef int64_t i, k
        self.items = 0
        if (self.m.below and rows > 0) or rows + 2 * self.votes >= self.size:
            self.items = self.size
            for i in range(self.size):
                self.slot[i] = base + i
                self.number[i] = i
        else:
            for k in range(rows):
                self.number_item(self.m.item[first + k], base)
            for k in range(self.votes):
                self.number_item(self.m.winner[vote + k], base)
                self.number_item(self.m.loser[vote + k], base)
        for k in range(rows):
            self.at[k] = <uint32_t>self.number[self.m.item[first + k] - base]
        for k in range(self.votes):
            self.winner[k] = <uint32_t>self.number[self.m.winner[vote + k] - base]
            self.loser[k] = <uint32_t>self.number[self.m.loser[vote + k] - base]
            self.strength[k] = self.m.strength[vote + k]
        for i in range(self.items):
            self.number[self.slot[i] - base] = -1

    cdef inline void number_item(self, int64_t slot, int64_t base) noexcept nogil:
        """Number an item that was not seen before."""
        if self.number[slot - base] < 0:
            self.number[slot - base] = self.items
            self.slot[self.items] = slot
            self.items += 1

    cdef void multiply(self, const double* x, double* y) noexcept nogil:
        """y = Y x."""
        cdef int64_t i, k, number, start, n
        cdef double held, rest, whole = 0.0
        for i in range(self.items):
            y[i] = 0.0
            whole += x[i]
        for number in range(self.lists):
            start = self.bounds[number]
            n = self.bounds[number + 1] - start
            if n == 0:
                continue
            for k in range(n):
                self.given[k] = x[self.at[start + k]]
            held = multiply_list(self.m.binary, &self.gap[start], n, 0.0, &self.given[0], &self.got[0])
            rest = whole - held if self.partial[number] else 0.0
            for k in range(n):
                y[self.at[start + k]] += self.got[k] + rest
        for k in range(self.votes):
            y[self.winner[k]] += self.strength[k] * x[self.loser[k]]

    cdef void multiply_transposed(self, const double* x, double* y) noexcept nogil:
        """y = Y' x."""
        cdef int64_t i, k, number, start, n
        cdef double held, rest, raised = 0.0
        for i in range(self.items):
            y[i] = 0.0
        for number in range(self.lists):
            start = self.bounds[number]
            n = self.bounds[number + 1] - start
            if n == 0:
                continue
            for k in range(n):
                self.given[k] = x[self.at[start + k]]
            held = multiply_list_transposed(self.m.binary, &self.gap[start], n, &self.given[0], &self.got[0])
            rest = held if self.partial[number] else 0.0
            raised += rest
            for k in range(n):
                y[self.at[start + k]] += self.got[k] - rest
        if raised != 0.0:
            for i in range(self.items):
                y[i] += raised
        for k in range(self.votes):
            y[self.loser[k]] += self.strength[k] * x[self.winner[k]]


def sum_rows_and_columns(
    int64_t first, int64_t last, const int64_t[::1] which, matrices, const int64_t[::1] offsets,
    double[::1] row, double[::1] column,
):
    """Sums of the rows and columns of every matrix."""
    cdef LoadedMatrix p = LoadedMatrix(matrices, first, last, which)
    cdef int64_t at, g, i, shift
    p.w[0, :] = 1.0
    with nogil:
        for at in range(first, last):
            g = which[at]
            p.load(g)
            shift = offsets[g] - p.m.slots[p.m.query[g]]
            p.multiply(&p.w[0, 0], &p.w[1, 0])
            for i in range(p.items):
                row[p.slot[i] + shift] = p.w[1, i]
            p.multiply_transposed(&p.w[0, 0], &p.w[1, 0])
            for i in range(p.items):
                column[p.slot[i] + shift] = p.w[1, i]


def compute_leading_vectors(
    int64_t first, int64_t last, const int64_t[::1] which, matrices, const int64_t[::1] offsets,
    double tolerance, double slow, int64_t patience, int64_t most, double[::1] u, double[::1] v,
    double[::1] sigma, int64_t[::1] iterations,
):
    """Leading singular vectors; iterations are negative where `most` were not enough."""
    cdef LoadedMatrix p = LoadedMatrix(matrices, first, last, which)
    cdef int64_t at, g, i, shift, steps, more
    cdef double length, inverse
    cdef bint done = False
    with nogil:
        for at in range(first, last):
            g = which[at]
            p.load(g)
            steps = iterate_power(p, tolerance, slow, patience, most, &done)
            if not done:
                more = iterate_conjugate(p, tolerance, most)
                steps = -steps - most if more == most else steps + more
            for i in range(p.items):
                p.w[0, i] = max(p.w[0, i], 0.0)  # noise
            p.multiply(&p.w[0, 0], &p.w[6, 0])
            length = sqrt(dot(&p.w[6, 0], &p.w[6, 0], p.items))
            inverse = 1 / length if length > 0 else 0.0
            shift = offsets[g] - p.m.slots[p.m.query[g]]
            for i in range(p.items):
                v[p.slot[i] + shift] = p.w[0, i]
                u[p.slot[i] + shift] = max(p.w[6, i] * inverse, 0.0)
            sigma[g] = length
            iterations[g] = steps


cdef int64_t iterate_power(
    LoadedMatrix p, double tolerance, double slow, int64_t patience, int64_t most, bint* done
) noexcept nogil:
    """Power iteration with Y'Y from the vector of ones; returns its steps, and whether they were enough."""
    cdef int64_t i, step
    cdef double change, before = INFINITY
    for i in range(p.items):
        p.w[0, i] = 0.0
        p.w[6, i] = 1.0
    done[0] = False
    for step in range(most + 1):
        p.multiply_transposed(&p.w[6, 0], &p.w[1, 0])
        change = replace_unit_vector(&p.w[0, 0], &p.w[1, 0], p.items)
        if change <= tolerance:
            done[0] = True
            return max(step, <int64_t>1)
        if step >= patience and not change <= slow * before:
            return step
        before = change
        p.multiply(&p.w[0, 0], &p.w[6, 0])
    return most


cdef int64_t iterate_conjugate(LoadedMatrix p, double tolerance, int64_t most) noexcept nogil:
    """Locally optimal conjugate directions, as in `podium.kernels.preference_svd`; returns the steps taken.

    Rows of `w`: the vector, its residual and the last step, the products of Y'Y with these, and a spare one.
    """
    cdef int64_t i, j, k, step, top, n = p.items
    cdef double rho
    cdef double[3][3] h
    cdef double[3][3] c
    for i in range(n):
        p.w[2, i] = p.w[5, i] = 0.0
    for step in range(most):
        p.multiply(&p.w[0, 0], &p.w[6, 0])
        p.multiply_transposed(&p.w[6, 0], &p.w[3, 0])
        rho = dot(&p.w[0, 0], &p.w[3, 0], n)
        for i in range(n):
            p.w[1, i] = p.w[3, i] - rho * p.w[0, i]
        if sqrt(dot(&p.w[1, 0], &p.w[1, 0], n)) <= tolerance * rho:
            return step
        orthogonalize_vector(p.w, 1, 0, n)
        normalize_vector(p.w, 1, n)
        p.multiply(&p.w[1, 0], &p.w[6, 0])
        p.multiply_transposed(&p.w[6, 0], &p.w[4, 0])
        orthogonalize_vector(p.w, 2, 0, n)
        orthogonalize_vector(p.w, 2, 1, n)
        normalize_vector(p.w, 2, n)
        for j in range(3):
            for k in range(3):
                h[j][k] = (dot(&p.w[j, 0], &p.w[3 + k, 0], n) + dot(&p.w[k, 0], &p.w[3 + j, 0], n)) / 2
        top = find_leading_eigenvector(h, c)
        for i in range(n):
            p.w[2, i] = c[1][top] * p.w[1, i] + c[2][top] * p.w[2, i]
            p.w[5, i] = c[1][top] * p.w[4, i] + c[2][top] * p.w[5, i]
            p.w[0, i] = c[0][top] * p.w[0, i] + p.w[2, i]
        normalize_vector(p.w, 0, n)
    return most


cdef void orthogonalize_vector(double[:, ::1] w, int64_t a, int64_t b, int64_t n) noexcept nogil:
    """Orthogonalize vector a against vector b, and its product likewise."""
    cdef int64_t i
    cdef double share = dot(&w[a, 0], &w[b, 0], n)
    for i in range(n):
        w[a, i] -= share * w[b, i]
        w[a + 3, i] -= share * w[b + 3, i]


cdef void normalize_vector(double[:, ::1] w, int64_t a, int64_t n) noexcept nogil:
    """Scale vector a and its product to length one; zero stays zero."""
    cdef int64_t i
    cdef double length = sqrt(dot(&w[a, 0], &w[a, 0], n))
    if length > 0:
        for i in range(n):
            w[a, i] /= length
            w[a + 3, i] /= length


cdef int64_t find_leading_eigenvector(double[3]* h, double[3]* c) noexcept nogil:
    """Eigenvectors of a symmetric matrix (destroyed) as columns of c, by Jacobi rotations; the leading one."""
    cdef int64_t i, j, turn, top = 0
    for i in range(3):
        for j in range(3):
            c[i][j] = 1.0 if i == j else 0.0
    for turn in range(20):
        for i in range(2):
            for j in range(i + 1, 3):
                rotate_jacobi(h, c, i, j)
    for i in range(3):
        if h[i][i] > h[top][top]:
            top = i
    if c[0][top] < 0:
        for i in range(3):
            c[i][top] *= -1.0
    return top


cdef void rotate_jacobi(double[3]* h, double[3]* c, int64_t i, int64_t j) noexcept nogil:
    """One Jacobi rotation that clears h[i][j]."""
    cdef double half, t, cosine, sine, a, b
    cdef int64_t k
    if h[i][j] == 0.0:
        return
    half = (h[j][j] - h[i][i]) / (2 * h[i][j])
    t = (1.0 if half >= 0 else -1.0) / (fabs(half) + hypot(half, 1.0))
    cosine = 1 / hypot(t, 1.0)
    sine = t * cosine
    for k in range(3):
        a = h[k][i]
        b = h[k][j]
        h[k][i] = cosine * a - sine * b
        h[k][j] = sine * a + cosine * b
    for k in range(3):
        a = h[i][k]
        b = h[j][k]
        h[i][k] = cosine * a - sine * b
        h[j][k] = sine * a + cosine * b
        a = c[k][i]
        b = c[k][j]
        c[k][i] = cosine * a - sine * b
        c[k][j] = sine * a + cosine * b
