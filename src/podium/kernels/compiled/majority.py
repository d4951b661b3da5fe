"""Orders from pairwise majorities; each kernel handles a range of queries with one reused matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.condorcet import condorcet, sum_won_and_lost
from podium.kernels.compiled.pairwise_votes import allocate_matrix, compute_margins, compute_vote_matrix

__all__ = ["condorcet", "copeland", "greedy", "ranked_pairs", "schulze"]


@njit(cache=True, nogil=True)
def copeland(first, last, votes, scores):
    """Items beaten minus items lost to."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        add_copeland_scores(
            compute_margins(compute_vote_matrix(votes, q, room)), scores[votes.slots[q] : votes.slots[q + 1]]
        )


@njit(cache=True, nogil=True)
def add_copeland_scores(margin, score):
    """Items beaten minus items lost to. Row-wise sums keep the inner loop independent: it is vectorized."""
    for i in range(len(margin)):
        for j in range(len(score)):
            score[j] += np.float64(margin[i, j] < 0) - np.float64(margin[i, j] > 0)


@njit(cache=True, nogil=True)
def greedy(first, last, votes, scores):
    """Repeatedly take the item with the largest net preference over those left."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        table = compute_vote_matrix(votes, q, room)
        won, lost = sum_won_and_lost(table, len(table))
        potential = won - lost
        margin, size = compute_margins(table), len(table)
        left, score, above = np.arange(size), scores[votes.slots[q] : votes.slots[q + 1]], 0
        while above < size:
            taken = select_largest(left, potential)
            while len(taken) > 1:
                best = select_largest(taken, sum_inside(margin, taken))
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
def select_largest(items, key):
    """The items with the largest key."""
    here = key[items]
    return items[here == here.max()]


@njit(cache=True, nogil=True)
def sum_inside(margin, items):
    """Net votes of each of some items against the others of them, by item."""
    total = np.zeros(len(margin))
    for i in items:
        for j in items:
            total[i] += margin[i, j]
    return total


@njit(cache=True, nogil=True)
def schulze(first, last, votes, winning, scores):
    """Items beaten minus items lost to, by the strength of the strongest path of majorities."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        path = compute_vote_matrix(votes, q, room)
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
                    widen_paths(path[i], path[i, k], middle)
        add_copeland_scores(compute_margins(path), scores[votes.slots[q] : votes.slots[q + 1]])


@njit(cache=True, nogil=True)
def widen_paths(row, to_middle, middle):
    """Paths through one more item."""
    for j in range(len(row)):
        through = min(to_middle, middle[j])
        if through > row[j]:
            row[j] = through


@njit(cache=True, nogil=True)
def ranked_pairs(first, last, votes, scores):
    """Lock majorities by falling margin; equal margins are locked together, except those in a cycle."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        margin = compute_margins(compute_vote_matrix(votes, q, room))
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
            lock_edges(reach, edges[start:stop])
            start = stop
        score = scores[votes.slots[q] : votes.slots[q + 1]]
        for i in range(size):
            for j in range(size):
                score[i] += reach[i, j]
                score[j] -= reach[i, j]


@njit(cache=True, nogil=True)
def lock_edges(reach, edges):
    """Add those edges of a group that contradict neither the locked edges nor each other."""
    size = len(reach)
    open_edges = np.array([not reach[e // size, e % size] and not reach[e % size, e // size] for e in edges])
    edges = edges[open_edges]
    trial = reach.copy()
    for e in edges:
        add_to_closure(trial, e // size, e % size)
    for e in edges:
        if not trial[e % size, e // size]:
            add_to_closure(reach, e // size, e % size)


@njit(cache=True, nogil=True)
def add_to_closure(reach, i, j):
    """Update the transitive closure of a relation with i -> j."""
    if reach[i, j]:
        return
    for x in range(len(reach)):
        if reach[x, i] and not reach[x, j]:
            row, other = reach[x], reach[j]
            for k in range(len(row)):
                row[k] |= other[k]
