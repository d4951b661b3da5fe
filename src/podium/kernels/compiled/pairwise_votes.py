"""The pairwise vote matrix of one query, by plain loops."""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 32  # cells per side: two such tiles of a matrix stay in the L1 cache


@njit(cache=True, nogil=True)
def allocate_matrix(votes, first, last):
    """Memory for the matrix of the largest query in a range."""
    size = 0
    for q in range(first, last):
        size = max(size, votes.slots[q + 1] - votes.slots[q])
    return np.empty(size * size)


@njit(cache=True, nogil=True)
def compute_vote_matrix(votes, q, room):
    """W of query q: the weight of the votes that put the row item above the column item."""
    base = votes.slots[q]
    size = votes.slots[q + 1] - base
    table = room[: size * size].reshape(size, size)
    table[:] = 0.0
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        add_list(table, votes, base, votes.starts[lst], votes.starts[lst + 1], votes.list_weight[lst])
    add_comparisons(table, votes, q)
    return table


@njit(cache=True, nogil=True)
def add_comparisons(table, votes, q):
    """Every winner of a single comparison beats its loser."""
    base = votes.slots[q]
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if not votes.tie[v]:
            table[votes.winner[v] - base, votes.loser[v] - base] += votes.vote_weight[v]


@njit(cache=True, nogil=True)
def add_list(table, votes, base, start, stop, weight):
    """Every item of a list beats those at later ranks (and unlisted ones, if they are below)."""
    item, rank = votes.item, votes.rank
    under = start
    for a in range(start, stop):
        if under <= a:
            under = a + 1
            while under < stop and rank[under] == rank[a]:
                under += 1
        row = table[item[a] - base]
        for b in range(under, stop):
            row[item[b] - base] += weight
    if votes.below:
        unlisted = np.ones(len(table))
        for a in range(start, stop):
            unlisted[item[a] - base] = 0.0
        for a in range(start, stop):
            row = table[item[a] - base]
            for j in range(len(row)):
                row[j] += weight * unlisted[j]


@njit(cache=True, nogil=True)
def compute_margins(table):
    """W -> W - W' in place, tile by tile."""
    size = len(table)
    for top in range(0, size, BLOCK):
        for left in range(top, size, BLOCK):
            for i in range(top, min(top + BLOCK, size)):
                for j in range(max(left, i), min(left + BLOCK, size)):
                    margin = table[i, j] - table[j, i]
                    table[i, j] = margin
                    table[j, i] = -margin
    return table
