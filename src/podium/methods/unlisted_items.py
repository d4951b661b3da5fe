"""How much being listed says about an item, where the experts may not have chosen the items of their lists."""

from __future__ import annotations

import numpy as np

from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.metrics.agreement import compute_pair_accuracies

__all__ = ["has_partial_lists", "measure_listing_evidence", "sample_lists"]

MOST_ROWS = 50_000  # of the lists that are predicted
FEWEST_LISTS = 10  # below which nothing is shown
SURE = 2.0  # standard errors
DIGITS = 12  # equal sums added in another order stay equal


def has_partial_lists(preferences: Preferences) -> bool:
    """Whether some list has fewer items than its query."""
    lists = preferences.lists
    return bool(((lists.lengths > 0) & (lists.lengths < preferences.index.sizes[lists.query_of_list])).any())


def sample_lists(lists: Lists, queries: I8) -> I8:
    """Lists of these queries, with about 50,000 rows at most; a smaller query keeps all its lists, as they predict
    each other."""
    rows = lists.row_starts[queries + 1] - lists.row_starts[queries]
    _, chosen = segments.gather_segments(
        lists.query_starts, queries[:: -(-int(rows.sum()) // MOST_ROWS) or 1]
    )
    return chosen[:: -(-int(lists.lengths[chosen].sum()) // (2 * MOST_ROWS)) or 1]


def measure_listing_evidence(lists: Lists, chosen: I8, weights: F8, order: F8) -> float:
    """How well being listed by the others predicts the order of a list, as a share of how well their order does.

    Each of the `chosen` lists is predicted from the others of its query, by the number of those that list an item
    and by the mean of its relative places in them. Both count by the share of the pairs in the right order beyond
    one half, the first with two standard errors added. The result is between 0, for items that were assigned to the
    experts, and 1, for lists that keep the best items, or for fewer than ten lists, which show nothing. By expert,
    `weights` are those of the lists, and `order` the shares of their order that count: reversed lists predict
    nothing, and are not predicted.

    >>> assigned = Preferences.from_lists({"q": {k: sorted(("abcdefgh" * 2)[k % 8 :][:3]) for k in range(16)}})
    >>> best = Preferences.from_lists({"q": {k: "abcdefgh"[: 2 + k % 5] for k in range(20)}})
    >>> ones, every = np.ones(20), np.arange(16)
    >>> [measure_listing_evidence(p.lists, every, ones, ones) > 0.5 for p in (assigned, best)]
    [False, True]
    """
    starts, rows = segments.gather_segments(lists.starts, chosen)
    lengths, expert = np.diff(starts), lists.expert[chosen]
    if not len(rows):
        return 1.0
    item, rank = lists.item[rows], lists.rank[rows].astype(np.float64)
    place = 0.5 - (rank - 0.5) / np.repeat(lengths, lengths)
    listing, ordering = (np.repeat(by_expert[expert], lengths) for by_expert in (weights, weights * order))
    # what the other lists say: sums without the list itself
    count, total, points = (
        np.bincount(item, value)[item] - value for value in (listing, ordering, ordering * place)
    )
    mean = np.divide(points, total, out=np.zeros_like(points), where=total > 1e-9 * ordering.max())
    by_count, by_mean = (compute_pair_accuracies(starts, x.round(DIGITS), -rank) for x in (count, mean))
    share = (weights * order)[expert]
    known = ~np.isnan(by_count) & (share > 0)
    if known.sum() < FEWEST_LISTS:
        return 1.0
    share, by_count, by_mean = share[known] / share[known].sum(), by_count[known], by_mean[known]
    ordering_gain, listing_gain = share @ by_mean - 0.5, share @ by_count - 0.5
    if ordering_gain <= 0:
        return 1.0
    error = np.sqrt(np.square(share * (by_count - 0.5 - listing_gain)).sum())
    return float(np.clip((listing_gain + SURE * error) / ordering_gain, 0.0, 1.0))
