"""Rankings filled stage by stage; handles a range of queries with one table of costs each."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["compute_stage_scores"]


@njit(cache=True, nogil=True)
def compute_stage_scores(first, last, starts, places, theta, pairs, near, scores):
    """Take the cheapest items at each stage; see the numpy body."""
    total = 0.0
    for k in range(len(theta)):
        total += abs(theta[k])
    for q in range(first, last):
        begin, size = starts[q], starts[q + 1] - starts[q]
        here, score = places[begin : starts[q + 1]], scores[begin : starts[q + 1]]
        table = np.zeros((size, size))
        if pairs:
            compute_pair_costs(here, theta, table)
        else:
            compute_gap_costs(here, theta, table)
        score_query(table, pairs, near * size * total, score)


@njit(cache=True, nogil=True)
def compute_pair_costs(places, theta, table):
    """Cost of x while y is left, at (y, x)."""
    size = len(places)
    for y in range(size):
        for x in range(y):
            for k in range(len(theta)):
                if places[y, k] < places[x, k]:
                    table[y, x] += theta[k]
                elif places[y, k] > places[x, k]:
                    table[x, y] += theta[k]
                else:
                    table[y, x] += 0.5 * theta[k]
                    table[x, y] += 0.5 * theta[k]


@njit(cache=True, nogil=True)
def compute_gap_costs(places, theta, table):
    """Cost of x at each stage, at (stage, x)."""
    n = len(places)
    whole = n * (n + 1) / 2
    for stage in range(1, n + 1):
        before = stage * (stage + 1) / 2
        for x in range(n):
            for k in range(len(theta)):
                place = places[x, k]
                split = min(max(np.floor(place), float(stage)), float(n))
                upto = split * (split + 1) / 2
                sums = (split - stage) * place - (upto - before) + (whole - upto) - (n - split) * place
                table[stage - 1, x] += theta[k] * (abs(place - stage) - sums / max(n - stage, 1))


@njit(cache=True, nogil=True)
def score_query(table, pairs, near, score):
    """Items below minus items above, block by block of items of equal cost."""
    size, above = len(table), 0
    left, cost, taken = np.arange(size), np.zeros(size), np.zeros(size, np.int64)
    if pairs:
        sum_inside(table, left, size, cost)
    while above < size:
        rest = size - above
        if not pairs:
            cost = table[above]
        count = select_cheapest(left, rest, cost, near, taken)
        while pairs and count > 1:
            inside = np.zeros(size)
            sum_inside(table, taken, count, inside)
            fewer = select_cheapest(taken, count, inside, near, taken)
            if fewer == count:
                break
            count = fewer
        for t in range(count):
            score[taken[t]] = size - 2 * above - count
        drop_taken(left, rest, taken, count)
        above += count
        if pairs:
            for t in range(count):
                for x in left[: size - above]:
                    cost[x] -= table[taken[t], x]


@njit(cache=True, nogil=True)
def sum_inside(table, items, count, cost):
    """For each of the first items, its cost while the others of them are left."""
    for y in items[:count]:
        for x in items[:count]:
            cost[x] += table[y, x]


@njit(cache=True, nogil=True)
def select_cheapest(items, count, cost, near, chosen):
    """Write those of the first items with the least cost, in order, and return their number."""
    least = np.inf
    for x in items[:count]:
        least = min(least, cost[x])
    found = 0
    for t in range(count):  # `chosen` may be `items`: it is never written beyond what was read
        x = items[t]
        if cost[x] <= least + near:
            chosen[found] = x
            found += 1
    return found


@njit(cache=True, nogil=True)
def drop_taken(left, rest, taken, count):
    """Remove the taken items; both are in ascending order."""
    kept, t = 0, 0
    for i in range(rest):
        if t < count and left[i] == taken[t]:
            t += 1
        else:
            left[kept] = left[i]
            kept += 1
