"""Merge sort by majority, without the matrix of all pairs where that is cheaper.

A sort uses about M log M of the M^2 pairs. The votes of lists on one pair follow from the two items' ranks in
every list, so they are counted on demand; the matrix is filled only where there are many short lists on many
items, or for single comparisons.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.ordering import merge_sort
from podium.kernels.compiled.pairwise_votes import add_comparisons, allocate_matrix, compute_vote_matrix

FEW = 16  # items sorted by insertion, without allocating arrays


@njit(cache=True, nogil=True)
def condorcet(first, last, votes, scores):
    """Merge sort by majority, from the order of net votes; items without votes start, and so stay, last."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        size = votes.slots[q + 1] - votes.slots[q]
        if size == 0:
            continue
        ranks, weight, table = build_vote_sources(votes, q, room)
        won, lost = sum_won_and_lost(table, size)
        if len(weight):
            add_list_votes(votes, q, won, lost)
        key, order = np.empty(size), np.empty(size, np.int32)
        for i in range(size):
            key[i], order[i] = won[i] - lost[i] if won[i] + lost[i] > 0 else -np.inf, i
        cuts = np.zeros(size + 1, np.bool_)
        cuts[0] = cuts[size] = True
        split_by_key(order, 0, size, key, cuts)
        refine_blocks(ranks, weight, table, order, key, cuts)
        blocks = sort_blocks(ranks, weight, table, order, cuts)
        score_blocks(blocks, order, scores[votes.slots[q] : votes.slots[q + 1]])


@njit(cache=True, nogil=True)
def build_vote_sources(votes, q, room):
    """Sources of the votes on a pair: ranks of the lists by item, and a matrix (empty if not needed)."""
    base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
    begin, end = votes.query_starts[q], votes.query_starts[q + 1]
    cells = size * size
    for lst in range(begin, end):
        length = votes.starts[lst + 1] - votes.starts[lst]
        cells += length * (2 * size if votes.below else length) // 2
    if cells < (end - begin) * size * (np.log2(size) + 2):
        return np.empty((size, 0)), np.empty(0), compute_vote_matrix(votes, q, room)
    # a missing rank is infinite, or not comparable to any other
    ranks = np.full((size, end - begin), np.inf if votes.below else np.nan)
    for lst in range(begin, end):
        for row in range(votes.starts[lst], votes.starts[lst + 1]):
            ranks[votes.item[row] - base, lst - begin] = votes.rank[row]
    table = room[:0].reshape(0, 0)
    if votes.vote_starts[q] < votes.vote_starts[q + 1]:
        table = room[: size * size].reshape(size, size)
        table[:] = 0.0
        add_comparisons(table, votes, q)
    return ranks, votes.list_weight[begin:end], table


@njit(cache=True, nogil=True, inline="always")
def compute_lead(ranks, weight, table, i, j):
    """Votes by which item i leads item j; branch-free, as the branches would be unpredictable."""
    total = 0.0
    a, b = np.uint64(i), np.uint64(j)
    for k in range(np.uint64(len(weight))):
        total += weight[k] * (np.float64(ranks[a, k] < ranks[b, k]) - np.float64(ranks[a, k] > ranks[b, k]))
    if len(table):
        total += table[i, j] - table[j, i]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def sum_won_and_lost(table, size):
    """Sums of rows and columns; of integers, so their order does not matter."""
    won, lost = np.zeros(size), np.zeros(size)
    for i in range(len(table)):
        total = 0.0
        for j in range(len(table)):
            total += table[i, j]
            lost[j] += table[i, j]
        won[i] = total
    return won, lost


@njit(cache=True, nogil=True)
def add_list_votes(votes, q, won, lost):
    """Pairs won and lost in lists, from the places of their items."""
    base, size = votes.slots[q], len(won)
    everywhere = 0.0  # losses of an item that no list holds
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start, stop, w = votes.starts[lst], votes.starts[lst + 1], votes.list_weight[lst]
        outside = size - (stop - start) if votes.below else 0
        everywhere += w * (stop - start)
        a = start
        while a < stop:
            b = a + 1
            while b < stop and votes.rank[b] == votes.rank[a]:
                b += 1
            for row in range(a, b):
                i = votes.item[row] - base
                won[i] += w * (stop - b + outside)
                lost[i] += w * (a - start)
                if votes.below:
                    lost[i] -= w * (stop - start)
            a = b
    if votes.below:
        for i in range(size):
            lost[i] += everywhere


@njit(cache=True, nogil=True)
def split_by_key(order, start, stop, key, cuts):
    """Sort a range by falling key and cut it where the key changes; returns whether it was cut."""
    here = order[start:stop]
    if stop - start > FEW:
        falling = np.empty(stop - start)
        for i in range(stop - start):
            falling[i] = -key[here[i]]
        merge_sort(falling, here)
    else:
        insertion_sort(here, key)
    cut = False
    for i in range(1, stop - start):
        if key[here[i]] != key[here[i - 1]]:
            cuts[start + i] = cut = True
    return cut


@njit(cache=True, nogil=True)
def insertion_sort(items, key):
    """Sort a few items by falling key in place."""
    for i in range(1, len(items)):
        item, j = items[i], i
        while j > 0 and key[items[j - 1]] < key[item]:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


@njit(cache=True, nogil=True)
def refine_blocks(ranks, weight, table, order, key, cuts):
    """Split tied ranges by wins minus losses within them until nothing more can be separated."""
    size, start = len(order), 0
    while start < size:
        stop = start + 1
        while not cuts[stop]:
            stop += 1
        again = False
        if stop - start > 1 and key[order[start]] > -np.inf:
            for a in range(start, stop):
                key[order[a]] = 0.0
            for a in range(start, stop):
                for b in range(a + 1, stop):
                    sign = np.sign(compute_lead(ranks, weight, table, order[a], order[b]))
                    key[order[a]] += sign
                    key[order[b]] -= sign
            again = split_by_key(order, start, stop, key, cuts)
        if not again:
            start = stop


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def sort_blocks(ranks, weight, table, order, cuts):
    """Blocks (start, stop) of `order` sorted by majority, bottom up and stable."""
    edges = np.empty(len(cuts), np.int64)
    count = -1
    for i in range(len(cuts)):
        if cuts[i]:
            count += 1
            edges[count] = i
    block, spare = np.arange(count), np.empty(count, np.int64)
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j = low, middle
            for k in range(low, high):
                right = j < high and (
                    i >= middle or sum_between(ranks, weight, table, order, edges, block[j], block[i]) > 0
                )
                spare[k] = block[j] if right else block[i]
                if right:
                    j += 1
                else:
                    i += 1
        block, spare = spare, block
        width *= 2
    found = np.empty((count, 2), np.int64)
    for k in range(count):
        found[k, 0], found[k, 1] = edges[block[k]], edges[block[k] + 1]
    return found


@njit(cache=True, nogil=True, inline="always")
def sum_between(ranks, weight, table, order, edges, a, b):
    """Votes by which block a beats block b."""
    total = 0.0
    for i in range(edges[a], edges[a + 1]):
        for j in range(edges[b], edges[b + 1]):
            total += compute_lead(ranks, weight, table, order[i], order[j])
    return total


@njit(cache=True, nogil=True)
def score_blocks(blocks, order, score):
    """Items below minus items above."""
    size, above = len(order), 0
    for k in range(len(blocks)):
        count = blocks[k, 1] - blocks[k, 0]
        for a in range(blocks[k, 0], blocks[k, 1]):
            score[order[a]] = size - 2 * above - count
        above += count
