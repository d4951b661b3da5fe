"""Methods on normalized ranks, the place of an item over the number of items: order statistics, and a mean.

If an expert ordered the items at random, the normalized ranks of an item would be uniform on (0, 1). An item
that several experts place near the top has order statistics too small for that.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.params import Choice, Fixed, Range
from podium.data.preferences import Preferences
from podium.kernels import order_statistics, segments
from podium.kernels.dispatch import B1, F8, I4, I8
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.positional import expand_places

__all__ = ["GeometricMeanRank", "RobustRankAggregation", "StuartStatistic"]

LAST = 1.0  # the normalized rank of an unlisted item


@dataclass(kw_only=True, eq=False, repr=False)
class NormalizedRankMethod(Aggregator):
    """Base of the methods on normalized ranks."""

    missing: Annotated[
        str,
        Choice("last", "ignore"),
        "unlisted items: the last rank, or none, each list then having its own number of items",
    ] = "last"
    population: Annotated[
        int,
        Range(0, 2**31 - 1),
        Fixed(),
        "number of items that the lists select from; 0: the items of the query",
    ] = 0

    def _normalize_ranks(self, preferences: Preferences) -> tuple[I4, F8, I8]:
        """Item, normalized rank and list of every row."""
        lists, sizes = preferences.lists, preferences.index.sizes
        place = segments.fractional_ranks(lists.starts, lists.rank)
        which = lists.list_of_row
        if self.missing == "ignore":
            return lists.item, place / np.maximum(lists.lengths, 1)[which], which
        size = np.maximum(sizes[lists.query_of_list], self.population)
        return expand_places(preferences, place / np.maximum(size, 1)[which], np.full(len(lists), LAST))


@dataclass(kw_only=True, eq=False, repr=False)
class OrderStatisticMethod(NormalizedRankMethod):
    """Base of the methods on all ranks of an item, sorted; what they mean depends on the number of experts,
    so that there are no weights.
    """

    tags = Tags(accepts=LIST_FORMS, weighted=False)
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "doubling": "a probability depends on the number of experts, and not in proportion to it",
    }

    @abstractmethod
    def _compute_log_chance(self, ranks: F8) -> F8:
        """Logarithm of the chance of every row of a table of sorted normalized ranks; it may exceed 0."""

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        item, rank, which = self._normalize_ranks(preferences)
        counted = (weights > 0)[preferences.lists.expert][which]  # `explain` excludes an expert by weight 0
        slots = len(preferences.index.items)
        log_chance = np.zeros(slots)
        for rows, ranks in order_statistics.group_by_count(item[counted], rank[counted], slots):
            log_chance[rows] = self._compute_log_chance(ranks)
        absent: B1 = np.bincount(item[counted], minlength=slots) == 0
        # the terms of a logarithm near 0 cancel, hence the floor
        return Outcome(-log_chance / np.log(10), absent, floor=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class RobustRankAggregation(OrderStatisticMethod):
    """Minus the decimal logarithm of the p-value that some of the ranks of an item are too small for chance.

    The k-th smallest of n normalized ranks is compared with that of n uniform numbers. The smallest of the n
    p-values, times n, is the p-value of the item (Bonferroni); `Consensus.p_values` holds it, limited to 1.
    The score is not limited, so that it orders such items as well. `population` matters for top-k lists: the
    p-values are right only if it is near the number of items that each list selects from.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "a", "d"], 3: ["b", "e"]}})
    >>> consensus = RobustRankAggregation(population=20).aggregate(p)
    >>> consensus.ranking("q"), consensus.p_values.round(4).tolist()
    (['b', 'a', 'e', 'c', 'd'], [0.084, 0.003, 1.0, 1.0, 0.813])
    """

    name = "rra"
    aliases = ("robust_rank_aggregation",)
    citation = "Kolde, Laur, Adler & Vilo, Bioinformatics 2012"

    def _compute_log_chance(self, ranks: F8) -> F8:
        smallest = order_statistics.compute_smallest_log_chance(ranks)
        return np.asarray(smallest + np.log(ranks.shape[1]), np.float64)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        outcome = super()._scores(preferences, weights)
        return replace(outcome, p_values=np.minimum(10.0**-outcome.scores, 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class StuartStatistic(OrderStatisticMethod):
    """Minus the decimal logarithm of the probability that sorted uniform ranks are all at most those observed.

    It considers all ranks of an item jointly, where `rra` takes the most extreme one. The probability is a
    statistic, not a p-value: among random lists of six experts 38 % of the items have one below 0.05.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "a", "d"], 3: ["b", "e"]}})
    >>> consensus = StuartStatistic(population=20).aggregate(p)
    >>> consensus.ranking("q"), (10.0 ** -consensus.scores).round(4).tolist()
    (['b', 'a', 'e', 'c', 'd'], [0.0211, 0.0005, 0.3859, 0.3859, 0.271])
    """

    name = "stuart"
    tags = Tags(
        accepts=LIST_FORMS, weighted=False, cost="iterate"
    )  # its steps grow with the square of the lists
    citation = "Stuart, Segal, Koller & Kim, Science 2003; Aerts et al., Nature Biotechnology 2006"

    def _compute_log_chance(self, ranks: F8) -> F8:
        return order_statistics.compute_joint_log_chance(ranks)


@dataclass(kw_only=True, eq=False, repr=False)
class GeometricMeanRank(NormalizedRankMethod):
    """Minus the (weighted) geometric mean of the normalized ranks of an item.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c", "d"], 2: ["b", "c", "a", "d"]}})
    >>> GeometricMeanRank().aggregate(p).ranking("q")
    ['b', 'a', 'c', 'd']
    """

    name = "geometric_mean"
    aliases = ("geom_mean",)
    citation = "the method geom.mean of RobustRankAggreg; Kolde, Laur, Adler & Vilo, Bioinformatics 2012"
    tags = Tags(accepts=LIST_FORMS)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        item, rank, which = self._normalize_ranks(preferences)
        weight = weights[preferences.lists.expert][which]
        slots = len(preferences.index.items)
        total = np.bincount(item, weight, slots)
        absent: B1 = total <= 0
        mean_log = np.bincount(item, weight * np.log(rank), slots) / np.where(absent, 1.0, total)
        return Outcome(-np.exp(mean_log), absent)
