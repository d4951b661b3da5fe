"""Normalization of columns within each group, for a range of groups."""

from libc.math cimport fabs, ldexp, sqrt
from libc.stdint cimport int64_t

import numpy as np

cdef extern from *:
    # arrays that do not overlap: without this promise the compiler does not vectorize loops over several of them
    ctypedef double* apart "double *__restrict"
    ctypedef const double* const_apart "const double *__restrict"


def standardize_by_group(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[:, ::1] values,
    const int64_t[::1] shift, bint by_range, double[:, ::1] out,
):
    """See `podium.kernels.standardize_columns`; rows are visited in memory order."""
    cdef int64_t g, i, c, width = values.shape[1]
    cdef double spread
    cdef double[::1] unit = np.empty(width), mean = np.empty(width), count = np.empty(width)
    cdef double[::1] largest = np.empty(width), low = np.empty(width), high = np.empty(width)
    cdef double[::1] square = np.empty(width)
    if width == 0:
        return
    with nogil:
        for c in range(width):
            unit[c] = ldexp(1.0, <int>shift[c])
        for g in range(first, last):
            for c in range(width):
                mean[c] = count[c] = largest[c] = low[c] = high[c] = square[c] = 0.0
            for i in range(starts[g], starts[g + 1]):
                add_row(&values[i, 0], width, &unit[0], &mean[0], &count[0], &largest[0])
            for c in range(width):
                mean[c] /= max(count[c], 1.0)
            for i in range(starts[g], starts[g + 1]):
                center_row(&values[i, 0], width, &unit[0], &mean[0], &out[i, 0], &low[0], &high[0], &square[0])
            for c in range(width):
                spread = high[c] - low[c] if by_range else sqrt(square[c] / max(count[c], 1.0))
                # 1e-9: a column that varies by less is constant except for rounding
                low[c] = 1.0 / spread if spread > 1e-9 * largest[c] else 0.0
            for i in range(starts[g], starts[g + 1]):
                for c in range(width):
                    out[i, c] *= low[c]


cdef void add_row(
    const_apart row, int64_t width, const_apart unit, apart total, apart count, apart largest
) noexcept nogil:
    """Add the numbers of a row to sums and counts, and find the largest magnitudes; NaN is skipped."""
    cdef int64_t c
    cdef double x
    for c in range(width):
        x = row[c] * unit[c]
        count[c] += 1.0 if x == x else 0.0
        x = x if x == x else 0.0
        total[c] += x
        x = fabs(x)
        largest[c] = x if x > largest[c] else largest[c]


cdef void center_row(
    const_apart row, int64_t width, const_apart unit, const_apart mean, apart out, apart low, apart high,
    apart square,
) noexcept nogil:
    """Write a row minus the means, 0 for NaN, and update the extremes and sums of squares."""
    cdef int64_t c
    cdef double x, off
    for c in range(width):
        x = row[c] * unit[c]
        off = x - mean[c] if x == x else 0.0
        out[c] = off
        low[c] = off if off < low[c] else low[c]
        high[c] = off if off > high[c] else high[c]
        square[c] += off * off
