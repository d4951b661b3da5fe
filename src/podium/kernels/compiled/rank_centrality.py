"""Gauss-Seidel sweeps for the stationary distribution of a walk over contests, and Elo ratings."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from podium.kernels.compiled.smooth_sums import HALF_TANH, sums


@njit(cache=True, nogil=True)
def compute_rank_centrality(
    first_query, last_query, contests, up, down, label, tolerance, most_sweeps, found, taken
):
    """Give every item in turn the probability that balances its flows, until all of them nearly do."""
    starts, pair_starts, first, second = contests
    for q in range(first_query, last_query):
        base, size = starts[q], starts[q + 1] - starts[q]
        if size == 0:
            continue
        a, b = pair_starts[q], pair_starts[q + 1]
        begin, other, rate, out = build_neighbors(base, size, first[a:b], second[a:b], up[a:b], down[a:b])
        x = found[base : base + size]
        x[:] = 1.0 / size
        taken[q] = most_sweeps + 1
        for number in range(most_sweeps):
            if sweep_flows(begin, other, rate, out, x) <= tolerance:
                taken[q] = number + 1
                break
        normalize_components(x, label[base : base + size], base)


@njit(cache=True, nogil=True)
def sweep_flows(begin, other, rate, out, x):
    """One sweep over all items; returns the largest relative change."""
    worst = 0.0
    for i in range(len(x)):
        if begin[i] == begin[i + 1]:
            continue
        flow = 0.0
        for n in range(begin[i], begin[i + 1]):
            flow += x[other[n]] * rate[n]
        new = flow / out[i]
        worst = max(worst, abs(new - x[i]) / new)
        x[i] = new
    return worst


@njit(cache=True, nogil=True)
def build_neighbors(base, size, first, second, up, down):
    """By item: its opponents, with the rates from them, and the total rate of leaving it."""
    begin = np.zeros(size + 1, np.int64)
    for p in range(len(first)):
        begin[first[p] - base + 1] += 1
        begin[second[p] - base + 1] += 1
    for i in range(size):
        begin[i + 1] += begin[i]
    at, out = begin.copy(), np.zeros(size)
    other, rate = np.empty(2 * len(first), np.int32), np.empty(2 * len(first))
    for p in range(len(first)):
        i, j = first[p] - base, second[p] - base
        other[at[i]], rate[at[i]] = j, down[p]
        other[at[j]], rate[at[j]] = i, up[p]
        at[i] += 1
        at[j] += 1
        out[i] += up[p]
        out[j] += down[p]
    return begin, other, rate, out


@njit(cache=True, nogil=True)
def normalize_components(x, label, base):
    """Give each component mass in proportion to its number of items."""
    size = len(x)
    total, number = np.zeros(size), np.zeros(size)
    for i in range(size):
        total[label[i] - base] += x[i]
        number[label[i] - base] += 1
    for i in range(size):
        c = label[i] - base
        x[i] *= number[c] / total[c] / size


@njit(cache=True, nogil=True)
def compute_elo(first_query, last_query, votes, starts, order, k, rate, long, near, ratings):
    """Play the events of each query in order: its lists (numbered first), then its comparisons."""
    for q in range(first_query, last_query):
        base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
        lists = votes.query_starts[q + 1] - votes.query_starts[q]
        here, change = ratings[base : base + size], np.zeros(size)
        held = np.zeros(size, np.bool_)
        for n in range(starts[q], starts[q + 1]):
            event = order[n]
            if event < lists:
                lst = votes.query_starts[q] + event
                if votes.starts[lst + 1] - votes.starts[lst] > long:
                    play_long_list(votes, lst, base, k, rate, near, here, held)
                else:
                    play_list(votes, lst, base, k, rate, here, change, held)
                continue
            v = votes.vote_starts[q] + event - lists
            i, j = votes.winner[v] - base, votes.loser[v] - base
            won = 0.5 if votes.tie[v] else 1.0
            gain = k * votes.vote_weight[v] * (won - 1.0 / (1.0 + math.exp(rate * (here[j] - here[i]))))
            here[i] += gain
            here[j] -= gain


@njit(cache=True, nogil=True)
def play_list(votes, lst, base, k, rate, here, change, held):
    """All contests of a list at once, each item's gain averaged over its opponents."""
    start, stop, size = votes.starts[lst], votes.starts[lst + 1], len(here)
    weight = k * votes.list_weight[lst]
    change[:] = 0.0
    held[:] = False
    for a in range(start, stop):
        i = votes.item[a] - base
        held[i] = True
        for b in range(a + 1, stop):
            j = votes.item[b] - base
            won = 0.5 if votes.rank[a] == votes.rank[b] else 1.0
            gain = won - 1.0 / (1.0 + math.exp(rate * (here[j] - here[i])))
            change[i] += gain
            change[j] -= gain
    if votes.below:
        for a in range(start, stop):
            i = votes.item[a] - base
            for j in range(size):
                if not held[j]:
                    gain = 1.0 - 1.0 / (1.0 + math.exp(rate * (here[j] - here[i])))
                    change[i] += gain
                    change[j] -= gain
    listed = stop - start
    for i in range(size):
        rivals = (size - 1 if votes.below else listed - 1) if held[i] else listed
        if change[i] != 0:
            here[i] += weight * change[i] / rivals


@njit(cache=True, nogil=True)
def play_long_list(votes, lst, base, k, rate, near, here, held):
    """The same for a long list, in linear time: a gain is half of wins minus losses, minus expectations."""
    start, stop, size = votes.starts[lst], votes.starts[lst + 1], len(here)
    listed = stop - start
    weight = k * votes.list_weight[lst]
    held[:] = False
    inside = np.empty(listed, np.int64)
    gain, ones = np.empty(listed), np.ones(max(listed, size - listed))
    first = start
    for a in range(start, stop):
        inside[a - start] = votes.item[a] - base
        held[votes.item[a] - base] = True
        if a > start and votes.rank[a] != votes.rank[a - 1]:
            first = a
        gain[a - start] = first - start
    last = stop
    for a in range(stop - 1, start - 1, -1):
        if a < stop - 1 and votes.rank[a] != votes.rank[a + 1]:
            last = a + 1
        gain[a - start] = ((stop - last) - gain[a - start]) / 2.0  # half of items below minus items above
    x, minus = rate * here[inside], -ones
    sums(HALF_TANH, near, x, ones[:listed], x, minus[:listed], gain)
    if votes.below and listed < size:
        outside = np.flatnonzero(~held)
        others = len(outside)
        y, loss = rate * here[outside], np.full(others, -listed / 2.0)
        sums(HALF_TANH, near, x, ones[:listed], y, minus[:others], loss)
        sums(HALF_TANH, near, y, ones[:others], x, minus[:listed], gain)
        gain += others / 2.0
        here[outside] += weight * loss / listed
    here[inside] += weight * gain / ((size if votes.below else listed) - 1)
