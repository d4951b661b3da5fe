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

from podium._core import stagewise_model as core
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, run_in_threads

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
        # the number of items before plus half of those at the same place
        below = (places[None, :, :] < places[:, None, :]).sum(axis=1)
        equal = (places[None, :, :] == places[:, None, :]).sum(axis=1)
        return np.asarray(below + (equal - 1) / 2, np.float64)
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
    given = (starts, np.ascontiguousarray(places), theta, distance == "kendall", NEAR, scores)
    run_in_threads(core.compute_stage_scores, work, *given)
    return scores
