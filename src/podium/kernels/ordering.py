"""From scores to an order in every query, with explicit ties.

Neighbors in the order that differ by less than `tolerance`, relative to the larger of them or to `floor`
times the largest score of their query, are tied: sums taken in another order differ in the last bits, and an
order decided by those bits would depend on ids. Sums that cancel keep the rounding error of their terms, so a
method whose scores can cancel provides the `magnitude` of its terms, which then counts as a score of the
query. Tied scores are replaced by the best of their group, so that ties are exactly equal scores afterwards.
"""

from __future__ import annotations

import numpy as np

from podium._core import ordering as core
from podium.kernels.dispatch import B1, F8, I4, I8, run_in_threads

__all__ = ["FLOOR", "TOLERANCE", "rank_order"]

TOLERANCE = 1e-12
FLOOR = 1 / 64  # fraction of the largest magnitude below which differences are measured against that fraction


def rank_order(
    scores: F8,
    starts: I8,
    tie_key: I4 | None = None,
    tolerance: float = TOLERANCE,
    floor: float = FLOOR,
    magnitude: float | F8 = 0.0,
    *,
    overwrite: bool = False,
) -> tuple[F8, I4, B1]:
    """Sort each query by falling score, ties by ascending `tie_key` (default: by slot, that is by id).

    `magnitude` is one number for all queries, or one per query. Returns the snapped scores by slot, the slots
    in order, and whether the slot at each place is tied. `overwrite` snaps the given scores in place, which saves
    an array where nothing else refers to them.
    """
    least: F8 = np.broadcast_to(np.asarray(magnitude, np.float64), len(starts) - 1)
    scores = np.ascontiguousarray(scores, np.float64)
    snapped = scores if overwrite and scores.flags.writeable else np.empty(len(scores))
    order, tied = np.empty(len(scores), np.int32), np.empty(len(scores), np.bool_)
    made = (snapped, order, tied)
    run_in_threads(
        core.rank_order, starts, starts, scores, *made, tie_key, tolerance, floor, np.ascontiguousarray(least)
    )
    return snapped, order, tied
