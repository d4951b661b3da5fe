"""Gradients towards preferences implied by beliefs, as numpy expressions of one query."""

from __future__ import annotations

import numpy as np

NEAR = 1e-10  # scores closer than this fraction of the largest are equal
STEEP = 600.0  # score differences are clipped here to keep exponentials finite


def compute_belief_lambdas(scores, belief, starts, cutoff):
    """Slopes by row, and loss and mass by query."""
    slope, loss, mass = np.zeros(len(scores)), np.zeros(len(starts) - 1), np.zeros(len(starts) - 1)
    for q in np.flatnonzero(np.diff(starts) > 1):
        rows = slice(int(starts[q]), int(starts[q + 1]))
        slope[rows], loss[q], mass[q] = _compute_query_lambdas(scores[rows], belief[rows], cutoff)
    return slope, loss, mass


def compute_swap_changes(p, cutoff):
    """|change of N when places a < b are swapped|, for preferences between the items there; 0 elsewhere.

    Above a nothing changes. Between and below, running sums over the places suffice.
    """
    n = len(p)
    d = np.where(np.arange(n) < cutoff, 1.0 / np.log2(np.arange(n) + 2.0), 0.0)
    own = np.cumsum(p, axis=1)  # own[i, c]: P(i, c') for places c' <= c
    seen = np.cumsum(d[:, None] * p, axis=0)  # seen[c, i]: d P(c', i) for places c' <= c
    a, b = np.triu_indices(n, 1)
    before = b - 1
    mine = own[a, before] - own[a, a]  # of the item at a, over the places between
    theirs = own[b, before] - own[b, a]
    moved = d[a] * (p[b, a] - p[a, b]) + d[a] * (theirs - mine)
    moved += (seen[before, a] - seen[a, a]) - (seen[before, b] - seen[a, b])
    last = n - 1
    moved += (d[a] - d[b]) * ((own[b, last] - own[b, b]) - (own[a, last] - own[a, b]))
    changes = np.zeros((n, n))
    changes[a, b] = np.where(a < cutoff, np.abs(moved), 0.0)
    return changes


def _compute_query_lambdas(scores, belief, cutoff):
    order, group = _sort_rows(scores, belief)
    s, t = scores[order], belief[order]
    p, own = _compute_pair_probabilities(t), _compute_pair_probabilities(s)
    change = compute_swap_changes(p, cutoff)
    gap = change * (p - own)
    pull = gap.sum(axis=1) - gap.sum(axis=0)
    far = s[None, :] - s[:, None]  # s_b - s_a
    entropy = np.maximum(far, 0.0) + np.log1p(np.exp(-np.abs(far))) - p.T * far
    shared = np.bincount(group, weights=pull) / np.bincount(group)
    slope = np.empty(len(scores))
    slope[order] = shared[group]
    return slope, float((change * entropy).sum()), float(change.sum())


def _compute_pair_probabilities(t):
    e = np.exp(np.maximum(t - t.max(), -STEEP))
    return np.asarray(e[:, None] / (e[:, None] + e))


def _sort_rows(scores, belief):
    """Rows from the top, worst belief first where scores are nearly equal; the tie group of each place."""
    order = np.argsort(-scores, kind="stable")
    near = NEAR * float(np.abs(scores).max())
    run = np.concatenate(([0], np.cumsum(-np.diff(scores[order]) > near)))
    inside = np.lexsort((belief[order], run))
    order = order[inside]
    alike = np.diff(belief[order]) <= NEAR * float(np.abs(belief).max())
    group = np.concatenate(([0], np.cumsum((np.diff(run) != 0) | ~alike)))
    return order, group
