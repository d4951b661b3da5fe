"""The ranking with the least Spearman footrule distance to the experts' lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels import assignment, segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import whole_weights
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.positional import MissingRule, expand_places, find_unlisted_ranks

__all__ = ["OptimalFootrule"]

NO_ASSIGNMENT = "keep fewer items per query, or use median_rank, which approximates it without a table"


@dataclass(kw_only=True, eq=False, repr=False)
class OptimalFootrule(Aggregator):
    """The ranking with the least sum of distances between places; score = minus the place in it.

    The distance of a ranking to a list is the sum over the items of the absolute difference of their places
    (Spearman's footrule). The best ranking is an assignment of items to places, which is solved exactly; its
    distance is at most twice that of Kemeny's ranking. The objective is the total distance.

    Optimal rankings are often not unique: ids decide where mean places do not. Items to which the experts give
    the same places can be exchanged, and share the mean of their places in the ranking.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "c", "a"], 3: ["a", "b", "c"]}})
    >>> consensus = OptimalFootrule().aggregate(p)
    >>> consensus.ranking("q"), consensus.diagnostics.objective
    (['a', 'b', 'c'], 4.0)
    """

    name = "footrule"
    aliases = ("optimal_footrule", "spearman_footrule")
    citation = "Dwork, Kumar, Naor & Sivakumar, WWW 2001"
    tags = Tags(accepts=LIST_FORMS, pairwise="items", cost="iterate")
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "renaming_items": "optimal rankings are not unique: ids decide among equal mean places, at the same cost"
    }

    missing: MissingRule = "share"

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 64, cube=2.0, remedy=NO_ASSIGNMENT)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists, index = preferences.lists, preferences.index
        whole, unit = whole_weights(weights)
        place = segments.fractional_ranks(lists.starts, lists.rank)
        item, which = lists.item, lists.list_of_row
        listed = np.bincount(item, whole[lists.expert][which], len(index.items)) > 0
        if self.missing != "ignore":
            unlisted = find_unlisted_ranks(preferences, self.missing)
            item, place, which = expand_places(preferences, place, unlisted)
        weight = whole[lists.expert][which]
        order = np.argsort(index.query_of_slot[item], kind="stable")
        bounds = np.searchsorted(index.query_of_slot[item[order]], np.arange(len(index) + 1))
        scores, total = np.zeros(len(index.items)), 0.0
        for q in np.flatnonzero(index.sizes).tolist():
            here = np.flatnonzero(listed[index.starts[q] : index.starts[q + 1]])
            rows = order[bounds[q] : bounds[q + 1]]
            size = int(index.sizes[q])
            # places are halves, so that twice the cost is whole
            cost = _sum_place_distances(
                item[rows].astype(np.int64) - int(index.starts[q]), place[rows], weight[rows], size
            )
            best_place, least = _find_best_places(cost[here, : len(here)])
            scores[here + int(index.starts[q])] = -best_place
            total += least / 2
        return Outcome(scores, ~listed, objective=total * unit)


def _sum_place_distances(item: I8, place: F8, weight: F8, size: int) -> F8:
    """Twice the weighted distance of each item's places to each of the places 1 .. size."""
    halves = 2 * size + 1
    cell = item * halves + np.rint(2 * place).astype(np.int64)
    at = np.bincount(cell, weight, size * halves).reshape(size, halves)
    total = at.sum(axis=1, keepdims=True)
    start = (at * np.arange(halves)).sum(axis=1, keepdims=True)  # distance from place 0, in halves
    rise = 2 * np.cumsum(at, axis=1)[:, :-1] - total  # from each half to the next
    distance = np.cumsum(np.concatenate((start, rise), axis=1), axis=1)
    return np.asarray(distance[:, 2::2], np.float64)


def _find_best_places(cost: F8) -> tuple[F8, float]:
    """The place of each item in an optimal ranking, shared by items of equal costs, and the cost of the ranking."""
    size = len(cost)
    if size == 0:
        return np.zeros(0), 0.0
    first = assignment.assign_rows(cost)
    least = float(cost[np.arange(size), first.column].sum())
    # an item of the upper half costs less at the first place than at the last
    rank = np.empty(size)
    rank[np.lexsort((np.arange(size), cost[:, 0] - cost[:, -1]))] = np.arange(size)
    # optimal assignments consist of pairs without reduced cost: take the one nearest to that order
    tight = cost - first.row_price[:, None] - first.column_price == 0
    away = (rank[:, None] - np.arange(size)) ** 2
    second = assignment.assign_rows(np.where(tight, away, 2.0 * size**3 + 1))
    _, label = np.unique(cost, axis=0, return_inverse=True)
    mean = np.bincount(label, second.column + 1.0) / np.bincount(label)
    return np.asarray(mean[label], np.float64), least
