"""Gradients of a ranking model towards the preferences implied by beliefs about features.

Beliefs give every item a score t; the probability that i belongs above j is P(i, j) = 1 / (1 + exp(t_j -
t_i)). The quality of an order is N = sum of P(i, j) / log2(place_i + 1) over the places up to a cutoff and
all j below i. (The published sum runs over all j: both directions of a pair inside the cutoff then add up to
a constant, and a query no longer than the cutoff has no training signal.) A pair weighs |change of N when it
is swapped|, and the loss is the weighted cross entropy between P and the model's own 1 / (1 + exp(s_j -
s_i)).

Nearly equal scores are ordered worst belief first; rows equal in both share their slope, so ids have no
effect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, is_large, run_in_threads

__all__ = ["BeliefGradients", "compute_belief_lambdas", "compute_swap_changes"]

NEAR = 1e-10  # scores closer than this fraction of the largest are equal
STEEP = 600.0  # score differences are clipped here to keep exponentials finite


class BeliefGradients(NamedTuple):
    """Gradients of one pass; divide by `mass` to give all queries the same weight."""

    slope: F8  # by row: the loss falls along it
    loss: F8  # by query
    mass: F8  # by query: sum of the pair weights


def compute_belief_lambdas(
    scores: F8, belief: F8, starts: I8, cutoff: int, looks: int = 1
) -> BeliefGradients:
    """Gradients for scores and belief scores of rows grouped by query.

    `looks` is the expected number of such calls, which decides whether compiling pays off.
    """
    queries = len(starts) - 1
    found = BeliefGradients(np.zeros(len(scores)), np.zeros(queries), np.zeros(queries))
    sizes = np.diff(starts)
    work = segments.offsets(sizes * sizes)
    if is_large(int(work[-1]) * looks):
        from podium.kernels.compiled.belief_lambdas import compute_belief_lambdas as kernel

        run_in_threads(kernel, work, starts, scores, belief, cutoff, *found)
        return found
    for q in np.flatnonzero(sizes > 1):
        rows = slice(int(starts[q]), int(starts[q + 1]))
        found.slope[rows], found.loss[q], found.mass[q] = _compute_query_lambdas(
            scores[rows], belief[rows], cutoff
        )
    return found


def compute_swap_changes(p: F8, cutoff: int) -> F8:
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


def _compute_query_lambdas(scores: F8, belief: F8, cutoff: int) -> tuple[F8, float, float]:
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


def _compute_pair_probabilities(t: F8) -> F8:
    e = np.exp(np.maximum(t - t.max(), -STEEP))
    return np.asarray(e[:, None] / (e[:, None] + e))


def _sort_rows(scores: F8, belief: F8) -> tuple[I8, I8]:
    """Rows from the top, worst belief first where scores are nearly equal; the tie group of each place."""
    order = np.argsort(-scores, kind="stable")
    near = NEAR * float(np.abs(scores).max())
    run = np.concatenate(([0], np.cumsum(-np.diff(scores[order]) > near)))
    inside = np.lexsort((belief[order], run))
    order = order[inside]
    alike = np.diff(belief[order]) <= NEAR * float(np.abs(belief).max())
    group = np.concatenate(([0], np.cumsum((np.diff(run) != 0) | ~alike)))
    return order, group
