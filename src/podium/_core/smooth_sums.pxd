"""Sums over all pairs of a smooth function of their difference."""

from libc.stdint cimport int64_t

cdef enum:
    HALF_TANH = 0
    LOGISTIC_SLOPE = 1
    LOG_COSH = 2


cdef class SeriesRoom:
    cdef double[:, :, ::1] near  # by distance in cells: the matrix from moments to coefficients
    cdef double* moment
    cdef double* local
    cdef int64_t capacity
    cdef void reserve(self, int64_t cells) noexcept nogil


cdef void add_sums(
    int kind, SeriesRoom room, const double* source, const double* mass, int64_t sources,
    const double* target, const double* scale, int64_t targets, double* out,
) noexcept nogil
