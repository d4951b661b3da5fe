"""Votes merged by pair, by plain loops: a table of all pairs where it is small, else two counting sorts."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.pairwise_votes import compute_vote_matrix

WIN, LOSS, TIE = 0, 1, 2


@njit(cache=True, nogil=True)
def count_contests(first_query, last_query, votes, dense, room_starts, first, second, won, lost, tied, found):
    """The pairs of a range of queries, each query in its own block; `tied` must be zeros."""
    size = 0
    for q in range(first_query, last_query):
        if dense[q]:
            size = max(size, votes.slots[q + 1] - votes.slots[q])
    room, more = np.empty(size * size), np.empty(size * size)
    for q in range(first_query, last_query):
        a, b = room_starts[q], room_starts[q + 1]
        out = (first[a:b], second[a:b], won[a:b], lost[a:b], tied[a:b])
        if dense[q]:
            found[q] = count_by_table(votes, q, room, more, out)
        else:
            found[q] = count_by_sorting(votes, q, out)


@njit(cache=True, nogil=True)
def count_by_table(votes, q, room, more, out):
    """The pairs of a query by its whole table; returns their number."""
    first, second, won, lost, tied = out
    base = votes.slots[q]
    table = compute_vote_matrix(votes, q, room)
    size = len(table)
    ties = more[: size * size].reshape(size, size)
    any_tie = add_ties(votes, q, ties)
    n = 0
    for i in range(size):
        for j in range(i + 1, size):
            t = ties[i, j] if any_tie else 0.0
            if table[i, j] + table[j, i] + t > 0:
                first[n], second[n] = base + i, base + j
                won[n], lost[n] = table[i, j], table[j, i]
                if t > 0:
                    tied[n] = t
                n += 1
    return n


@njit(cache=True, nogil=True)
def add_ties(votes, q, ties):
    """The weight of ties by pair, smaller slot first; returns whether there are any."""
    base, rank, item = votes.slots[q], votes.rank, votes.item
    found = False
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        for a in range(votes.starts[lst], votes.starts[lst + 1] - 1):
            b = a + 1
            while b < votes.starts[lst + 1] and rank[b] == rank[a]:
                if not found:
                    ties[:] = 0.0
                    found = True
                i, j = item[a] - base, item[b] - base
                ties[min(i, j), max(i, j)] += votes.list_weight[lst]
                b += 1
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if votes.tie[v]:
            if not found:
                ties[:] = 0.0
                found = True
            i, j = votes.winner[v] - base, votes.loser[v] - base
            ties[min(i, j), max(i, j)] += votes.vote_weight[v]
    return found


@njit(cache=True, nogil=True)
def count_by_sorting(votes, q, out):
    """The pairs of a query by sorting its votes; returns their number."""
    base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
    a, b = votes.vote_starts[q], votes.vote_starts[q + 1]
    winner, loser, tie, weight = votes.winner[a:b], votes.loser[a:b], votes.tie[a:b], votes.vote_weight[a:b]
    if votes.starts[votes.query_starts[q]] < votes.starts[votes.query_starts[q + 1]]:
        winner, loser, tie, weight = expand_votes(votes, q)
    equal = True
    for v in range(1, len(weight)):
        if weight[v] != weight[0]:
            equal = False
            break
    by_second, starts, weights = sort_by_second(base, size, winner, loser, tie, weight, equal)
    other, starts, weights = sort_by_first(size, by_second, starts, weights)
    return merge_equal_pairs(base, other, starts, weights, weight[0] if len(weight) else 0.0, out)


@njit(cache=True, nogil=True)
def expand_votes(votes, q):
    """Single votes for all lists and comparisons of a query."""
    base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
    n = votes.vote_starts[q + 1] - votes.vote_starts[q]
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        length = votes.starts[lst + 1] - votes.starts[lst]
        n += length * (length - 1) // 2 + (length * (size - length) if votes.below else 0)
    winner, loser = np.empty(n, np.int32), np.empty(n, np.int32)
    tie, weight = np.zeros(n, np.bool_), np.empty(n)
    held = np.zeros(size, np.bool_)
    at = 0
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start, stop = votes.starts[lst], votes.starts[lst + 1]
        begin = at
        held[:] = False
        for a in range(start, stop):
            held[votes.item[a] - base] = True
            for b in range(a + 1, stop):
                winner[at], loser[at] = votes.item[a], votes.item[b]
                tie[at] = votes.rank[a] == votes.rank[b]
                at += 1
        if votes.below:
            for i in range(size):
                if not held[i]:
                    for a in range(start, stop):
                        winner[at], loser[at] = votes.item[a], base + i
                        at += 1
        weight[begin:at] = votes.list_weight[lst]
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        winner[at], loser[at] = votes.winner[v], votes.loser[v]
        tie[at], weight[at] = votes.tie[v], votes.vote_weight[v]
        at += 1
    return winner, loser, tie, weight


@njit(cache=True, nogil=True)
def accumulate_offsets(count):
    """Counts, shifted by one place, to offsets in place."""
    for i in range(1, len(count)):
        count[i] += count[i - 1]
    return count


@njit(cache=True, nogil=True)
def sort_by_second(base, size, winner, loser, tie, weight, equal):
    """Rows by the larger slot: the smaller one with the kind of vote in two low bits, offsets, weights."""
    count = np.zeros(size + 1, np.int64)
    for v in range(len(winner)):
        count[max(winner[v], loser[v]) - base + 1] += 1
    starts = accumulate_offsets(count)
    at = starts.copy()
    other = np.empty(len(winner), np.uint32)
    weights = np.empty(0 if equal else len(winner))
    for v in range(len(winner)):
        i, j = winner[v] - base, loser[v] - base
        kind = TIE if tie[v] else (WIN if i < j else LOSS)
        place = at[max(i, j)]
        other[place] = np.uint32(min(i, j) << 2 | kind)
        if not equal:
            weights[place] = weight[v]
        at[max(i, j)] += 1
    return other, starts, weights


@njit(cache=True, nogil=True)
def sort_by_first(size, by_second, second_starts, second_weights):
    """The same rows by the smaller slot, then by the larger one."""
    count = np.zeros(size + 1, np.int64)
    for v in range(len(by_second)):
        count[(by_second[v] >> 2) + 1] += 1
    starts = accumulate_offsets(count)
    at = starts.copy()
    other = np.empty(len(by_second), np.uint32)
    weights = np.empty(len(second_weights))
    for j in range(size):
        for v in range(second_starts[j], second_starts[j + 1]):
            i = by_second[v] >> 2
            place = at[i]
            other[place] = np.uint32(j << 2 | (by_second[v] & 3))
            if len(weights):
                weights[place] = second_weights[v]
            at[i] += 1
    return other, starts, weights


@njit(cache=True, nogil=True)
def merge_equal_pairs(base, other, starts, weights, weight, out):
    """Merge equal neighbors into one pair; pairs without weight are dropped."""
    first, second, won, lost, tied = out
    n = 0
    for i in range(len(starts) - 1):
        v = starts[i]
        while v < starts[i + 1]:
            j = other[v] >> 2
            up = down = neither = 0.0
            while v < starts[i + 1] and other[v] >> 2 == j:
                mine = weights[v] if len(weights) else weight
                kind = other[v] & 3
                if kind == WIN:
                    up += mine
                elif kind == LOSS:
                    down += mine
                else:
                    neither += mine
                v += 1
            if up + down + neither > 0:
                first[n], second[n], won[n], lost[n] = base + i, base + j, up, down
                if neither > 0:
                    tied[n] = neither
                n += 1
    return n


@njit(cache=True, nogil=True)
def find_weak_components(first, second, label):
    """Union of the two ends of every pair; `label` starts as slot numbers and ends as smallest slots."""
    for p in range(len(first)):
        a, b = first[p], second[p]
        while label[a] != a:
            label[a] = label[label[a]]
            a = label[a]
        while label[b] != b:
            label[b] = label[label[b]]
            b = label[b]
        if a != b:
            label[max(a, b)] = min(a, b)
    for a in range(len(label)):
        label[a] = label[label[a]]
