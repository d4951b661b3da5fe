"""Orders made from pairwise majorities; each walks a range of queries over one reused matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.pairs import fill, scratch, skew

FEW = 16  # items that are sorted by insertion, without making arrays


@njit(cache=True, nogil=True)
def copeland(first, last, votes, scores):
    """Items beaten minus items lost to."""
    room = scratch(votes, first, last)
    for q in range(first, last):
        wins(skew(fill(votes, q, room)), scores[votes.slots[q] : votes.slots[q + 1]])


@njit(cache=True, nogil=True)
def wins(margin, score):
    """Items beaten minus items lost to. Adding up row by row keeps the inner loop independent, so it is vectorised."""
    for i in range(len(margin)):
        for j in range(len(score)):
            score[j] += np.float64(margin[i, j] < 0) - np.float64(margin[i, j] > 0)


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def votes_won_and_lost(table):
    """Sums of rows and columns; they are of whole numbers, so their order is free."""
    won, lost = np.zeros(len(table)), np.zeros(len(table))
    for i in range(len(table)):
        total = 0.0
        for j in range(len(table)):
            total += table[i, j]
            lost[j] += table[i, j]
        won[i] = total
    return won, lost


@njit(cache=True, nogil=True)
def condorcet(first, last, votes, scores):
    """Merge sort by majority, from the order of net votes; items without votes begin, and so stay, last."""
    room = scratch(votes, first, last)
    for q in range(first, last):
        table = fill(votes, q, room)  # not W - W': a sort looks at few of the pairs
        size = len(table)
        if size == 0:
            continue
        won, lost = votes_won_and_lost(table)
        key = np.where(won + lost > 0, won - lost, -np.inf)
        order = np.arange(size)
        cuts = np.zeros(size + 1, np.bool_)
        cuts[0] = cuts[size] = True
        split(order, 0, size, key, cuts)
        refine(table, order, key, cuts)
        place_scores(merge_sort(table, order, cuts), order, scores[votes.slots[q] : votes.slots[q + 1]])


@njit(cache=True, nogil=True)
def split(order, start, stop, key, cuts):
    """Sort a stretch by falling key and cut it where the key changes; says whether it was cut."""
    here = order[start:stop]
    if stop - start > FEW:
        here[:] = here[np.argsort(-key[here], kind="mergesort")]
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
def refine(table, order, key, cuts):
    """Split tied stretches by wins minus losses inside them until nothing more can be told apart."""
    size, start = len(order), 0
    while start < size:
        stop = start + 1
        while not cuts[stop]:
            stop += 1
        again = False
        if stop - start > 1 and key[order[start]] > -np.inf:
            for a in range(start, stop):
                key[order[a]] = 0.0
                for b in range(start, stop):
                    key[order[a]] += np.sign(table[order[a], order[b]] - table[order[b], order[a]])
            again = split(order, start, stop, key, cuts)
        if not again:
            start = stop


@njit(cache=True, nogil=True)
def merge_sort(table, order, cuts):
    """Blocks (start, stop) of `order` sorted by majority, bottom up and stable."""
    edges = np.flatnonzero(cuts)
    count = len(edges) - 1
    block = np.arange(count)
    spare = np.empty(count, np.int64)
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j = low, middle
            for k in range(low, high):
                right = j < high and (i >= middle or sum_between(table, order, edges, block[j], block[i]) > 0)
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


@njit(cache=True, nogil=True)
def sum_between(table, order, edges, a, b):
    """Votes by which block a beats block b."""
    total = 0.0
    for i in range(edges[a], edges[a + 1]):
        for j in range(edges[b], edges[b + 1]):
            total += table[order[i], order[j]] - table[order[j], order[i]]
    return total


@njit(cache=True, nogil=True)
def place_scores(blocks, order, score):
    """Items below minus items above."""
    size, above = len(order), 0
    for k in range(len(blocks)):
        count = blocks[k, 1] - blocks[k, 0]
        for a in range(blocks[k, 0], blocks[k, 1]):
            score[order[a]] = size - 2 * above - count
        above += count


@njit(cache=True, nogil=True)
def greedy(first, last, votes, scores):
    """Take the item with the largest net preference over those left, again and again."""
    room = scratch(votes, first, last)
    for q in range(first, last):
        table = fill(votes, q, room)
        won, lost = votes_won_and_lost(table)
        potential = won - lost
        margin, size = skew(table), len(table)
        left, score, above = np.arange(size), scores[votes.slots[q] : votes.slots[q + 1]], 0
        while above < size:
            taken = largest(left, potential)
            while len(taken) > 1:
                best = largest(taken, sums_inside(margin, taken))
                if len(best) == len(taken):
                    break
                taken = best
            for i in taken:
                score[i] = size - 2 * above - len(taken)
                potential += margin[i]
                potential[i] = -np.inf
            above += len(taken)
            left = left[potential[left] > -np.inf]


@njit(cache=True, nogil=True)
def largest(items, key):
    """The items with the largest key."""
    here = key[items]
    return items[here == here.max()]


@njit(cache=True, nogil=True)
def sums_inside(margin, items):
    """Net votes of each of some items against the others of them, by item."""
    total = np.zeros(len(margin))
    for i in items:
        for j in items:
            total[i] += margin[i, j]
    return total


@njit(cache=True, nogil=True)
def schulze(first, last, votes, winning, scores):
    """Items beaten minus items lost to, by the strength of the widest path of majorities."""
    room = scratch(votes, first, last)
    for q in range(first, last):
        path = fill(votes, q, room)
        size = len(path)
        for i in range(size):
            for j in range(i + 1, size):
                a, b = path[i, j], path[j, i]
                path[i, j] = (a if winning else a - b) if a > b else 0.0
                path[j, i] = (b if winning else b - a) if b > a else 0.0
        for k in range(size):
            middle = path[k]
            for i in range(size):
                if path[i, k] > 0:
                    widen(path[i], path[i, k], middle)
        wins(skew(path), scores[votes.slots[q] : votes.slots[q + 1]])


@njit(cache=True, nogil=True)
def widen(row, to_middle, middle):
    """Paths through one more item."""
    for j in range(len(row)):
        through = min(to_middle, middle[j])
        if through > row[j]:
            row[j] = through


@njit(cache=True, nogil=True)
def ranked_pairs(first, last, votes, scores):
    """Lock majorities from the largest margin down; equal margins are locked together, less those in a cycle."""
    room = scratch(votes, first, last)
    for q in range(first, last):
        margin = skew(fill(votes, q, room))
        size = len(margin)
        reach = np.zeros((size, size), np.bool_)
        for i in range(size):
            reach[i, i] = True
        edges = np.flatnonzero(margin.ravel() > 0)
        strength = margin.ravel()[edges]
        edges = edges[np.argsort(-strength, kind="mergesort")]
        start = 0
        while start < len(edges):
            stop = start + 1
            while stop < len(edges) and margin.ravel()[edges[stop]] == margin.ravel()[edges[start]]:
                stop += 1
            lock(reach, edges[start:stop])
            start = stop
        score = scores[votes.slots[q] : votes.slots[q + 1]]
        for i in range(size):
            for j in range(size):
                score[i] += reach[i, j]
                score[j] -= reach[i, j]


@njit(cache=True, nogil=True)
def lock(reach, edges):
    """Join those edges of a group that contradict neither what is locked nor each other."""
    size = len(reach)
    open_edges = np.array([not reach[e // size, e % size] and not reach[e % size, e // size] for e in edges])
    edges = edges[open_edges]
    trial = reach.copy()
    for e in edges:
        link(trial, e // size, e % size)
    for e in edges:
        if not trial[e % size, e // size]:
            link(reach, e // size, e % size)


@njit(cache=True, nogil=True)
def link(reach, i, j):
    """Keep the closure of a relation when i -> j joins it."""
    if reach[i, j]:
        return
    for x in range(len(reach)):
        if reach[x, i] and not reach[x, j]:
            row, other = reach[x], reach[j]
            for k in range(len(row)):
                row[k] |= other[k]
