"""The pairwise vote matrix of one query, by plain loops.

A matrix is a block of size * size numbers; cell (i, j) is at i * size + j.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef enum:
    TILE = 32  # cells per side: two such tiles of a matrix stay in the L1 cache


cdef class VoteColumns:
    """The columns of `podium.kernels.pairwise_votes.Votes`."""

    def __cinit__(self, votes):
        self.slots, self.query_starts, self.starts = votes.slots, votes.query_starts, votes.starts
        self.item, self.rank, self.list_weight = votes.item, votes.rank, votes.list_weight
        self.vote_starts, self.winner, self.loser = votes.vote_starts, votes.winner, votes.loser
        self.tie, self.vote_weight, self.below = votes.tie, votes.vote_weight, votes.below


cdef int64_t find_largest_query(VoteColumns votes, int64_t first, int64_t last) noexcept nogil:
    """The number of items of the largest query in a range."""
    cdef int64_t q, size = 0
    for q in range(first, last):
        size = max(size, votes.slots[q + 1] - votes.slots[q])
    return size


def compute_vote_matrix(votes, int64_t q):
    """W of query q, for methods that continue in Python."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t size = columns.slots[q + 1] - columns.slots[q]
    cdef double[:, ::1] table = np.empty((size, size))
    cdef double[::1] spare = np.empty(size)
    if size:
        with nogil:
            fill_vote_matrix(columns, q, &table[0, 0], &spare[0])
    return np.asarray(table)


cdef void fill_vote_matrix(VoteColumns votes, int64_t q, double* table, double* spare) noexcept nogil:
    """W of query q: the weight of the votes that put the row item above the column item.

    `spare` has room for a row.
    """
    cdef int64_t lst, i, base = votes.slots[q]
    cdef int64_t size = votes.slots[q + 1] - base
    for i in range(size * size):
        table[i] = 0.0
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        add_list(votes, lst, base, table, size, spare)
    add_comparisons(votes, q, table, size)


cdef void add_comparisons(VoteColumns votes, int64_t q, double* table, int64_t size) noexcept nogil:
    """Every winner of a single comparison beats its loser."""
    cdef int64_t v, base = votes.slots[q]
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if not votes.tie[v]:
            table[(votes.winner[v] - base) * size + votes.loser[v] - base] += votes.vote_weight[v]


cdef void add_list(
    VoteColumns votes, int64_t lst, int64_t base, double* table, int64_t size, double* unlisted
) noexcept nogil:
    """Every item of a list beats those at later ranks (and unlisted ones, if they are below)."""
    cdef int64_t a, b, j, start = votes.starts[lst], stop = votes.starts[lst + 1]
    cdef int64_t under = start
    cdef double weight = votes.list_weight[lst]
    cdef double* row
    for a in range(start, stop):
        if under <= a:
            under = a + 1
            while under < stop and votes.rank[under] == votes.rank[a]:
                under += 1
        row = table + (votes.item[a] - base) * size
        for b in range(under, stop):
            row[votes.item[b] - base] += weight
    if not votes.below:
        return
    for j in range(size):
        unlisted[j] = weight
    for a in range(start, stop):
        unlisted[votes.item[a] - base] = 0.0
    for a in range(start, stop):
        row = table + (votes.item[a] - base) * size
        for j in range(size):
            row[j] += unlisted[j]


cdef void subtract_transpose(double* table, int64_t size) noexcept nogil:
    """W -> W - W' in place, tile by tile."""
    cdef int64_t top, left, i, j
    cdef double margin
    for top in range(0, size, 32):  # a literal, as Cython compiles a loop with a named step as an iterator
        for left in range(top, size, 32):
            for i in range(top, min(top + TILE, size)):
                for j in range(max(left, i), min(left + TILE, size)):
                    margin = table[i * size + j] - table[j * size + i]
                    table[i * size + j] = margin
                    table[j * size + i] = -margin
