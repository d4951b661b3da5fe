"""Signs of a list's quality for its query: agreement with the other lists, length, scores."""

from __future__ import annotations

import numpy as np

from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8
from podium.kernels.list_agreement import compute_consensus_correlations
from podium.metrics.agreement import compute_taus

__all__ = ["LIST_FEATURES", "build_list_features"]

DEPTHS = (5, 20, 100)  # places of which the overlap is measured
STEEP, FLAT = 0.0, 60.0  # agreement is measured on 1 / rank and 1 / (60 + rank)
TOP = 10  # scores that count as the top of a list
LIST_FEATURES = (
    *(f"overlap@{depth}" for depth in DEPTHS),
    "agreement",
    "trusted agreement, top",
    "trusted agreement",
    "trusted tau",
    "length",
    "coverage",
    "gaps",
    "score gap",
    "score top",
    "score deviation",
)


def build_list_features(preferences: Preferences, trust: F8) -> F8:
    """One row per list, one column per name in `LIST_FEATURES`; computed query by query, all queries at once.

    `trust` has one weight per expert. Experts of weight 0 are in no consensus; overlaps and the plain agreement
    count the other experts equally, and the trusted ones by their weights. Every consensus leaves the list
    itself out. Features of scores are 0 for lists without scores.
    """
    lists, index = preferences.lists, preferences.index
    place = segments.fractional_ranks(lists.starts, lists.rank)
    weight = trust[lists.expert]
    equal = (weight > 0).astype(np.float64)

    def compare(value: F8, by: F8) -> F8:
        return compute_consensus_correlations(
            lists.list_of_row, lists.item, value, lists.query_of_list, index.query_of_slot, by, by
        )

    rank = lists.rank.astype(np.float64)
    steep, flat = 1.0 / (STEEP + rank), 1.0 / (FLAT + rank)
    length = lists.lengths.astype(np.float64)
    # Kendall's tau between every list and the consensus of the others, over the items that they list too
    slots, which = len(index.items), lists.list_of_row
    row_weight = weight[which]
    others = np.bincount(lists.item, flat * row_weight, slots)[lists.item] - flat * row_weight
    counted = np.bincount(lists.item, row_weight > 0, slots)[lists.item] - (row_weight > 0)
    shared = np.flatnonzero(counted > 0)
    starts = segments.offsets(np.bincount(which[shared], minlength=len(lists)))
    # equal sums of equal terms may differ in their last bits
    taus = compute_taus(starts, -lists.rank[shared].astype(np.float64), np.round(others[shared], 12))
    columns = [
        *(compare((place <= depth).astype(np.float64), equal) for depth in DEPTHS),
        compare(flat, equal),
        compare(steep, weight),
        compare(flat, weight),
        np.asarray(np.nan_to_num(taus), np.float64),
        np.log1p(length),
        length / np.maximum(index.sizes[lists.query_of_list], 1),
        np.log(np.maximum(lists.last_rank, 1) / np.maximum(length, 1.0)),
        *_compute_score_features(lists),
    ]
    return np.stack(columns, axis=1)


def _compute_score_features(lists: Lists) -> tuple[F8, F8, F8]:
    """Gap between the first two scores, mean of the top minus the mean, and deviation of the top.

    The first is a share of the range, the second is in standard deviations, the third a share of the largest
    score (as in NQC, where the score of the collection is the unit).
    """
    nothing = np.zeros(len(lists))
    if lists.score is None or not lists.rows:
        return nothing, nothing, nothing
    given = np.nan_to_num(lists.score)
    stats = segments.compute_list_statistics(lists.starts, given)
    length, which = lists.lengths, lists.list_of_row
    at = np.arange(lists.rows) - lists.starts[which]
    unit = np.maximum(np.abs(stats.high), np.abs(stats.low))
    spread = stats.high - stats.low
    usable = (length > 1) & (spread > 1e-12 * unit)
    if lists.score is not given:
        usable &= np.bincount(which, np.isnan(lists.score), len(lists)) == 0
    second = given[np.minimum(lists.starts[:-1] + 1, lists.rows - 1)]
    gap = np.where(usable, (stats.high - second) / np.where(usable, spread, 1.0), 0.0)
    top = np.flatnonzero(at < TOP)
    # relative to the list's mean: scores can be large and close to each other
    off = given[top] - stats.mean[which[top]]
    count = np.maximum(np.minimum(length, TOP), 1)
    mean = np.bincount(which[top], off, len(lists)) / count
    square = np.bincount(which[top], off * off, len(lists)) / count
    deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    lift = np.where(usable, mean / np.where(usable, stats.deviation, 1.0), 0.0)
    return gap, lift, np.where(usable, deviation / np.where(usable, unit, 1.0), 0.0)
