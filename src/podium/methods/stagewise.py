"""The coset-permutation stagewise model: the ranking is filled from the top, one item per stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Choice
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.stagewise_model import DISTANCES, compute_stage_scores
from podium.methods.base import LIST_FORMS, Aggregator, Tags
from podium.methods.costs import Cost, table_cost

__all__ = ["Cps", "Distance", "mean_places", "score_by_stages", "stage_costs"]

Distance = Annotated[str, Choice(*DISTANCES), "distance between rankings"]


def mean_places(preferences: Preferences, codes: I8, width: int) -> F8:
    """The place of every slot in the list of each of `width` experts; unlisted items share the places left.

    `codes` numbers the experts, -1 for excluded ones. An expert without a list for a query puts all its
    items at one place, so it has no effect there.
    """
    lists, index = preferences.lists, preferences.index
    size = index.sizes.astype(np.float64)
    places = np.repeat((size[index.query_of_slot] + 1)[:, None] / 2, width, axis=1)
    expert = codes[lists.expert]
    known = np.flatnonzero(expert >= 0)
    left_over = (lists.lengths + 1 + size[lists.query_of_list]) / 2
    _, slots = segments.gather_segments(index.starts, lists.query_of_list[known])
    reach = index.sizes[lists.query_of_list[known]]
    places[slots, np.repeat(expert[known], reach)] = np.repeat(left_over[known], reach)
    rows = np.flatnonzero(expert[lists.list_of_row] >= 0)
    held = segments.fractional_ranks(lists.starts, lists.rank)
    places[lists.item[rows], expert[lists.list_of_row[rows]]] = held[rows]
    return places


def stage_costs(preferences: Preferences, distance: str) -> list[Cost]:
    """Cost of `score_by_stages`: a table of all pairs, except for Spearman's distance."""
    if distance == "spearman":
        return []
    remedy = "keep fewer items per query, or use distance='spearman', which needs no table of pairs"
    return table_cost(preferences.index.sizes, 8, remedy=remedy)


def score_by_stages(preferences: Preferences, codes: I8, theta: F8, distance: str) -> F8:
    """Scores of the stagewise ranking with a weight theta per known expert."""
    places = mean_places(preferences, codes, len(theta))
    return compute_stage_scores(places, preferences.index.starts, theta, distance)


@dataclass(kw_only=True, eq=False, repr=False)
class Cps(Aggregator):
    """Fills the ranking from the top, at each stage with the item of lowest total cost to the experts.

    The cost of an item is the weighted sum over experts of the coset distance: the mean distance between the
    expert's list and all rankings that continue with the item. Items that an expert does not list share its
    remaining places. `weighted_cps` learns the weights.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], method="cps").ranking
    ['a', 'b', 'c']
    """

    name = "cps"
    citation = "Qin, Geng & Liu, NIPS 2010"
    tags = Tags(accepts=LIST_FORMS, pairwise="items")

    distance: Distance = "kendall"

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return stage_costs(preferences, self.distance)

    def _scores(self, preferences: Preferences, weights: F8) -> F8:
        codes = np.where(weights > 0, np.arange(len(weights)), -1)
        return score_by_stages(preferences, codes, weights, self.distance)
