"""Fusion by the probability of relevance at a position, which is learned for each expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Choice, Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import count_items_above
from podium.learning.examples import Training
from podium.methods.base import LIST_FORMS, Outcome, Tags
from podium.methods.input_checks import match_experts
from podium.methods.learned.supervised_method import SupervisedAggregator
from podium.methods.scores import compute_normalization

__all__ = ["PositionProbabilityFusion"]

# ends of the segments as published
DOUBLING_ENDS = np.array([10 * 2**k - 5 for k in range(10)])  # 5, 15, 35, ... 5115
BAYES_ENDS = np.array([5, 10, 15, 20, 30, 100, 200, 500, 1000])
RARE = 0.001  # stands for a probability of 0 in odds
NEAR = 1e-12  # a probability closer to 0 or 1 is equal to it
UNLISTED_ODDS = float(np.log(RARE / (1 - RARE)))


class ListPositions(NamedTuple):
    """The rows of lists by position from 0, and the blocks of tied rows."""

    list_of_row: I8
    position: I8
    length: I8  # of the row's list
    block_starts: I8
    block_sizes: I8

    @classmethod
    def from_lists(cls, lists: Lists) -> ListPositions:
        which = lists.list_of_row
        position = np.arange(lists.rows) - lists.starts[:-1][which]
        above, upto = count_items_above(lists.starts, lists.rank)
        begins = np.flatnonzero(above == position)
        return cls(which, position, lists.lengths[which], begins, (upto - above)[begins])

    def average_ties(self, value: F8) -> F8:
        """Values by row, averaged over tied rows."""
        if not len(value):
            return value
        mean = np.add.reduceat(value, self.block_starts) / self.block_sizes
        return np.asarray(np.repeat(mean, self.block_sizes), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class PositionProbabilityFusion(SupervisedAggregator):
    """Sum over experts of the probability of relevance at the position where the expert ranks the item.

    The probabilities are learned from labeled queries, for each expert, by one of the published rules:
    `posfuse` by position; `slidefuse` averages them over `window` positions on both sides; `probfuse` by
    `segments` equal parts of the list, divided by the number of the part; `segfuse` by parts of doubling size,
    times 1 plus the min-max score; `bayesfuse` sums log odds, by fixed parts; `mapfuse` divides the mean average
    precision of the expert by the rank. `smoothing` adds this many lists on which the probability falls with the
    position as 1 / p; 0 gives the published estimates. Tied items share the values of their positions.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = PositionProbabilityFusion(smoothing=0).fit(p, Labels.from_dict({"q": {"a": 1, "b": 0, "c": 0}}))
    >>> model.aggregate(p).to_dict()
    {'q': {'a': 2.0, 'b': 0.0, 'c': 0.0}}
    """

    name = "position_probability"
    aliases = ("position_prob",)
    citation = (
        "Aslam & Montague, SIGIR 2001; Lillis et al., SIGIR 2006, ECIR 2008, SIGIR 2010; Shokouhi, ECIR 2007"
    )
    tags = Tags(accepts=LIST_FORMS, additive=True, weighted=False, supervised=True)

    rule: Annotated[
        str,
        Choice("posfuse", "slidefuse", "probfuse", "segfuse", "bayesfuse", "mapfuse"),
        "how positions are pooled, and what an item gets",
    ] = "posfuse"
    window: Annotated[
        int, Range(0, 1_000_000), Tune(1, 50, log=True), "slidefuse: positions on each side of the item's"
    ] = 5
    segments: Annotated[int, Range(1, 1_000_000), Tune(2, 100, log=True), "probfuse: parts of a list"] = 25
    smoothing: Annotated[
        float, Range(0, 1e6), Tune(0.1, 30, log=True), "number of lists added as a prior"
    ] = 1.0
    relevant: Annotated[float, Range(-1e9, 1e9), "smallest grade of a relevant item"] = 1.0

    # -- learning --------------------------------------------------------------------------------------------

    def fit(
        self,
        preferences: Preferences,
        labels: Labels | None = None,
        features: Features | None = None,
        **options: Any,
    ) -> Self:
        """Learn the probabilities from labeled queries; items without a label are not relevant."""
        if labels is not None and labels.kind != "grades":
            raise InputError(
                f"{self.name} needs grades, and the labels are {labels.kind}",
                remedy="say which items are relevant",
            )
        self._given_labels = (
            labels  # with the relevant items that no expert lists, which average precision counts
        )
        try:
            return super().fit(preferences, labels, features, **options)
        finally:
            del self._given_labels

    def _learn(self, training: Training) -> None:
        preferences, examples = training.preferences, training.examples
        lists, index = preferences.lists, preferences.index
        labels = examples.labels
        weight = np.zeros(len(index))
        codes = index.queries.codes_of(labels.queries)
        judged = np.diff(labels.index.starts) > 0
        weight[codes[judged]] = examples.weight[judged]
        grade = np.full(len(index.items), -np.inf)
        grade[examples.rows] = labels.grades
        rows = ListPositions.from_lists(lists)
        relevance = rows.average_ties((grade[lists.item] >= self.relevant).astype(np.float64))
        list_weight = weight[lists.query_of_list]
        if self.rule == "mapfuse":
            table = self._compute_mean_precision(preferences, rows, relevance, list_weight)
        else:
            table = self._estimate_chances(preferences, rows, relevance, list_weight)
        self.table_: F8 = table
        training.progress(1, 1, "counting relevant items by position")

    def _estimate_chances(
        self, preferences: Preferences, rows: ListPositions, relevance: F8, list_weight: F8
    ) -> F8:
        """Probability (for `bayesfuse`, log odds) by expert and position or segment."""
        lists, experts = preferences.lists, len(self.experts_)
        unit, size = self._find_units(rows)
        units = int(unit.max(initial=0)) + 1
        expert = lists.expert.astype(np.int64)
        key, kept = expert[rows.list_of_row] * units + unit, unit >= 0
        weight = list_weight[rows.list_of_row]
        hits = np.bincount(key[kept], (weight * relevance / size)[kept], experts * units).reshape(
            experts, units
        )
        if self.rule in ("posfuse", "slidefuse"):
            count = np.bincount(key, weight, experts * units).reshape(experts, units)
        else:
            count = np.repeat(np.bincount(expert, list_weight, experts)[:, None], units, axis=1)
        # the prior falls from the expert's overall precision, so that it orders what the data leave equal
        shown = np.bincount(expert[rows.list_of_row], weight, experts)
        overall = np.bincount(expert[rows.list_of_row], weight * relevance, experts) / np.maximum(
            shown, 1e-300
        )
        prior = overall[:, None] / np.arange(1, units + 1)
        total = count + self.smoothing
        chance = (hits + self.smoothing * prior) / np.where(total > 0, total, 1.0)
        if self.rule != "bayesfuse":
            return np.asarray(chance, np.float64)
        # sums of shares have rounding errors, which odds near 0 and 1 would magnify
        chance = np.where(chance < NEAR, RARE, chance)
        return np.asarray(np.log(chance / np.where(chance > 1 - NEAR, RARE, 1 - chance)), np.float64)

    def _find_units(self, rows: ListPositions) -> tuple[I8, F8 | I8]:
        """Position or segment of every row (-1 beyond the last one), and the size by which its hits are divided."""
        if self.rule in ("posfuse", "slidefuse"):
            return rows.position, np.ones(len(rows.position))
        if self.rule == "probfuse":
            width = -(-rows.length // self.segments)
            unit = rows.position // width
            return unit, np.minimum(width, rows.length - unit * width)
        ends = BAYES_ENDS if self.rule == "bayesfuse" else DOUBLING_ENDS
        unit = np.searchsorted(ends, rows.position, side="right")
        size = np.diff(ends, prepend=0)[np.minimum(unit, len(ends) - 1)]
        return np.where(unit < len(ends), unit, -1), size

    def _compute_mean_precision(
        self, preferences: Preferences, rows: ListPositions, relevance: F8, list_weight: F8
    ) -> F8:
        """Mean average precision by expert, in one column."""
        lists, index, labels = preferences.lists, preferences.index, self._given_labels
        assert labels is not None
        found = np.bincount(
            labels.index.query_of_slot,
            np.nan_to_num(labels.grades, nan=-np.inf) >= self.relevant,
            len(labels.index),
        )
        relevant = np.zeros(len(index) + 1)
        relevant[index.queries.codes_of(labels.queries)] = (
            found  # the last entry takes queries not given here
        )
        before = np.cumsum(relevance) - relevance
        hits = (
            before - before[lists.starts[:-1]][rows.list_of_row] + relevance if len(relevance) else relevance
        )
        gain = relevance * hits / (rows.position + 1)
        expert = lists.expert.astype(np.int64)
        query_of_row = lists.query_of_list[rows.list_of_row]
        share = gain * list_weight[rows.list_of_row] / np.maximum(relevant[query_of_row], 1.0)
        total = np.bincount(expert[rows.list_of_row], share, len(self.experts_))
        count = np.bincount(expert, list_weight, len(self.experts_))
        return np.asarray(total / np.where(count > 0, count, 1.0), np.float64)[:, None]

    # -- ranking ---------------------------------------------------------------------------------------------

    def _compute_values(self, preferences: Preferences, codes: I8) -> F8:
        """What every row contributes to its item; unknown experts contribute 0."""
        lists = preferences.lists
        rows = ListPositions.from_lists(lists)
        code = codes[lists.expert][rows.list_of_row]
        if self.rule == "mapfuse":
            value = self.table_[code, 0] / (rows.position + 1)
        elif self.rule == "slidefuse":
            longest = int(max(lists.lengths.max(initial=0), self.table_.shape[1]))
            sums = np.zeros((len(self.table_), longest + 1))
            np.cumsum(self.table_, axis=1, out=sums[:, 1 : self.table_.shape[1] + 1])
            sums[:, self.table_.shape[1] + 1 :] = sums[:, self.table_.shape[1], None]
            first = np.maximum(rows.position - self.window, 0)
            last = np.minimum(rows.position + self.window, rows.length - 1) + 1
            value = (sums[code, last] - sums[code, first]) / (last - first)
        else:
            unit, _ = self._find_units(rows)
            beyond = (unit < 0) | (unit >= self.table_.shape[1])
            value = np.where(beyond, self._unlisted_value, self.table_[code, np.where(beyond, 0, unit)])
            if self.rule == "probfuse":
                value = value / (unit + 1)
            if self.rule == "segfuse":
                sizes = preferences.index.sizes
                score, base, slope = compute_normalization(lists, lists.fill_scores(sizes), "minmax", sizes)
                value = value * (1 + base[rows.list_of_row] + slope[rows.list_of_row] * score)
        return np.where(code < 0, 0.0, rows.average_ties(np.asarray(value, np.float64)))

    @property
    def _unlisted_value(self) -> float:
        return UNLISTED_ODDS if self.rule == "bayesfuse" else 0.0

    def _sum_values(self, preferences: Preferences, value: F8, list_weight: F8) -> F8:
        """Sum of the values of each slot over the lists of weight 1, with those of the lists without it."""
        lists, sizes = preferences.lists, preferences.index.sizes
        unlisted = self._unlisted_value * list_weight
        total = lists.sum_affine(value, -unlisted, list_weight, len(preferences.index.items))
        return total + np.repeat(np.bincount(lists.query_of_list, unlisted, len(sizes)), sizes)

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        codes = match_experts(self, preferences)
        list_weight = (codes[preferences.lists.expert] >= 0).astype(np.float64)
        scores = self._sum_values(preferences, self._compute_values(preferences, codes), list_weight)
        # log odds cancel, and so do sums over a window
        return Outcome(scores, tolerance=1e-9, magnitude=float(np.abs(self.table_).max(initial=0.0)))

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        codes, lists = match_experts(self, one), one.lists
        value = self._compute_values(one, codes)
        return {
            expert: self._sum_values(
                one, value, ((lists.expert == code) & (codes[code] >= 0)).astype(np.float64)
            )
            for code, expert in enumerate(one.experts)
            if one.active_experts[code]
        }
