"""Sums over all pairs of a smooth function of their difference, by Chebyshev series on cells of one unit."""

from libc.math cimport copysign, exp, fabs, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

cdef enum:
    DIRECT = 10  # multiplications that take as long as one evaluation of the function


cdef inline double of_difference(int kind, double d) noexcept nogil:
    """The function itself."""
    cdef double z = exp(-fabs(d))
    if kind == HALF_TANH:
        return copysign((1.0 - z) / (1.0 + z), d) / 2.0
    if kind == LOGISTIC_SLOPE:
        return z / ((1.0 + z) * (1.0 + z))
    return fabs(d) + 2.0 * log1p(z)


cdef class SeriesRoom:
    """The tables of a function, and memory for moments and coefficients, which grows with the range of points."""

    def __cinit__(self, near):
        self.near = near
        self.moment = self.local = NULL
        self.capacity = 0

    def __dealloc__(self):
        free(self.moment)
        free(self.local)

    cdef void reserve(self, int64_t cells) noexcept nogil:
        """Zeros for this many cells."""
        cdef size_t size = cells * self.near.shape[1] * sizeof(double)
        if cells > self.capacity:
            free(self.moment)
            free(self.local)
            self.moment = <double*>malloc(size)
            self.local = <double*>malloc(size)
            self.capacity = cells
        memset(self.moment, 0, size)
        memset(self.local, 0, size)


cdef inline int64_t find_cell(double x, int64_t cells, double* t) noexcept nogil:
    """The cell of a point; t becomes its position in the cell, from -1 to 1."""
    cdef int64_t cell = min(<int64_t>x, cells - 1)
    t[0] = 2.0 * (x - cell) - 1.0
    return cell


cdef void add_sums(
    int kind, SeriesRoom room, const double* source, const double* mass, int64_t sources,
    const double* target, const double* scale, int64_t targets, double* out,
) noexcept nogil:
    """Add scale[i] * sum over j of mass[j] f(target[i] - source[j]) to out[i]."""
    cdef int64_t i, j, m, cell, cells, by_cells, terms = room.near.shape[1]
    cdef double low, high, total, before, now, next, t = 0.0
    if sources == 0 or targets == 0:
        return
    low = high = source[0]
    for j in range(sources):
        low = min(low, source[j])
        high = max(high, source[j])
    for i in range(targets):
        low = min(low, target[i])
        high = max(high, target[i])
    cells = <int64_t>(high - low) + 1
    by_cells = min(cells, sources) * min(cells, <int64_t>room.near.shape[0]) * terms * terms
    by_cells += 2 * terms * (sources + targets)
    # for few points the double loop is cheaper than the series
    if DIRECT * sources * targets <= by_cells:
        for i in range(targets):
            total = 0.0
            for j in range(sources):
                total += mass[j] * of_difference(kind, target[i] - source[j])
            out[i] += scale[i] * total
        return
    room.reserve(cells)
    for j in range(sources):
        cell = find_cell(source[j] - low, cells, &t)
        before = t
        now = 1.0
        for m in range(terms):
            room.moment[cell * terms + m] += mass[j] * now
            next = 2.0 * t * now - before
            before = now
            now = next
    compute_series(kind, room, cells)
    for i in range(targets):
        cell = find_cell(target[i] - low, cells, &t)
        before = t
        now = 1.0
        total = 0.0
        for m in range(terms):
            total += room.local[cell * terms + m] * now
            next = 2.0 * t * now - before
            before = now
            now = next
        out[i] += scale[i] * total


cdef void compute_series(int kind, SeriesRoom room, int64_t cells) noexcept nogil:
    """Chebyshev coefficients by cell of the targets, from the moments of the sources by cell."""
    cdef int64_t a, b, k, m, terms = room.near.shape[1], reach = room.near.shape[0] // 2
    cdef double total
    cdef bint full
    for b in range(cells):
        full = False
        for m in range(terms):
            full |= room.moment[b * terms + m] != 0.0
        if not full:
            continue
        for a in range(max(<int64_t>0, b - reach), min(cells, b + reach + 1)):
            for k in range(terms):
                total = 0.0
                for m in range(terms):
                    total += room.near[a - b + reach, k, m] * room.moment[b * terms + m]
                room.local[a * terms + k] += total
    if kind != LOGISTIC_SLOPE and cells > reach:
        add_far_cells(kind, reach, cells, terms, room.moment, room.local)


cdef void add_far_cells(
    int kind, int64_t reach, int64_t cells, int64_t terms, const double* moment, double* local
) noexcept nogil:
    """Sources further away than `reach` cells: there f is 1/2 or -1/2, or the distance."""
    cdef int64_t n, a, b
    cdef int sign
    cdef double mass, first
    for sign in range(1, -2, -2):
        mass = first = 0.0
        for n in range(reach + 1, cells):
            b = n - reach - 1 if sign > 0 else cells - n + reach
            a = n if sign > 0 else cells - 1 - n
            mass += moment[b * terms]
            first += (b + 0.5) * moment[b * terms] + 0.5 * moment[b * terms + 1]
            if kind == HALF_TANH:
                local[a * terms] += sign * mass / 2.0
            else:
                local[a * terms] += sign * ((a + 0.5) * mass - first)
                local[a * terms + 1] += sign * 0.5 * mass


def sums(
    int kind, near, const double[::1] source, const double[::1] mass, const double[::1] target,
    const double[::1] scale, double[::1] out,
):
    """Add scale[i] * sum over j of mass[j] f(target[i] - source[j]) to out[i]."""
    cdef SeriesRoom room = SeriesRoom(near)
    if source.shape[0] and target.shape[0]:
        with nogil:
            add_sums(
                kind, room, &source[0], &mass[0], source.shape[0], &target[0], &scale[0], target.shape[0], &out[0]
            )


def within_sets(
    int kind, near, const int64_t[::1] starts, const int64_t[::1] item, const double[::1] weight,
    const double[::1] x, const double[::1] mass, double[::1] out,
):
    """For every set: add its weight times the sums over all pairs of its items (including i = j)."""
    cdef SeriesRoom room = SeriesRoom(near)
    cdef int64_t s, k, n, most = max(1, int(np.diff(starts).max(initial=0)))
    cdef double[::1] here = np.empty(most), masses = np.empty(most), scale = np.empty(most)
    cdef double[::1] total = np.empty(most)
    with nogil:
        for s in range(starts.shape[0] - 1):
            n = starts[s + 1] - starts[s]
            for k in range(n):
                here[k] = x[item[starts[s] + k]]
                masses[k] = mass[item[starts[s] + k]]
                scale[k] = weight[s]
                total[k] = 0.0
            add_sums(kind, room, &here[0], &masses[0], n, &here[0], &scale[0], n, &total[0])
            for k in range(n):
                out[item[starts[s] + k]] += total[k]
