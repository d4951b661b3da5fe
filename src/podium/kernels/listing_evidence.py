"""Whether experts chose the items of their lists, or were assigned them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import B1, F8
from podium.kernels.expert_agreement import QueryLists

__all__ = ["are_items_assigned", "are_items_drawn", "compare_ends_with_unlisted", "measure_listing"]

MOST_LISTS = 3_000  # that are compared, about
MOST_PAIRS = 1_000_000  # of items, of all queries
FEWEST_LISTS = 10  # below which nothing is shown
END = 0.2  # of a list, at least one item
ERRORS = 2.0  # standard errors of the benefit of the doubt
BELOW = 0.25  # of the distance of the first items from the unlisted ones
ENOUGH_LISTS = 50  # of a query, from which the overlaps of its lists are judged
MOST_PRODUCTS = 50_000_000  # lists x lists x items, of all queries
INDEPENDENT = 1.1  # variance of overlaps, in units of that of independent draws
EXPLAINED = 0.75  # share of the variance of the items' places above which popularity and places are one thing
UNEXPLAINED = 5.0  # standard errors of the rest


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
    small = [one for one in queries if one.rank.shape[1] ** 2 <= MOST_PAIRS and (one.rank == 0).any()]
    lists, pairs = sum(len(one.expert) for one in small), sum(one.rank.shape[1] ** 2 for one in small)
    step = max(1, -(-lists // MOST_LISTS), -(-pairs // MOST_PAIRS))
    # a pair counts once, or once per vote: the one is safe where few items have most of the votes, the other
    # where many pairs have a single one
    return all(_are_last_items_below(small[::step], weight, by_vote) for by_vote in (False, True))


def _are_last_items_below(queries: Sequence[QueryLists], weight: F8, by_vote: bool) -> bool:
    tables = [compare_ends_with_unlisted(one, weight, by_vote) for one in queries]
    table = np.concatenate([np.zeros((0, 3)), *tables])
    share, first, last = table[~np.isnan(table).any(axis=1)].T
    if len(share) < FEWEST_LISTS:
        return False
    share = share / share.sum()
    mean = share @ last
    error = np.sqrt(share**2 @ (last - mean) ** 2)
    return bool(mean + ERRORS * error < -BELOW * (share @ first))


class ListingStatistics(NamedTuple):
    """How lists overlap, and how often listed items are ranked."""

    overlap: (
        float  # squared deviations of the overlaps of two lists, in units of their variance were items drawn
    )
    explained: (
        float  # share of the variance of the items' mean places that the log odds of being listed explain
    )
    rest: float  # what they leave of it beyond noise, in standard errors


def are_items_drawn(queries: Sequence[QueryLists]) -> bool:
    """Whether the items of lists look drawn, popular ones more often, rather than chosen by the experts.

    Experts who choose their items either differ in taste, so that those who list an item list others of its kind, or
    agree, so that they rank high what many of them list. Drawn items do neither.

    >>> dice = np.random.default_rng(0)
    >>> ranks = np.zeros((200, 30))
    >>> for rank in ranks:
    ...     some = np.sort(dice.choice(30, 6, replace=False))
    ...     rank[some] = 1 + np.argsort(np.argsort(some + dice.normal(0, 5, 6)))
    >>> are_items_drawn([QueryLists(np.arange(200), ranks)])
    True
    """
    found = measure_listing(queries)
    if found is None:
        return False
    return found.overlap <= INDEPENDENT and found.explained < EXPLAINED and found.rest > UNEXPLAINED


def measure_listing(queries: Sequence[QueryLists]) -> ListingStatistics | None:
    """How the lists of large queries overlap, and what popularity says about places; None without such queries."""
    large = [one.rank for one in queries if len(one.expert) >= ENOUGH_LISTS]
    products = sum(len(rank) ** 2 * rank.shape[1] for rank in large)
    overlaps, places = np.zeros(2), np.zeros(6)
    for rank in large[:: max(1, -(-products // MOST_PRODUCTS))]:
        most = max(ENOUGH_LISTS, int((MOST_PRODUCTS / rank.shape[1]) ** 0.5))
        some = rank[:: -(-len(rank) // most)]
        overlaps += _compare_overlaps(some > 0)
        places += _compare_places(some)
    popularity, product, total, items, squares, degrees = places.tolist()
    if overlaps[1] <= 0 or popularity <= 0 or degrees <= 0 or squares <= 0 or items < 2:
        return None
    noise = squares / degrees  # the variance of an item's places
    explained = max(product**2 / popularity - noise, 0.0)
    rest = total - product**2 / popularity - (items - 1.0) * noise
    share = explained / (explained + rest) if rest > 0 else 1.0
    return ListingStatistics(overlaps[0] / overlaps[1], share, rest / (noise * (2.0 * (items - 1.0)) ** 0.5))


def _compare_overlaps(listed: B1) -> tuple[float, float]:
    """Squared deviations of the numbers of items that two lists share, and their variance, were items drawn.

    Drawn are the items of one list, as many as it has and by how many lists have them; those of the other are given.
    """
    frequency, size = listed.mean(axis=0), listed.sum(axis=1)
    partial = (size > 0) & (size < (frequency > 0).sum())
    listed, size = listed[partial].astype(np.float64), size[partial]
    chance = np.clip(size[:, None] * frequency / frequency.sum(), 0.0, 1.0)
    spread = chance * (1.0 - chance)
    # of as many items as the list has: their variances, less the share that the fixed number takes away
    within = spread @ listed.T
    variance = within * (1.0 - within / np.maximum(spread.sum(axis=1, keepdims=True), 1e-12))
    squares = (listed @ listed.T - chance @ listed.T) ** 2
    counted = (variance > 1e-3) & ~np.eye(len(listed), dtype=np.bool_)
    return float(squares[counted].sum()), float(variance[counted].sum())


def _compare_places(rank: F8) -> F8:
    """Of items by their number of lists: sums of squares and products of popularity and mean place, and their number.

    Then the squared deviations of places from the mean of their item, and the degrees of freedom of these. A place
    is between one half, at the top of a list, and minus one half; popularity is the log odds of being listed.
    """
    listed = rank > 0
    size = listed.sum(axis=1, keepdims=True)
    listed &= size > 1
    count = listed.sum(axis=0)
    place = np.where(listed, 0.5 - (rank - 1.0) / np.maximum(size - 1.0, 1.0), 0.0)
    mean = place.sum(axis=0) / np.maximum(count, 1)
    popularity = np.log((count + 0.5) / (len(rank) - count + 0.5))
    rows = max(int(count.sum()), 1)
    x, y = (value - count @ value / rows for value in (popularity, mean))
    squares = float((((place - mean) * listed) ** 2).sum())
    ranked = int((count > 0).sum())
    return np.array(
        [count @ x**2, count @ (x * y), count @ y**2, max(ranked - 1, 0), squares, max(rows - ranked, 0)]
    )


def compare_ends_with_unlisted(query: QueryLists, weight: F8, by_vote: bool) -> F8:
    """By list of an expert with a weight: this weight; the preference of others for its first, and its last, items.

    Compared are the items at an end of the list with all that the list lacks: the weight of the lists with both that
    prefer the former, less that of the others, as a share of both; over all votes, or the mean over the pairs. NaN
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
    more, count = ahead - ahead.T, ahead + ahead.T
    if not by_vote:
        voted = count > 1e-9 * own.max(initial=0.0)
        more, count = np.divide(more, count, out=np.zeros_like(more), where=voted), voted * 1.0
    table = np.full((len(own), 3), np.nan)
    table[:, 0] = own
    for column, ends in enumerate((first, last), 1):
        votes = ((ends @ count) * ~listed).sum(axis=1)
        known = votes > 1e-9 * own.max(initial=0.0)
        np.divide(((ends @ more) * ~listed).sum(axis=1), votes, out=table[:, column], where=known)
    return table
