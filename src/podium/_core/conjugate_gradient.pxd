"""Shared parts of Newton steps by conjugate gradients: the vectors of a solve, and the step length.

Sums run in the order of the items, one after the other.
"""

from libc.math cimport fabs

cdef enum:
    LONGEST = 4  # as in `podium.kernels.newton`: largest change of a score in one step


cdef inline double dot_in_order(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    """Sum of products."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += a[i] * b[i]
    return total


cdef inline double start_direction(
    const double* diagonal, const double* r, double* p, Py_ssize_t n
) noexcept nogil:
    """The first direction; returns the residual's norm in the metric of the diagonal."""
    cdef double rho = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        p[i] = r[i] / diagonal[i] if diagonal[i] > 0 else 0.0
        rho += r[i] * p[i]
    return rho


cdef inline double advance_solution(
    const double* diagonal, double* x, double* r, double* p, const double* image, double rho, Py_ssize_t n
) noexcept nogil:
    """One step along p, whose product with the matrix is `image`; the new residual norm, 0 when done."""
    cdef double step, new = 0.0, bend = dot_in_order(p, image, n)
    cdef Py_ssize_t i
    if bend <= 0:  # no curvature is left in this direction
        return 0.0
    step = rho / bend
    for i in range(n):
        x[i] += step * p[i]
        r[i] -= step * image[i]
        if diagonal[i] > 0:
            new += r[i] * r[i] / diagonal[i]
    for i in range(n):
        p[i] = (r[i] / diagonal[i] if diagonal[i] > 0 else 0.0) + new / rho * p[i]
    return new


cdef inline void center_vector(double* x, Py_ssize_t n) noexcept nogil:
    """Shift to mean 0."""
    cdef double mean = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        mean += x[i]
    mean /= n
    for i in range(n):
        x[i] -= mean


cdef inline double limit_step(const double* move, Py_ssize_t n) noexcept nogil:
    """The fraction of a step that moves no score too far."""
    cdef double most = 1e-300
    cdef Py_ssize_t i
    for i in range(n):
        most = max(most, fabs(move[i]))
    return min(1.0, LONGEST / most)


cdef inline bint is_step_accepted(double before, double after, double promise) noexcept nogil:
    """Whether a step with this predicted gain increased the value enough, or is too small to check."""
    # 1e-9: steps with a smaller predicted relative gain are not checked, as rounding would decide
    return promise <= 1e-9 * max(fabs(before), 1.0) or after >= before + 1e-4 * promise
