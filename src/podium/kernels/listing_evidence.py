"""Whether experts chose the items of their lists, or were assigned them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.expert_agreement import QueryLists

__all__ = ["are_items_assigned", "compare_ends_with_unlisted"]

MOST_LISTS = 3_000  # that are compared, about
MOST_PAIRS = 1_000_000  # of items, of all queries
FEWEST_LISTS = 10  # below which nothing is shown
END = 0.2  # of a list, at least one item
ERRORS = 2.0  # standard errors of the benefit of the doubt
BELOW = 0.25  # of the distance of the first items from the unlisted ones


def are_items_assigned(queries: Sequence[QueryLists], weight: F8) -> bool:
    """Whether the last items of lists are worse than unlisted ones, so that the experts cannot have chosen them.

    If a list holds the best items, its last fifth is still better than what it leaves out; of items that were
    assigned, the last fifth is about as far below the others as the first fifth is above. Judges of that are the
    pairs in other lists. `weight` is by expert. Few lists, or queries too large to compare, show nothing.

    >>> import itertools
    >>> ranks = [[(i in chosen) * (sum(j < i for j in chosen) + 1.0) for i in range(6)]
    ...          for chosen in itertools.combinations(range(6), 3)]
    >>> are_items_assigned([QueryLists(np.arange(20), np.array(ranks))], np.ones(20))
    True
    """
    small = [one for one in queries if one.rank.shape[1] ** 2 <= MOST_PAIRS]
    lists, pairs = sum(len(one.expert) for one in small), sum(one.rank.shape[1] ** 2 for one in small)
    step = max(1, -(-lists // MOST_LISTS), -(-pairs // MOST_PAIRS))
    table = np.concatenate(
        [np.zeros((0, 3)), *(compare_ends_with_unlisted(one, weight) for one in small[::step])]
    )
    share, first, last = table[~np.isnan(table).any(axis=1)].T
    if len(share) < FEWEST_LISTS:
        return False
    share = share / share.sum()
    mean = share @ last
    error = np.sqrt(share**2 @ (last - mean) ** 2)
    return bool(mean + ERRORS * error < -BELOW * (share @ first))


def compare_ends_with_unlisted(query: QueryLists, weight: F8) -> F8:
    """By list of an expert with a weight: this weight; the preference of others for its first, and its last, items.

    Compared are the items at an end of the list with all that the list lacks: the mean, over the pairs of items that
    some list has, of the weight of the lists that prefer the former, less that of the others, as a share of both. NaN
    where there is no such pair.
    """
    own = weight[query.expert]
    rank, own = query.rank[own > 0], own[own > 0]
    listed = rank > 0
    ahead = np.zeros((rank.shape[1], rank.shape[1]))
    first, last = np.zeros_like(rank), np.zeros_like(rank)
    for row, by in enumerate(own.tolist()):
        items = np.flatnonzero(listed[row])
        places = rank[row, items]
        ahead[np.ix_(items, items)] += by * (places[:, None] < places)
        if len(items) > 1:
            ordered, end = np.sort(places), max(1, int(END * len(items)))
            if (
                ordered[end - 1] < ordered[end] and ordered[-end - 1] < ordered[-end]
            ):  # else ties decide what ends it
                first[row, items] = places < ordered[end]
                last[row, items] = places > ordered[-end - 1]
    both = ahead + ahead.T
    known = both > 1e-9 * own.max(initial=0.0)
    preference = np.divide(ahead - ahead.T, both, out=np.zeros_like(ahead), where=known)
    table = np.full((len(own), 3), np.nan)
    table[:, 0] = own
    for column, ends in enumerate((first, last), 1):
        count = ((ends @ known) * ~listed).sum(axis=1)
        np.divide(((ends @ preference) * ~listed).sum(axis=1), count, out=table[:, column], where=count > 0)
    return table
