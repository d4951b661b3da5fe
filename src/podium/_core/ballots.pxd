"""The lists, unlisted blocks and comparisons of a query as one table."""

from libc.stdint cimport int64_t, uint8_t

from podium._core.pairwise_votes cimport VoteColumns

cdef enum:
    LAST = 2147483647  # rank of the block of unlisted items


cdef class BallotTable:
    cdef VoteColumns votes
    cdef int64_t[::1] starts, item, rank
    cdef double[::1] weight
    cdef uint8_t[::1] listed
    cdef int64_t count  # lists
    cdef int64_t rows
    cdef void fill(self, int64_t q) noexcept nogil
    cdef void add_list_of_all(self, int64_t size, double weight) noexcept nogil
