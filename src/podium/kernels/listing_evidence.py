"""Whether experts chose the items of their lists, or were assigned them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.expert_agreement import QueryLists

__all__ = ["are_items_assigned", "compare_listing_with_order"]

MOST_LISTS = 3_000  # that are compared with the others, about
MOST_PAIRS = 1_000_000  # of items, of all queries
FEWEST_LISTS = 10  # below which nothing is shown
ERRORS = 2.0  # standard errors of the benefit of the doubt
LITTLE = 0.15  # of what the order says


def are_items_assigned(queries: Sequence[QueryLists], weight: F8) -> bool:
    """Whether being listed says next to nothing about an item, so that the items cannot have been chosen.

    An expert who lists A and not B would rank A above B if the list holds its best items, and the other experts who
    list both would agree with that about as often as with the order of the list. Of items that were assigned the
    others prefer either as often. `weight` is by expert. Few lists, or one too large to compare, show nothing.

    >>> import itertools
    >>> ranks = [[(i in chosen) * (sum(j < i for j in chosen) + 1.0) for i in range(6)]
    ...          for chosen in itertools.combinations(range(6), 3)]
    >>> are_items_assigned([QueryLists(np.arange(20), np.array(ranks))] * 5, np.ones(20))
    True
    """
    pairs = [float(rank.shape[1]) ** 2 for _, rank in queries]
    small = [one for one, count in zip(queries, pairs, strict=True) if count <= MOST_PAIRS]
    lists = sum(len(expert) for expert, _ in small)
    step = max(1, -(-lists // MOST_LISTS), int(-(-sum(pairs) // MOST_PAIRS)))
    table = [compare_listing_with_order(one, weight) for one in small[::step]]
    share, order, listing = np.concatenate(table).T if table else np.zeros((3, 0))
    known = (share > 0) & ~np.isnan(order) & ~np.isnan(listing)
    if known.sum() < FEWEST_LISTS:
        return False
    share, order, listing = share[known] / share[known].sum(), order[known], listing[known]
    mean = share @ listing
    error = np.sqrt(share**2 @ (listing - mean) ** 2)
    return bool(mean + ERRORS * error < LITTLE * (share @ order))


def compare_listing_with_order(query: QueryLists, weight: F8) -> F8:
    """By list: its weight, and how far the other lists agree with its order and with its choice, from -1 to 1.

    The agreement is a mean over the pairs of items that some of the others rank: of two items of the list, and of
    one that is in the list and one that is not. NaN where there is none.
    """
    expert, rank = query
    own, listed = weight[expert], rank > 0
    ahead = np.zeros((rank.shape[1], rank.shape[1]))
    items = [np.flatnonzero(row) for row in listed]
    before = [
        (ranks[chosen][:, None] < ranks[chosen]).astype(np.float64)
        for chosen, ranks in zip(items, rank, strict=True)
    ]
    for chosen, pairs, by in zip(items, before, own, strict=True):
        if by > 0:
            ahead[np.ix_(chosen, chosen)] += by * pairs
    least = 1e-9 * own.max(initial=0.0)
    ranked = ahead + ahead.T > least
    preference = np.divide(ahead - ahead.T, ahead + ahead.T, out=np.zeros_like(ahead), where=ranked)
    table = np.full((len(expert), 3), np.nan)
    table[:, 0] = own
    for row, (chosen, pairs, by) in enumerate(zip(items, before, own, strict=True)):
        others = ahead[np.ix_(chosen, chosen)] - by * pairs
        both = others + others.T
        inside = (pairs > 0) & (both > least)
        if by > 0 and inside.any():
            table[row, 1] = ((others - others.T)[inside] / both[inside]).mean()
    # pairs of a listed and an unlisted item, of all lists at once
    chose = listed.astype(np.float64)
    count = ((chose @ ranked) * ~listed).sum(axis=1)
    np.divide(((chose @ preference) * ~listed).sum(axis=1), count, out=table[:, 2], where=count > 0)
    return table
