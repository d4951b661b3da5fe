"""Steps of the optimizer of linear models."""

from libc.math cimport pow, sqrt
from libc.stdint cimport int64_t

cdef struct Optimizer:
    # its state, which steps change in place, and its settings
    double* weights
    double* mean
    double* square
    int64_t* steps
    Py_ssize_t width
    bint adam
    double rate
    double l2
    bint positive
    const double* towards


cdef inline void update_weights(Optimizer* o, double* gradient, int64_t count) noexcept nogil:
    """One step against the mean of `count` gradients, plain or by Adam; the gradient starts again from 0."""
    cdef Py_ssize_t c
    cdef double g, grown_mean, grown_square
    o.steps[0] += 1
    grown_mean = 1.0 - pow(0.9, <double>o.steps[0])
    grown_square = 1.0 - pow(0.999, <double>o.steps[0])
    for c in range(o.width):
        g = gradient[c] / count + o.l2 * (o.weights[c] - o.towards[c])
        if o.adam:
            o.mean[c] += 0.1 * (g - o.mean[c])
            o.square[c] += 0.001 * (g * g - o.square[c])
            o.weights[c] -= o.rate * (o.mean[c] / grown_mean) / (sqrt(o.square[c] / grown_square) + 1e-8)
        else:
            o.weights[c] -= o.rate * g
        if o.positive and o.weights[c] < 0.0:
            o.weights[c] = 0.0
        gradient[c] = 0.0
