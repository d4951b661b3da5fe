"""The votes of all queries, and the matrix of one of them, for kernels that compare pairs of items."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef class VoteColumns:
    cdef const int64_t[::1] slots, query_starts, starts, vote_starts
    cdef const int32_t[::1] item, rank, winner, loser
    cdef const double[::1] list_weight, vote_weight
    cdef const uint8_t[::1] tie
    cdef bint below


cdef int64_t find_largest_query(VoteColumns votes, int64_t first, int64_t last) noexcept nogil
cdef void fill_vote_matrix(VoteColumns votes, int64_t q, double* table, double* spare) noexcept nogil
cdef void add_comparisons(VoteColumns votes, int64_t q, double* table, int64_t size) noexcept nogil
cdef void subtract_transpose(double* table, int64_t size) noexcept nogil
