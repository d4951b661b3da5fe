"""Products with the pairwise matrix of one list, by walks along it, and unit vectors."""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t

from podium._core.vectors cimport dot


cdef class MatrixColumns:
    cdef const int64_t[::1] slots, query, list_starts, starts, vote_starts
    cdef const int32_t[::1] item, winner, loser
    cdef const double[::1] value, strength
    cdef bint binary, below


cdef inline void compute_gaps(bint binary, const double* value, int64_t n, double* gap) noexcept nogil:
    """Steps between the values of a list's rows; for binary strengths, 1 where the value rises."""
    cdef int64_t k
    cdef double rise
    for k in range(n):
        rise = value[k] - value[k - 1] if k > 0 else 0.0
        gap[k] = (1.0 if rise > 0 else 0.0) if binary else rise


cdef inline double multiply_list(
    bint binary, const double* gap, int64_t n, double rest, const double* x, double* y
) noexcept nogil:
    """Wins of each row of a list: y = Y x, plus `rest`; returns the sum of x."""
    cdef int64_t k
    cdef double later = 0.0, got = rest
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


cdef inline double multiply_list_transposed(
    bint binary, const double* gap, int64_t n, const double* x, double* y
) noexcept nogil:
    """Losses of each row of a list: y = Y' x; returns the sum of x."""
    cdef int64_t k
    cdef double earlier = 0.0, got = 0.0
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


cdef inline double replace_unit_vector(double* x, const double* new, int64_t n) noexcept nogil:
    """Replace the old vector by a new one, normalized; returns their distance, 0 for a zero vector."""
    cdef double factor, scaled, d, s0 = 0.0, s1 = 0.0, length = sqrt(dot(new, new, n))
    cdef int64_t i
    if length == 0.0:
        return 0.0
    factor = 1 / length
    # two sums, so that one addition need not wait for the other
    for i in range(n):
        scaled = new[i] * factor
        d = scaled - x[i]
        if i & 1:
            s1 += d * d
        else:
            s0 += d * d
        x[i] = scaled
    return sqrt(s0 + s1)
