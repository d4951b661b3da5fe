"""The coset-permutation stagewise model: a ranking is filled from the top, one item per stage.

At each stage an item x of those left is chosen with probability proportional to exp(-sum_k theta_k d_k(x)).
The coset distance d_k(x) is the mean distance between expert k's ranking and all rankings that begin with the
items placed so far and x. Up to a constant per stage it is, for stage i of n items and place s of x in that
ranking:

    kendall    the number of items left that the expert puts above x, equal places counting one half
    spearman   s (n + 1 - i)                                 [squared rank gaps: the squares of s cancel]
    footrule   |s - i| - mean of |s - j| over j = i + 1 .. n
"""

from __future__ import annotations

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, is_large, run_in_threads
from podium.kernels.majority import score_blocks

__all__ = ["DISTANCES", "compute_coset_distances", "compute_footrule_distances", "compute_stage_scores"]

DISTANCES = ("kendall", "spearman", "footrule")
NEAR = 1e-9  # costs closer than this fraction of the largest possible one are equal


def compute_coset_distances(places: F8, above: int, distance: str) -> F8:
    """d_k(x) of the items left (rows) by expert (columns) after `above` items are placed, up to a constant.

    >>> compute_coset_distances(np.array([[2.0], [1.0], [3.0]]), 0, "kendall").ravel()
    array([1., 0., 2.])
    """
    n, stage = above + len(places), above + 1
    if distance == "kendall":
        from scipy.stats import rankdata

        return np.asarray(rankdata(places, axis=0), np.float64) - 1.0
    return (
        places * float(n + 1 - stage)
        if distance == "spearman"
        else compute_footrule_distances(places, stage, n)
    )


def compute_footrule_distances(places: F8, stage: int, n: int) -> F8:
    """The footrule form, with the sum of |s - j| written out over j up to s and above s."""
    split = np.clip(np.floor(places), stage, n)
    upto, whole, first = split * (split + 1) / 2, n * (n + 1) / 2, stage * (stage + 1) / 2
    sums = (split - stage) * places - (upto - first) + (whole - upto) - (n - split) * places
    return np.asarray(np.abs(places - stage) - sums / max(n - stage, 1), np.float64)


def compute_stage_scores(places: F8, starts: I8, theta: F8, distance: str) -> F8:
    """Scores by slot of the ranking that takes the cheapest item at each stage: items below minus above.

    `places` (slot, expert) are mean places in the experts' rankings; unlisted items share the remaining
    places. Items of equal cost are taken together when their costs among themselves are equal too. Under
    `spearman` the order of costs is the same at all stages, and the scores are minus the weighted sums of
    places.
    """
    if distance == "spearman":
        return np.asarray(-np.einsum("ij,j->i", places, theta))
    scores, sizes = np.zeros(len(places)), np.diff(starts)
    work = segments.offsets(sizes * sizes * (len(theta) + 1))
    if is_large(int(work[-1])):
        from podium.kernels.compiled.stagewise_model import compute_stage_scores as kernel

        run_in_threads(
            kernel, work, starts, np.ascontiguousarray(places), theta, distance == "kendall", NEAR, scores
        )
        return scores
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        scores[a:b] = _score_query(places[a:b], theta, distance == "kendall")
    return scores


def _score_query(places: F8, theta: F8, pairs: bool) -> F8:
    """One query, for small inputs."""
    table = _compute_pair_costs(places, theta) if pairs else _compute_gap_costs(places, theta)
    size, near = len(places), NEAR * len(places) * float(np.abs(theta).sum())
    left, blocks, above = np.arange(size), [], 0
    cost = table.sum(axis=0)
    while len(left):
        cost = cost if pairs else table[above]
        taken = left[cost[left] <= cost[left].min() + near]
        while pairs and len(taken) > 1:
            inside = table[np.ix_(taken, taken)].sum(axis=0)
            best = taken[inside <= inside.min() + near]
            if len(best) == len(taken):
                break
            taken = best
        blocks.append(taken)
        above += len(taken)
        left = np.setdiff1d(left, taken, assume_unique=True)
        if pairs:
            for item in taken.tolist():
                cost -= table[item]
    return score_blocks(blocks, size)


def _compute_pair_costs(places: F8, theta: F8) -> F8:
    """Cost of x while y is left, at (y, x): the total theta of the experts that put y above x, ties half."""
    table = np.zeros((len(places), len(places)))
    for k in range(len(theta)):
        place = places[:, k]
        table += theta[k] * ((place[:, None] < place) + 0.5 * (place[:, None] == place))
    np.fill_diagonal(table, 0.0)
    return table


def _compute_gap_costs(places: F8, theta: F8) -> F8:
    """Cost of x at each stage, at (stage, x)."""
    size = len(places)
    table = np.zeros((size, size))
    for stage in range(1, size + 1):
        for k in range(len(theta)):
            table[stage - 1] += theta[k] * compute_footrule_distances(places[:, k], stage, size)
    return table
