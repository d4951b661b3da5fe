"""From scores to an order in every query, with explicit ties.

Neighbors in the order that differ by less than `tolerance`, relative to the larger of them or to `floor`
times the largest score of their query, are tied: sums taken in another order differ in the last bits, and an
order decided by those bits would depend on ids. Sums that cancel keep the rounding error of their terms, so a
method whose scores can cancel provides the `magnitude` of its terms, which then counts as a score of the
query. Tied scores are replaced by the best of their group, so that ties are exactly equal scores afterwards.
"""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import B1, F8, I4, I8, is_large, run_in_threads

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
) -> tuple[F8, I4, B1]:
    """Sort each query by falling score, ties by ascending `tie_key` (default: by slot, that is by id).

    `magnitude` is one number for all queries, or one per query. Returns the snapped scores by slot, the slots
    in order, and whether the slot at each place is tied.
    """
    scores = scores + 0.0  # a copy in which -0.0 becomes 0.0: equal scores have equal bytes
    least: F8 = np.broadcast_to(np.asarray(magnitude, np.float64), len(starts) - 1)
    if is_large(len(scores)):
        from podium.kernels.compiled.ordering import rank_order as kernel

        order, tied = np.empty(len(scores), np.int32), np.zeros(len(scores), np.bool_)
        run_in_threads(
            kernel,
            starts,
            starts,
            scores,
            order,
            tied,
            tie_key,
            tolerance,
            floor,
            np.ascontiguousarray(least),
        )
        return scores, order, tied
    return _rank_order(scores, starts, tie_key, tolerance, floor, least)


def _rank_order(
    scores: F8, starts: I8, tie_key: I4 | None, tolerance: float, floor: float, least: F8
) -> tuple[F8, I4, B1]:
    n = len(scores)
    if n == 0:
        return scores, np.zeros(0, np.int32), np.zeros(0, np.bool_)
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    slot = np.arange(n)
    order = np.lexsort((slot, -scores, query))
    sorted_scores = scores[order]
    filled = np.flatnonzero(np.diff(starts))
    largest = least.copy()
    largest[filled] = np.maximum(least[filled], np.maximum.reduceat(np.abs(scores), starts[:-1][filled]))
    gap = np.empty(n, np.bool_)  # whether a new tie group begins at this place
    gap[0] = True
    with np.errstate(over="ignore"):  # scores whose difference overflows are not tied
        step = sorted_scores[:-1] - sorted_scores[1:]
    scale = np.maximum(sorted_scores[:-1], -sorted_scores[1:])  # the larger magnitude of two neighbors
    near = tolerance * np.maximum(scale, floor * largest[query[1:]])
    gap[1:] = (query[1:] != query[:-1]) | (step > near)
    group = np.cumsum(gap) - 1
    snapped = np.empty(n)
    snapped[order] = sorted_scores[np.flatnonzero(gap)][group]
    key = slot if tie_key is None else tie_key
    order = order[np.lexsort((key[order], group))]
    tied = np.bincount(group)[group] > 1
    return snapped, order.astype(np.int32), tied
