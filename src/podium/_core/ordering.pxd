"""Sorting of scores, for kernels that order what they computed themselves."""

from libc.stdint cimport int32_t, uint8_t, uint64_t

cdef enum:
    FEW = 4  # scores up to which insertion alone is faster
    SHORT = 64  # scores up to which one pass over an ample table is faster than two passes
    DIGIT_BITS = 11  # of a digit, at most: its counters stay in the cache
    MOVES = 2  # moves per score after which insertion gives up


cdef inline bint mark_ties(
    const double* value, Py_ssize_t n, double floor, double tolerance, uint8_t* joined
) noexcept nogil:
    """Mark positions tied with the one before, of `n` falling values; see `podium.kernels.ordering`.

    Returns whether tied values differ. `joined` has room for n + 1 marks, the last one never set. The loop has no
    branches, so that several values are compared at once.
    """
    cdef double above, here, bound, least = tolerance * floor
    cdef bint tied, unequal = False
    cdef Py_ssize_t i
    joined[0] = joined[n] = False
    for i in range(1, n):
        above = value[i - 1]
        here = value[i]
        # in this order a bound that is not a number does not replace another one
        bound = tolerance * above
        bound = least if least > bound else bound
        bound = tolerance * -here if tolerance * -here > bound else bound
        tied = above - here <= bound
        joined[i] = tied
        unequal |= tied & (above != here)
    return unequal


cdef struct SortRoom:
    # sorted scores and their positions, and room for sorting; as long as the longest query
    double* value
    int32_t* place
    uint64_t* key  # the first bits of the scores
    uint64_t* half  # sorted by the lower digit: the higher digit and the position
    int32_t* spare_item


cdef double sort_scores(const double* scores, Py_ssize_t n, const SortRoom* room) noexcept nogil
