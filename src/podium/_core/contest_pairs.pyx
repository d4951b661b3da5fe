"""Loops over the pairs of one large query, in chunks that write to separate sums.

The number of chunks depends on the number of pairs alone, so the result does not depend on the number of
threads. Inputs and sums of an item are adjacent in memory (`room`: chunk, item, column), so that a pair
touches only two locations. Column 0 is the input: scores, strengths, or the vector to be multiplied.
"""

from libc.stdint cimport int32_t, int64_t

from podium._core.contest_laws cimport DAVIDSON, PairDerivatives, Pairs, differentiate_pair, sum_pair_values


cdef class PairColumns:
    """The columns first, second, won, lost, tied and side of a query's pairs."""

    cdef const int32_t[::1] first, second
    cdef const double[::1] won, lost, tied, side

    def __cinit__(self, pairs):
        self.first, self.second, self.won, self.lost, self.tied, self.side = pairs

    cdef Pairs get_pointers(self, int64_t base):
        cdef Pairs pairs = Pairs(NULL, NULL, NULL, NULL, NULL, NULL, self.first.shape[0], base)
        if pairs.count:
            pairs.first = &self.first[0]
            pairs.second = &self.second[0]
            pairs.won = &self.won[0]
            pairs.lost = &self.lost[0]
            pairs.tied = &self.tied[0]
        if self.side.shape[0]:
            pairs.side = &self.side[0]
        return pairs


cdef void reset_chunk(double[:, ::1] here, const double[::1] given) noexcept nogil:
    """Initialize the memory of a chunk."""
    cdef Py_ssize_t i, k
    for i in range(here.shape[0]):
        here[i, 0] = given[i]
        for k in range(1, here.shape[1]):
            here[i, k] = 0.0


def compute_derivatives(
    int64_t first_chunk, int64_t last_chunk, const int64_t[::1] cuts, pairs, int64_t base, int kind,
    bint half, const double[::1] x, int64_t size, double[::1] bend, double[:, :, ::1] room,
    double[:, ::1] corner,
):
    """By pair the second derivative; by chunk and item gradient, diagonal, borders; by chunk other sums."""
    cdef PairColumns columns = PairColumns(pairs)
    cdef Pairs met = columns.get_pointers(base)
    cdef double[:, ::1] here
    cdef double e = x[size] if kind >= DAVIDSON else 0.0
    cdef double a = x[x.shape[0] - 1] if met.side != NULL else 0.0
    cdef double s, more
    cdef int64_t chunk, p, i, j
    cdef int at
    cdef PairDerivatives t
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        with nogil:
            reset_chunk(here, x)
            corner[chunk, :] = 0.0
            for p in range(cuts[chunk], cuts[chunk + 1]):
                i = met.first[p] - base
                j = met.second[p] - base
                s = met.side[p] if met.side != NULL else 0.0
                more = 0.5 * met.tied[p] if half else 0.0
                t = differentiate_pair(
                    kind, x[i] - x[j] + s * a, e, met.won[p] + more, met.lost[p] + more, met.tied[p]
                )
                bend[p] = t.dd
                here[i, 1] += t.d
                here[j, 1] += -t.d
                here[i, 2] += t.dd
                here[j, 2] += t.dd
                at = 3
                if kind >= DAVIDSON:
                    here[i, at] += t.de
                    here[j, at] += -t.de
                    corner[chunk, 0] += t.e
                    corner[chunk, 1] += t.ee
                    at += 1
                if met.side != NULL:
                    here[i, at] += s * t.dd
                    here[j, at] += -s * t.dd
                    corner[chunk, 2] += s * t.d
                    corner[chunk, 3] += s * s * t.dd
                    corner[chunk, 4] += s * t.de


def compute_logit_derivatives(
    int64_t first_chunk, int64_t last_chunk, const int64_t[::1] cuts, pairs, int64_t base, bint half,
    const double[::1] strength, double[::1] bend, double[:, :, ::1] room,
):
    """The same for the plain model from strengths exp(score): no exponentials in the loop."""
    cdef PairColumns columns = PairColumns(pairs)
    cdef Pairs met = columns.get_pointers(base)
    cdef double[:, ::1] here
    cdef double mine, other, part, up, down, w, b, more, g, h, g_sum, h_sum
    cdef int64_t chunk, p, end, i, j
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        with nogil:
            reset_chunk(here, strength)
            p = cuts[chunk]
            end = cuts[chunk + 1]
            while p < end:
                i = met.first[p]
                mine = here[i - base, 0]
                g_sum = h_sum = 0.0
                while p < end and met.first[p] == i:  # all pairs of one item, its sums in registers
                    j = met.second[p] - base
                    more = 0.5 * met.tied[p] if half else 0.0
                    w = met.won[p] + more
                    b = met.lost[p] + more
                    other = here[j, 0]
                    part = 1.0 / (mine + other)
                    up = mine * part
                    down = other * part
                    g = b * up - w * down
                    h = (w + b) * up * down
                    bend[p] = h
                    g_sum += g
                    h_sum += h
                    here[j, 1] -= g
                    here[j, 2] += h
                    p += 1
                here[i - base, 1] += g_sum
                here[i - base, 2] += h_sum


def multiply_hessian(
    int64_t first_chunk, int64_t last_chunk, const int64_t[::1] cuts, const int32_t[::1] first,
    const int32_t[::1] second, int64_t base, const double[::1] bend, const double[::1] v,
    double[:, :, ::1] room,
):
    """The Hessian (pairs only) times v, by chunk."""
    cdef double[:, ::1] here
    cdef double mine, total, t
    cdef int64_t chunk, p, end, i, j
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        with nogil:
            reset_chunk(here, v)
            p = cuts[chunk]
            end = cuts[chunk + 1]
            while p < end:
                i = first[p]
                mine = here[i - base, 0]
                total = 0.0
                while p < end and first[p] == i:
                    j = second[p] - base
                    t = bend[p] * (mine - here[j, 0])
                    total += t
                    here[j, 1] -= t
                    p += 1
                here[i - base, 1] += total


def compute_values(
    int64_t first_chunk, int64_t last_chunk, const int64_t[::1] cuts, pairs, int64_t base, int kind,
    bint half, const double[::1] x, double width, double advantage, double[::1] out,
):
    """The negative log likelihood, by chunk."""
    cdef PairColumns columns = PairColumns(pairs)
    cdef Pairs met = columns.get_pointers(base)
    cdef int64_t chunk
    with nogil:
        for chunk in range(first_chunk, last_chunk):
            out[chunk] = sum_pair_values(
                &met, cuts[chunk], cuts[chunk + 1], kind, half, &x[0], width, advantage
            )
