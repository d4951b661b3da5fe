"""The lists, unlisted blocks and comparisons of a query as one table."""

from libc.stdint cimport int64_t

import numpy as np

from podium._core.pairwise_votes cimport VoteColumns


cdef class BallotTable:
    """Ballots of one query after the other: list l has the rows starts[l] .. starts[l + 1]; no weight is 0."""

    def __cinit__(self, votes, int64_t first, int64_t last):
        cdef VoteColumns columns = VoteColumns(votes)
        cdef int64_t q, lists, size, rows, count, most_rows = 0, most_lists = 0, most = 0
        for q in range(first, last):
            size = columns.slots[q + 1] - columns.slots[q]
            lists = columns.query_starts[q + 1] - columns.query_starts[q]
            count = columns.vote_starts[q + 1] - columns.vote_starts[q]
            if columns.below:
                rows = lists * size
            else:
                rows = columns.starts[columns.query_starts[q + 1]] - columns.starts[columns.query_starts[q]]
            most_rows = max(most_rows, rows + 2 * count + size)
            most_lists = max(most_lists, lists + count + 1)
            most = max(most, size)
        self.votes = columns
        self.starts, self.weight = np.zeros(most_lists + 1, np.int64), np.empty(most_lists)
        self.item, self.rank = np.empty(most_rows, np.int64), np.empty(most_rows, np.int64)
        self.listed = np.empty(most, np.uint8)

    cdef void fill(self, int64_t q) noexcept nogil:
        """The ballots of query q."""
        cdef int64_t lst, row, i, v, n = 0, at = 0
        cdef int64_t base = self.votes.slots[q], size = self.votes.slots[q + 1] - self.votes.slots[q]
        for lst in range(self.votes.query_starts[q], self.votes.query_starts[q + 1]):
            if self.votes.list_weight[lst] == 0 or self.votes.starts[lst] == self.votes.starts[lst + 1]:
                continue
            for i in range(size):
                self.listed[i] = False
            for row in range(self.votes.starts[lst], self.votes.starts[lst + 1]):
                self.item[at] = self.votes.item[row] - base
                self.rank[at] = self.votes.rank[row]
                self.listed[self.votes.item[row] - base] = True
                at += 1
            if self.votes.below:
                for i in range(size):
                    if not self.listed[i]:
                        self.item[at] = i
                        self.rank[at] = LAST
                        at += 1
            self.weight[n] = self.votes.list_weight[lst]
            n += 1
            self.starts[n] = at
        for v in range(self.votes.vote_starts[q], self.votes.vote_starts[q + 1]):
            if self.votes.vote_weight[v] == 0:
                continue
            self.item[at] = self.votes.winner[v] - base
            self.item[at + 1] = self.votes.loser[v] - base
            self.rank[at] = 1
            self.rank[at + 1] = 1 if self.votes.tie[v] else 2
            self.weight[n] = self.votes.vote_weight[v]
            n += 1
            at += 2
            self.starts[n] = at
        self.count = n
        self.rows = at

    cdef void add_list_of_all(self, int64_t size, double weight) noexcept nogil:
        """Append a list that ties all items."""
        cdef int64_t i
        for i in range(size):
            self.item[self.rows + i] = i
            self.rank[self.rows + i] = 1
        self.weight[self.count] = weight
        self.count += 1
        self.rows += size
        self.starts[self.count] = self.rows


def build_ballots(votes, int64_t q):
    """Starts, items, ranks and weights of the ballots of query q."""
    cdef BallotTable table = BallotTable(votes, q, q + 1)
    table.fill(q)
    columns = (table.starts[: table.count + 1], table.item[: table.rows], table.rank[: table.rows])
    return *map(np.asarray, columns), np.asarray(table.weight[: table.count])
