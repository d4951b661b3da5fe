"""Sorting of scores, for kernels that order what they computed themselves."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    FEW = 4  # scores up to which insertion alone is faster
    SHORT = 64  # scores up to which one pass over an ample table is faster than two passes
    DIGIT_BITS = 11  # of a digit, at most: its counters stay in the cache
    MOVES = 2  # moves per score after which insertion gives up


cdef inline bint is_tied(double above, double here, double floor, double tolerance) noexcept nogil:
    """Whether two neighbors are tied; see `podium.kernels.ordering`. Without branches, so without mispredictions."""
    cdef double step = above - here
    return (step <= tolerance * above) | (step <= tolerance * floor) | (step <= tolerance * -here)


cdef struct SortRoom:
    # sorted scores and their positions, and room for sorting; as long as the longest query
    double* value
    int32_t* place
    uint64_t* key  # the first bits of the scores
    uint64_t* half  # sorted by the lower digit: the higher digit and the position
    int32_t* spare_item


cdef double sort_scores(const double* scores, Py_ssize_t n, const SortRoom* room) noexcept nogil
