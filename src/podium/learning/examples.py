"""What learners see: the labeled items with their features, query by query, best grade first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from podium.core.errors import InputError, Option, ParameterError
from podium.core.progress import Progress, no_progress
from podium.data.consensus import Consensus
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.pair_labels import PairLabels, PairTable
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import PAIRS, MetricTarget
from podium.kernels.ranking_measures import BPREF
from podium.metrics.base import MeasuredQueries, MetricSpec, WalkMetric, measure, parse
from podium.metrics.correlations import PairAgreement
from podium.metrics.judgements import Judgements

__all__ = ["Examples", "LearningTask", "Training", "parse_learnable"]


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows in an order that depends on the data alone: queries by id, items by grade, then id."""

    labels: Labels  # of exactly these rows
    rows: I8  # the slot of each row in the index that the examples were built from
    weight: F8  # by query
    row_weight: F8 | None = None  # by row, 1 if not given

    @classmethod
    def from_labels(
        cls,
        index: ItemIndex,
        labels: Labels | None,
        weights: dict[Id, float] | None = None,
        *,
        require_signal: bool = True,
    ) -> Examples:
        """The labeled slots of an index; labels that allow neither learning nor validation raise an error.

        `weights` maps queries to weights; the others weigh 1.
        """
        if labels is None:
            raise InputError("there are no labels to learn from", remedy="give labels (qrels) to fit")
        if not isinstance(labels, Labels):
            raise InputError(f"the labels are a {type(labels).__name__}", remedy="convert it to Labels")
        if isinstance(labels, PairLabels):
            return cls._from_pairs(index, labels, weights or {}, require_signal=require_signal)
        grades = labels.align(index)
        judged = ~np.isnan(grades)
        if require_signal:
            if not judged.any():
                raise InputError(
                    "no label matches an item in these preferences",
                    remedy="query and item ids are compared exactly, case and type included",
                )
            low, high = np.full(len(index), np.inf), np.full(len(index), -np.inf)
            query = index.query_of_slot[judged]
            np.minimum.at(low, query, grades[judged])
            np.maximum.at(high, query, grades[judged])
            if not (high > low).any():
                problem = "no query has items of different grades"
                if len(np.unique(grades[judged])) == 1:
                    problem = f"all labels have the same grade ({grades[judged][0]:g})"
                raise InputError(
                    problem, remedy="learning needs better and worse items in one query: label both"
                )
        elif not judged.any():
            raise InputError(
                "the validation queries have no labels", remedy="give labeled ones, or omit validation"
            )
        own, rows = _order_rows(index, np.flatnonzero(judged), -grades)
        query_weight = _weigh_queries(own, weights or {})
        examples = cls(Labels(own, grades[rows], labels.kind), rows, query_weight)
        if require_signal and not len(examples.find_useful_queries()):
            raise InputError(
                "every query with two grades has weight 0", remedy="give at least one of them a weight"
            )
        return examples

    @classmethod
    def _from_pairs(
        cls, index: ItemIndex, labels: PairLabels, weights: dict[Id, float], *, require_signal: bool
    ) -> Examples:
        """The items in pairs; all of one level, as pairs have no grades."""
        table = labels.align_pairs(index)
        if not len(table.better):
            raise InputError(
                "no pair of the labels has both items in these preferences",
                remedy="query and item ids are compared exactly, case and type included",
            )
        slots = np.union1d(table.better, table.worse)
        own, rows = _order_rows(index, slots, np.zeros(len(index.items)))
        row_of = np.full(len(index.items), -1, np.int64)
        row_of[rows] = np.arange(len(rows))
        of_query = own.query_of_slot[row_of[table.better]]
        order = np.lexsort((row_of[table.worse], row_of[table.better], of_query))
        starts = segments.offsets(np.bincount(of_query, minlength=len(own)))
        pairs = PairTable(
            starts, row_of[table.better][order], row_of[table.worse][order], table.weight[order]
        )
        examples = cls(PairLabels(own, pairs), rows, _weigh_queries(own, weights))
        if require_signal and not len(examples.find_useful_queries()):
            raise InputError(
                "every query with pairs has weight 0", remedy="give at least one of them a weight"
            )
        return examples

    @property
    def starts(self) -> I8:
        """Rows of query q: starts[q] .. starts[q + 1]."""
        return self.labels.index.starts

    def __len__(self) -> int:
        return len(self.rows)

    def build_target(self, metric: MetricSpec) -> MetricTarget:
        """The metric as a learning target on these rows."""
        chosen, judgements = parse_learnable(metric), Judgements.for_labels(self.labels)
        if self.labels.kind not in chosen.accepts:
            raise InputError(
                f"{chosen} needs grades, and the labels are {self.labels.kind}",
                remedy=("learn Kendall's tau instead: ", Option("metric", "tau_a", of="method")),
            )
        sizes = self.labels.index.sizes
        if not isinstance(chosen, WalkMetric):
            # the share of pairs in the right order: given ones, or all of different grades
            index, pairs = self.labels.index, None
            if isinstance(self.labels, PairLabels):
                pairs, total = self.labels.pairs, self.labels.pairs.sum_weights()
            else:
                width = len(judgements.levels) + 1
                alike = np.bincount(
                    index.query_of_slot * width + judgements.level, minlength=len(index) * width
                )
                total = (index.sizes**2 - (alike.reshape(-1, width) ** 2).sum(axis=1)) / 2.0
            scale = np.divide(self.weight, total, out=np.zeros(len(index)), where=total > 0)
            ones = np.ones(int(index.sizes.max(initial=0)))
            nothing = np.zeros(len(self))
            return MetricTarget(
                PAIRS, nothing, judgements.level, ones, index.sizes, scale, self.row_weight, pairs
            )
        walk = chosen.build_walk(judgements, int(sizes.max(initial=0)))
        assert walk.kind != BPREF
        best = chosen.compute_divisor(MeasuredQueries(judgements, np.arange(len(sizes)), sizes))
        scale = np.divide(self.weight, best, out=np.zeros(len(sizes)), where=best > 0)
        gain, limit = walk.gain[judgements.level], np.minimum(walk.limit, sizes)
        return MetricTarget(
            walk.kind, gain, judgements.level, walk.discount, limit, scale, weight=self.row_weight
        )

    def learning_target(self, metric: MetricSpec, *, require_signal: bool = True) -> tuple[MetricTarget, I8]:
        """The target, and the queries with a training signal; without any, an error if one is required."""
        target, useful = self.build_target(metric), self.find_useful_queries()
        useful = useful[target.scale[useful] > 0]
        if require_signal and not len(useful):
            raise InputError(
                f"{metric} is 0 for every ranking of the labeled items, so there is nothing to learn",
                remedy="give items with grades above 0, or another metric",
            )
        return target, useful

    def with_item_weights(self, weights: Mapping[Id, Mapping[Id, float]] | None) -> Examples:
        """The same with item weights, query -> item -> weight; the others weigh 1."""
        if not weights:
            return self
        given = Labels.from_dict(weights)
        if (given.grades < 0).any():
            raise InputError(
                f"a sample weight is {given.grades.min():g}", remedy="give finite numbers from 0"
            )
        row_weights = given.align(self.labels.index)
        return replace(self, row_weight=np.where(np.isnan(row_weights), 1.0, row_weights))

    def find_useful_queries(self) -> I8:
        """Queries with a training signal: at least two grades, or a pair."""
        if isinstance(self.labels, PairLabels):
            return np.flatnonzero((np.diff(self.labels.pairs.starts) > 0) & (self.weight > 0))
        sizes, starts, grades = np.diff(self.starts), self.starts, self.labels.grades
        filled = np.flatnonzero((sizes > 1) & (self.weight > 0))
        return filled[grades[starts[filled]] > grades[starts[filled + 1] - 1]]

    def compute_mean_metric(self, scores: F8, metric: MetricSpec) -> float:
        """The (weighted) mean of a metric for scores of these rows, over queries with labels."""
        total, weight = self.sum_metric(scores, metric)
        return total / max(weight, 1e-300)

    def sum_metric(self, scores: F8, metric: MetricSpec) -> tuple[float, float]:
        """The weighted sum of a metric over the queries, and the sum of their weights."""
        # rows are sorted best grade first, and of equal scores the last row ranks first: ties earn no credit
        consensus = Consensus.from_scores(self.labels.index, scores, ties="trec")
        which = np.flatnonzero(np.diff(self.starts))
        values = measure([parse(metric)], consensus, self.labels, which)[0]
        weight = np.where(np.isnan(values), 0.0, self.weight[which])
        return float(np.dot(np.nan_to_num(values), weight)), float(weight.sum())


@dataclass(frozen=True)
class LearningTask:
    """Examples with their features: to train on, and to validate with if there are any."""

    values: F8
    examples: Examples
    validation: LearningTask | None = None
    progress: Progress = no_progress


@dataclass(frozen=True)
class Training:
    """The validated arguments of `fit`: training data, validation data, and the progress callback."""

    preferences: Preferences
    examples: Examples
    features: Features | None = None
    validation: Training | None = None
    progress: Progress = no_progress

    def build_task(self, values: Callable[[Training], F8]) -> LearningTask:
        """The examples with their features, which `values` computes for training and for validation data."""
        check = None if self.validation is None else self.validation.build_task(values)
        return LearningTask(values(self), self.examples, check, self.progress)


def _order_rows(index: ItemIndex, slots: I8, key: F8) -> tuple[ItemIndex, I8]:
    """An index of these slots, queries by id and items by key, then id; and the slots in its order."""
    ids = index.queries
    codes = np.array(sorted(range(len(ids)), key=lambda c: (type(ids[c]).__name__, ids[c])), np.int64)
    place = np.empty(len(codes), np.int64)
    place[codes] = np.arange(len(codes))
    rows = slots[np.lexsort((slots, key[slots], place[index.query_of_slot[slots]]))]
    sizes = np.bincount(index.query_of_slot[rows], minlength=len(index))[codes]
    starts = segments.offsets(sizes)
    return ItemIndex(index.queries.take(codes), starts, index.items.take(rows), index.arrival[rows]), rows


def _weigh_queries(index: ItemIndex, weights: Mapping[Id, float]) -> F8:
    """The weight of every query, 1 if not given."""
    query_weight = np.ones(len(index))
    for query, weight in weights.items():
        if not (isinstance(weight, int | float | np.number) and 0 <= weight < np.inf):
            raise InputError(
                f"the weight of query {query!r} is {weight!r}", remedy="give a finite number from 0"
            )
        code = index.queries.code_of(query)
        if code is not None:
            query_weight[code] = weight
    return query_weight


def parse_learnable(metric: MetricSpec) -> WalkMetric | PairAgreement:
    """The metric, if learners can optimize it: one that walks down the ranking (but bpref and judged), or counts pairs.

    >>> parse_learnable("ndcg@10:exp"), parse_learnable("tau_a")
    (ndcg@10:exp, tau_a)
    >>> parse_learnable("tau_b")
    Traceback (most recent call last):
    podium.core.errors.ParameterError: tau_b cannot be learned directly; learn ndcg, err, map, rbp, mrr, p@k or tau_a
    """
    chosen = parse(metric)
    chosen.check_cutoff()
    if chosen.name in ("bpref", "judged") or not isinstance(chosen, WalkMetric | PairAgreement):
        raise ParameterError(
            f"{chosen} cannot be learned directly; learn ndcg, err, map, rbp, mrr, p@k or tau_a"
        )
    return chosen
