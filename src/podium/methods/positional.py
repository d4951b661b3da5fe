"""Methods that use positions only: points by rank, summed over experts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from podium.core.params import Choice, Range, Tune
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8
from podium.kernels.pairwise_votes import whole_weights
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags

if TYPE_CHECKING:
    from podium.data.building.grouped import GroupedColumns
    from podium.kernels.positional_rank import RankedItems
    from podium.methods.base import ColumnRanker

__all__ = [
    "Borda",
    "InverseSquareRank",
    "LogInverseSquareRank",
    "MeanRank",
    "MedianRank",
    "MissingRule",
    "Positional",
    "RankBiasedCentroids",
    "ReciprocalRankFusion",
    "expand_places",
    "find_unlisted_ranks",
    "sum_listing_weights",
]

TABLE_LIMIT = 1_000_000  # ranks up to here are looked up; a longer table could exceed the data


def sum_listing_weights(preferences: Preferences, weights: F8) -> F8:
    """Total weight of the experts that list each item."""
    lists = preferences.lists
    base = weights[lists.expert]
    return lists.sum_affine(None, base, base, len(preferences.index.items))


def tabulate_points(compute_points: Callable[[F8], F8], last: int) -> F8:
    """Points by rank, from 0 (which no item has) to `last`."""
    ranks = np.arange(last + 1, dtype=np.float64)
    ranks[0] = 1.0  # there is no rank 0; this keeps the table finite
    return compute_points(ranks)


def compute_rank_points(lists: Lists, compute_points: Callable[[F8], F8]) -> F8:
    """The points of the rank of every row."""
    last = int(lists.last_rank.max(initial=0))
    if last > TABLE_LIMIT:
        return compute_points(lists.rank.astype(np.float64))
    return tabulate_points(compute_points, last)[lists.rank]


def sum_rank_points(preferences: Preferences, compute_points: Callable[[F8], F8], weights: F8) -> F8:
    """By slot, the sum over experts of weight x points of the rank."""
    lists, slots = preferences.lists, len(preferences.index.items)
    last = int(lists.last_rank.max(initial=0))
    per_list = weights[lists.expert]
    if last > TABLE_LIMIT:
        points = compute_rank_points(lists, compute_points)
        return lists.sum_affine(points, np.zeros(len(lists)), per_list, slots)
    table = tabulate_points(compute_points, last)
    return segments.sum_points(
        lists.query_starts, lists.starts, lists.item, lists.rank, table, per_list, slots
    )


@dataclass(kw_only=True, eq=False, repr=False)
class Positional(Aggregator):
    """Score = sum over experts of weight x points(rank); subclasses define the points of a rank."""

    @classmethod
    def sums_points(cls) -> bool:
        """Whether the score is exactly that sum, so that it can be computed from columns without preferences.

        True where a subclass overrides only the points and the weights.
        """
        steps = ("aggregate", "_compute_outcome", "_compute_raw_outcome", "_scores", "_sums")
        return all(getattr(cls, step) is getattr(Positional, step) for step in steps)

    @abstractmethod
    def _points(self, rank: F8) -> F8:
        """Points for being at these ranks (1 = top)."""

    def points(self, last: int) -> F8:
        """Points by rank, from 0 (which no item has) to `last`."""
        return tabulate_points(self._points, last)

    def column_ranker(self) -> ColumnRanker | None:
        return self._rank_columns if self.sums_points() else None

    def _rank_columns(self, columns: GroupedColumns, top: int | None) -> RankedItems | None:
        from podium.kernels.positional_rank import compute_ranks_by_score, rank_by_points

        row_starts, expert, item, rank, score = columns
        if score is not None:
            rank = compute_ranks_by_score(expert.starts, score, rank)
        weights = self.expert_weights_for(expert.ids)
        rising = expert.codes[1:] > expert.codes[:-1]
        # the order of the experts restarts at the first list of each query
        rising[np.searchsorted(expert.starts, row_starts[1:-1]) - 1] = True
        if rank is None or rank.min() < 1 or rank.max() > TABLE_LIMIT:
            return None
        points = self.points(int(rank.max()))
        # points that are not finite are an error, which the general path reports
        if not (rising.all() and (weights > 0).all() and np.isfinite(points).all()):
            return None
        return rank_by_points(row_starts, expert.starts, item, rank, points, weights[expert.codes], top)

    def _scores(self, preferences: Preferences, weights: F8) -> F8 | Outcome:
        # sums of positive points have a small relative error, however small they are
        return Outcome(self._sums(preferences, weights), floor=0.0, overwrite=True)

    def _sums(self, preferences: Preferences, weights: F8) -> F8:
        return sum_rank_points(preferences, self._points, weights)


@dataclass(kw_only=True, eq=False, repr=False)
class ReciprocalRankFusion(Positional):
    """Sum of 1 / (k + rank) over experts.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a", "d"]], method="rrf").ranking
    ['a', 'b', 'c', 'd']
    """

    name = "rrf"
    aliases = ("reciprocal_rank_fusion",)
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _points(self, rank: F8) -> F8:
        return 1.0 / (self.k + rank)


@dataclass(kw_only=True, eq=False, repr=False)
class RankBiasedCentroids(Positional):
    """Sum of (1 - persistence) persistence^(rank - 1): the probability that a user stops at the item.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "a"], ["b", "c"]], method="rbc(persistence=0.5)").scores
    [1.25, 0.75, 0.25]
    """

    name = "rbc"
    aliases = ("rank_biased_centroids",)
    citation = "Bailey, Moffat, Scholer & Thomas, SIGIR 2017"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    persistence: Annotated[
        float, Range(0.0, 0.999999), Tune(0.5, 0.99), "probability of continuing to the next item"
    ] = 0.9

    def _points(self, rank: F8) -> F8:
        return np.asarray((1.0 - self.persistence) * self.persistence ** (rank - 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class InverseSquareRank(Positional):
    """Sum of 1 / rank^2, times the (weighted) number of experts that list the item.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b"]], method="isr").scores
    [2.5, 1.0]
    """

    name = "isr"
    aliases = ("inverse_square_rank",)
    citation = "Mourao, Martins & Magalhaes, Comput. Med. Imaging Graph. 2015"
    tags = Tags(accepts=LIST_FORMS)

    def _points(self, rank: F8) -> F8:
        return 1.0 / (rank * rank)

    def _sums(self, preferences: Preferences, weights: F8) -> F8:
        return super()._sums(preferences, weights) * sum_listing_weights(preferences, weights)


@dataclass(kw_only=True, eq=False, repr=False)
class LogInverseSquareRank(InverseSquareRank):
    """Sum of 1 / rank^2, times log(sigma + number of experts that list the item).

    With `sigma` 0, the published form, all items listed by one expert only score 0.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b"]], method="log_isr").ranking
    ['b', 'a']
    """

    name = "log_isr"
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "doubling": "log(2n) is not proportional to log(n): the number of experts counts less than linearly",
        "weight_two": "the logarithm counts experts, not weight",
    }

    sigma: Annotated[float, Range(0, 1), "distinguishes items listed by one expert only"] = 0.01

    def _sums(self, preferences: Preferences, weights: F8) -> F8:
        points = Positional._sums(self, preferences, weights)
        count = sum_listing_weights(preferences, (weights > 0).astype(np.float64))
        return np.where(count > 0, points * np.log(self.sigma + np.maximum(count, 1.0)), 0.0)


def expand_places(preferences: Preferences, place: F8, unlisted: F8) -> tuple[I4, F8, I8]:
    """One row per list and item of its query: the item, its place (by list where unlisted), and the list."""
    lists, index = preferences.lists, preferences.index
    offsets, cell = segments.gather_segments(index.starts, lists.query_of_list)
    sizes = np.diff(offsets)
    every = np.repeat(unlisted, sizes)
    base = (offsets[:-1] - index.starts[:-1][lists.query_of_list])[lists.list_of_row]
    every[base + lists.item] = place
    return cell.astype(np.int32), every, np.repeat(np.arange(len(lists)), sizes)


def find_unlisted_ranks(preferences: Preferences, missing: str) -> F8:
    """Rank of an unlisted item in each list: the mean of the remaining places, or the last place."""
    lists = preferences.lists
    size = preferences.index.sizes[lists.query_of_list].astype(np.float64)
    return (lists.lengths + 1 + size) / 2 if missing == "share" else size


MissingRule = Annotated[str, Choice("share", "last", "ignore"), "rank of items that an expert does not list"]


@dataclass(kw_only=True, eq=False, repr=False)
class Borda(Aggregator):
    """Points = items placed below, summed over experts.

    With M items and a list of n: `missing="share"` gives every unlisted item the mean of the remaining
    points, (M - n - 1) / 2; `"last"` gives it none; `"ignore"` restricts an expert to its n items, so that
    the bottom of a list is worth as little as being unlisted. `reversed_lists` reads every list in reverse.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a"]], method="borda").scores
    [3.0, 3.0, 0.0]
    """

    name = "borda"
    aliases = ("borda_count", "bordafuse")
    citation = "de Borda 1781; Aslam & Montague, SIGIR 2001"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    missing: MissingRule = "share"
    reversed_lists: Annotated[bool, "read the last item of every list as the best"] = False

    def _scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, sizes = preferences.lists, preferences.index.sizes
        place = segments.fractional_ranks(lists.starts, lists.rank)
        weight = weights[lists.expert]
        n, size = lists.lengths.astype(np.float64), sizes[lists.query_of_list].astype(np.float64)
        # points of the item at place p are top - p, or, reversed, top - (n + 1 - p)
        top = n if self.missing == "ignore" else size
        sign = 1.0 if self.reversed_lists else -1.0
        base = top - (n + 1 if self.reversed_lists else 0.0)
        shared = (size - n - 1) / 2 if self.missing == "share" else np.zeros(len(lists))
        total = lists.sum_affine(place, weight * (base - shared), weight * sign, len(preferences.index.items))
        everyone = np.bincount(lists.query_of_list, weights=weight * shared, minlength=len(sizes))
        return total + np.repeat(everyone, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class MeanRank(Aggregator):
    """Minus the mean place over experts; with `missing="share"` or `"last"` the same order as Borda.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a"]], method="mean_rank(missing='ignore')").scores
    [-1.5, -1.5, -3.0]
    """

    name = "mean_rank"
    citation = "de Borda 1781"
    tags = Tags(accepts=LIST_FORMS)

    missing: MissingRule = "share"

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists, sizes = preferences.lists, preferences.index.sizes
        place = segments.fractional_ranks(lists.starts, lists.rank)
        weight = weights[lists.expert]
        count = sum_listing_weights(preferences, weights)
        other = (
            np.zeros(len(lists))
            if self.missing == "ignore"
            else find_unlisted_ranks(preferences, self.missing)
        )
        total = lists.sum_affine(place, -weight * other, weight, len(count))
        if self.missing != "ignore":
            everyone = np.bincount(lists.query_of_list, weights=weight * other, minlength=len(sizes))
            list_weights = np.bincount(lists.query_of_list, weights=weight, minlength=len(sizes))
            total, count = total + np.repeat(everyone, sizes), np.repeat(list_weights, sizes)
        absent: B1 = count <= 0
        return Outcome(-total / np.where(absent, 1.0, count), absent)


@dataclass(kw_only=True, eq=False, repr=False)
class MedianRank(Aggregator):
    """Minus the (weighted) median place over experts.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]], method="median_rank").scores
    [-1.0, -2.0, -3.0]
    """

    name = "median_rank"
    citation = "Fagin, Kumar & Sivakumar, SIGMOD 2003"
    tags = Tags(accepts=LIST_FORMS)

    missing: MissingRule = "share"

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists, index = preferences.lists, preferences.index
        place = segments.fractional_ranks(lists.starts, lists.rank)
        weights, _ = whole_weights(weights)
        item, weight = lists.item, weights[lists.expert][lists.list_of_row]
        if self.missing != "ignore":
            unlisted = find_unlisted_ranks(preferences, self.missing)
            item, place, which = expand_places(preferences, place, unlisted)
            weight = weights[lists.expert][which]
        median = segments.compute_median_by_item(item, place, weight, len(index.items))
        absent = np.isnan(median)
        return Outcome(-np.where(absent, 0.0, median), absent)
