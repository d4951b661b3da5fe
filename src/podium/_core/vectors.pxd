"""Vectors: sums of products whose terms are added in four interleaved sums, in one stated order.

One running sum would wait for every addition; four are also the order in which wider registers add, so that
all instruction sets give the same bits.
"""


cdef inline double dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    """Sum of the first n products."""
    cdef double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        i += 4
    s0 = (s0 + s1) + (s2 + s3)
    while i < n:
        s0 += a[i] * b[i]
        i += 1
    return s0


cdef inline double dot_long(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    """Sum of the first n products in eight interleaved sums: faster from about 100 products on."""
    cdef double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, s4 = 0.0, s5 = 0.0, s6 = 0.0, s7 = 0.0
    cdef Py_ssize_t i = 0
    while i + 8 <= n:
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
        i += 8
    s0 = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    while i < n:
        s0 += a[i] * b[i]
        i += 1
    return s0


cdef inline double find_largest_magnitude(const double* values, Py_ssize_t n) noexcept nogil:
    """The largest magnitude."""
    cdef double most = 0.0, v
    cdef Py_ssize_t i
    for i in range(n):
        v = values[i] if values[i] >= 0 else -values[i]
        most = v if v > most else most
    return most
