"""Gradients towards preferences implied by beliefs, query by query; memory is linear in a query's items."""

from __future__ import annotations

import numpy as np
from numba import njit

NEAR, STEEP = 1e-10, 600.0


@njit(cache=True, nogil=True)
def compute_belief_lambdas(first, last, starts, scores, belief, cutoff, slope, loss, mass):
    """For a range of queries: the slope of every row, the loss and the sum of pair weights of every query."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    work = np.empty((12, longest))
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        if b - a > 1:
            _compute_query_lambdas(scores[a:b], belief[a:b], cutoff, slope[a:b], q, loss, mass, work)


@njit(cache=True, nogil=True)
def _compute_query_lambdas(scores, belief, cutoff, slope, q, loss, mass, work):
    n = len(scores)
    order = _sort_rows(scores, belief, work[11])
    s, t, e, f, d, pull = work[0], work[1], work[2], work[3], work[4], work[5]
    highest = belief[0]
    for i in range(n):
        highest = max(highest, belief[i])
    for p in range(n):
        s[p], t[p] = scores[order[p]], belief[order[p]]
        e[p] = np.exp(max(t[p] - highest, -STEEP))
        f[p] = np.exp(max(s[p] - s[0], -STEEP))
        d[p] = 1.0 / np.log2(p + 2.0) if p < cutoff else 0.0
        pull[p] = 0.0
    _add_pair_lambdas(n, min(cutoff, n), s, e, f, d, pull, q, loss, mass, work)
    _average_ties(n, work[11], t, pull)
    for p in range(n):
        slope[order[p]] = pull[p]


@njit(cache=True, nogil=True)
def _add_pair_lambdas(n, top, s, e, f, d, pull, q, loss, mass, work):
    """Change when places a < b are swapped, by running sums between them; 0 if both are below the cutoff."""
    above, seen, tail, best, passed = work[6], work[7], work[8], work[9], work[10]
    for b in range(n):  # sums over the places before b (plain and discounted), and after it
        above[b], seen[b], tail[b], best[b], passed[b] = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(1, n):
        for c in range(b):
            p = e[c] / (e[c] + e[b])
            above[b] += 1.0 - p
            seen[b] += d[c] * p
            tail[c] += p
    for a in range(top):
        # sums of P(a over c): c >= b, between, and d_c P(c over a) between
        left, inner, under = (tail[a], 0.0, 0.0)
        for b in range(a + 1, n):
            p_ab = e[a] / (e[a] + e[b])
            p_ba = 1.0 - p_ab
            best[b] += p_ba  # now: P(b over c) for c <= a
            passed[b] += d[a] * p_ab
            left -= p_ab
            between = d[a] * (above[b] - best[b] - inner) + under - (seen[b] - passed[b])
            change = abs(d[a] * (p_ba - p_ab) + between + (d[a] - d[b]) * (tail[b] - left))
            gap = change * (p_ab - f[a] / (f[a] + f[b]))
            pull[a] += gap
            pull[b] -= gap
            mass[q] += change
            loss[q] += change * (_softplus(s[b] - s[a]) + p_ba * (s[a] - s[b]))
            inner += p_ab
            under += d[b] * p_ba


@njit(cache=True, nogil=True)
def _softplus(x):
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@njit(cache=True, nogil=True)
def _sort_rows(scores, belief, run):
    """Rows from the top; near-equal scores: worse belief first. Writes the run of each place."""
    order = np.argsort(-scores, kind="mergesort")
    n = len(order)
    near = NEAR * max(abs(scores[order[0]]), abs(scores[order[n - 1]]))
    begin = 0
    for k in range(1, n + 1):
        if k == n or scores[order[k - 1]] - scores[order[k]] > near:
            part = order[begin:k].copy()
            order[begin:k] = part[np.argsort(belief[part], kind="mergesort")]
            run[begin:k] = begin
            begin = k
    return order


@njit(cache=True, nogil=True)
def _average_ties(n, run, t, pull):
    """Average the slope over rows of one run with equal beliefs."""
    high = 0.0
    for p in range(n):
        high = max(high, abs(t[p]))
    begin = 0
    for k in range(1, n + 1):
        if k == n or run[k - 1] != run[k] or t[k] - t[k - 1] > NEAR * high:
            if k - begin > 1:
                total = 0.0
                for p in range(begin, k):
                    total += pull[p]
                for p in range(begin, k):
                    pull[p] = total / (k - begin)
            begin = k
