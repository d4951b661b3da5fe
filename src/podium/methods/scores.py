"""Methods that combine scores: normalize each list, then sum, average, take an extreme or the median."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Choice
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import whole_weights
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.positional import sum_listing_weights

__all__ = [
    "CombAnz",
    "CombMax",
    "CombMed",
    "CombMin",
    "CombMnz",
    "CombSum",
    "DistributionBasedFusion",
    "RelativeScoreFusion",
    "compute_normalization",
]

NORMALIZERS = ("minmax", "max", "sum", "zscore", "rank", "borda", "dbsf", "sigmoid", "none")


def compute_normalization(lists: Lists, scores: F8, normalizer: str, sizes: I8) -> tuple[F8, F8, F8]:
    """Values by row and, by list, base and slope, such that base + slope * value is the normalized score.

    A list whose scores are all equal stays distinct from "not listed" wherever the rule allows: `minmax`
    gives 1, `sum` gives 1 / n, `zscore` gives 0, `dbsf` gives 1 / 2. `zscore` uses the population standard
    deviation, `dbsf` that of the sample, as in Qdrant; `dbsf_population` uses the population's.
    """
    ones, zeros = np.ones(len(lists)), np.zeros(len(lists))
    if normalizer == "none":
        return scores, zeros, ones
    n = np.maximum(lists.lengths, 1).astype(np.float64)
    if normalizer in ("rank", "borda"):
        # from 1 at the top down to 1/n (of the list) or 1/M (of all items of the query)
        size = n if normalizer == "rank" else sizes[lists.query_of_list].astype(np.float64)
        return segments.fractional_ranks(lists.starts, lists.rank), (size + 1) / size, -1 / size
    stats = segments.compute_list_statistics(lists.starts, scores)
    spread = stats.high - stats.low
    if not np.isfinite(spread).all():
        raise InputError("the scores of a list are too far apart to be normalized", remedy="rescale them")
    flat = spread <= 1e-12 * np.maximum(np.abs(stats.high), np.abs(stats.low))
    if normalizer == "minmax":
        slope = np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))
        return scores, np.where(flat, 1.0, -stats.low * slope), slope
    if normalizer == "max":
        largest = np.maximum(np.abs(stats.high), np.abs(stats.low))
        return scores, zeros, 1 / np.where(largest == 0, 1.0, largest)
    if normalizer == "sum":
        slope = np.where(flat, 0.0, 1 / np.where(flat, 1.0, n * (stats.mean - stats.low)))
        return scores, np.where(flat, 1 / n, -stats.low * slope), slope
    deviation = np.where(flat, 1.0, stats.deviation)
    if normalizer == "zscore":
        slope = np.where(flat, 0.0, 1 / deviation)
        return scores, -stats.mean * slope, slope
    if normalizer in ("dbsf", "dbsf_population"):
        if normalizer == "dbsf":
            deviation = deviation * np.sqrt(n / np.maximum(n - 1, 1))
        # mean - 3 sd becomes 0, mean + 3 sd becomes 1
        slope = np.where(flat, 0.0, 1 / (6 * deviation))
        return scores, 0.5 - stats.mean * slope, slope
    # sigmoid, without overflow
    e = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1 / (1 + e), e / (1 + e)), zeros, ones


Normalizer = Annotated[str, Choice(*NORMALIZERS), "how the scores of a list are made comparable"]


@dataclass(kw_only=True, eq=False, repr=False)
class _ScoreFusion(Aggregator):
    """Combined normalized scores of the experts that list an item; lists without scores use their ranks."""

    @property
    @abstractmethod
    def _rule(self) -> str:
        """The normalizer."""

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        listing = sum_listing_weights(preferences, (weights > 0).astype(np.float64))
        # the largest normalized score, for rules whose scores have mixed signs and can cancel
        magnitude: F8 | float = 0.0
        if self._rule in ("zscore", "max"):
            magnitude = float(weights.max(initial=0.0))
        elif self._rule == "none":
            lists, sizes = preferences.lists, preferences.index.sizes
            magnitude = np.zeros(len(sizes))
            row = np.abs(lists.fill_scores(sizes)) * weights[lists.expert][lists.list_of_row]
            np.maximum.at(magnitude, lists.query_of_list[lists.list_of_row], row)
        scores = self._combine_scores(preferences, weights)
        return Outcome(scores, absent=listing == 0, magnitude=magnitude, overwrite=True)

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        """Scores of items that at least one expert lists: the weighted sum of the normalized ones."""
        lists, slots, w = preferences.lists, len(preferences.index.items), weights[preferences.lists.expert]
        value, base, slope = self._normalize(preferences)
        return lists.sum_affine(value, w * base, w * slope, slots)

    def _normalize(self, preferences: Preferences) -> tuple[F8, F8, F8]:
        lists, sizes = preferences.lists, preferences.index.sizes
        return compute_normalization(lists, lists.fill_scores(sizes), self._rule, sizes)

    def _normalize_rows(self, preferences: Preferences) -> F8:
        value, base, slope = self._normalize(preferences)
        lengths = preferences.lists.lengths
        return np.repeat(base, lengths) + np.repeat(slope, lengths) * value


@dataclass(kw_only=True, eq=False, repr=False)
class _Comb(_ScoreFusion):
    """Methods whose normalizer is a parameter."""

    citation = "Fox & Shaw, TREC-2 1994"
    tags = Tags(accepts=LIST_FORMS)

    normalizer: Normalizer = "minmax"

    @property
    def _rule(self) -> str:
        return self.normalizer


@dataclass(kw_only=True, eq=False, repr=False)
class CombSum(_Comb):
    """Sum of the normalized scores.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combsum").scores
    [1.5, 1.0, 0.0]
    """

    name = "combsum"
    aliases = ("comb_sum",)
    tags = Tags(accepts=LIST_FORMS, additive=True)


@dataclass(kw_only=True, eq=False, repr=False)
class CombMnz(_Comb):
    """Sum of the normalized scores times the (weighted) number of experts that list the item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combmnz").scores
    [3.0, 1.0, 0.0]
    """

    name = "combmnz"
    aliases = ("comb_mnz",)

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        return super()._combine_scores(preferences, weights) * sum_listing_weights(preferences, weights)


@dataclass(kw_only=True, eq=False, repr=False)
class CombAnz(_Comb):
    """Mean of the normalized scores over the experts that list the item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combanz").ranking
    ['a', 'b', 'c']
    """

    name = "combanz"
    aliases = ("comb_anz",)

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        count = sum_listing_weights(preferences, weights)
        return super()._combine_scores(preferences, weights) / np.where(count > 0, count, 1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class _CombExtreme(_Comb):
    """One of an item's scores; weights could only include or exclude an expert, so there are none."""

    largest: ClassVar[bool]
    tags = Tags(accepts=LIST_FORMS, weighted=False)

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, slots = preferences.lists, len(preferences.index.items)
        used = (weights > 0)[lists.expert][lists.list_of_row]  # `explain` excludes an expert by weight 0
        item, value = lists.item[used], self._normalize_rows(preferences)[used]
        return np.nan_to_num(segments.find_extreme_by_item(item, value, slots, largest=self.largest))


@dataclass(kw_only=True, eq=False, repr=False)
class CombMin(_CombExtreme):
    """The worst normalized score of an item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combmin").ranking
    ['a', 'b', 'c']
    """

    name = "combmin"
    aliases = ("comb_min",)
    largest = False


@dataclass(kw_only=True, eq=False, repr=False)
class CombMax(_CombExtreme):
    """The best normalized score of an item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combmax").scores
    [1.0, 1.0, 0.0]
    """

    name = "combmax"
    aliases = ("comb_max",)
    largest = True


@dataclass(kw_only=True, eq=False, repr=False)
class CombMed(_Comb):
    """The (weighted) median of the normalized scores of an item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="combmed").scores
    [1.0, 0.75, 0.0]
    """

    name = "combmed"
    aliases = ("comb_med",)

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        lists = preferences.lists
        whole, _ = whole_weights(weights)
        weight = whole[lists.expert][lists.list_of_row]
        slots = len(preferences.index.items)
        return np.nan_to_num(
            segments.compute_median_by_item(lists.item, self._normalize_rows(preferences), weight, slots)
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DistributionBasedFusion(_ScoreFusion):
    """Sum of scores rescaled so that mean - 3 sd is 0 and mean + 3 sd is 1 in every list (DBSF).

    The standard deviation is that of the sample (n - 1), as in Qdrant, or of the population (n), as in
    Haystack and LlamaIndex. A list of one score, or of equal scores, gives 1/2 to each item.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="dbsf").ranking
    ['b', 'c', 'a']
    """

    name = "dbsf"
    aliases = ("distribution_based_score_fusion",)
    citation = "Mazzeschi 2023; the form used by Qdrant"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    deviation: Annotated[
        str, Choice("sample", "population"), "standard deviation of a list: divided by n - 1, or by n"
    ] = "sample"

    @property
    def _rule(self) -> str:
        return "dbsf" if self.deviation == "sample" else "dbsf_population"


@dataclass(kw_only=True, eq=False, repr=False)
class RelativeScoreFusion(_ScoreFusion):
    """Weighted mean over all experts of min-max scores, 0 for items an expert does not list; in [0, 1].

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="rsf", weights=[3, 1]).scores
    [0.75, 0.625, 0.0]
    """

    name = "rsf"
    aliases = ("relative_score_fusion",)
    citation = "the relative score fusion of hybrid search engines"
    tags = Tags(accepts=LIST_FORMS)  # a mean, so an expert's contribution depends on the other experts
    _rule = "minmax"

    def _combine_scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, sizes = preferences.lists, preferences.index.sizes
        total = np.bincount(lists.query_of_list, weights=weights[lists.expert], minlength=len(sizes))
        share: F8 = np.repeat(np.where(total > 0, total, 1.0), sizes)
        return super()._combine_scores(preferences, weights) / share
