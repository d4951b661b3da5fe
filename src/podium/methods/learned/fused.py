"""LambdaRank over features of the experts' lists, and item features.

A feature of the experts is a table (slot, expert). Which features are needed was measured: with log rank, place
and absence the rankings are statistically tied with those of all features (`benchmarks/fused_views.py`). All
features include sums over the experts, standardized per query, the consensus columns; because they are sums, each
expert's contribution to them is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from podium.core.errors import Option
from podium.core.params import Choice, Fixed, Range
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.index import ItemIndex
from podium.data.preferences import Form, Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.preference_svd import sum_rows_and_columns
from podium.learning.examples import LearningTask, Training
from podium.learning.feature_scorer import FeatureScorer, fit_scorer
from podium.learning.plan import (
    AverageAll,
    Batch,
    Decay,
    LearningRate,
    Members,
    Optimizer,
    Passes,
    Penalty,
    ScorerSettings,
)
from podium.methods.base import ALL_FORMS, FEATURES, Outcome, Tags
from podium.methods.costs import check_table_size
from podium.methods.feature.feature_model import compute_item_columns
from podium.methods.input_checks import match_experts
from podium.methods.learned import expert_matrices
from podium.methods.learned.supervised_method import SupervisedAggregator
from podium.methods.learned.svd_features import build_svd_columns

__all__ = ["ExpertFeatures", "FusedAggregator", "build_expert_features", "standardize_by_query"]

TABLES = {"all": 24, "ranks": 10}  # tables by (slot, expert) that the features and their columns need at once
PARTS = 5  # for trees, scores of training queries come from models fitted without them
TREE_RATE = 0.03
STEEP = 5.0  # 1 / (5 + rank): a reciprocal rank that emphasizes the top


class ExpertFeatures(NamedTuple):
    """Tables by (slot, expert), all of one shape; and those whose sums over the experts are a consensus."""

    own: list[F8]
    shared: list[F8]
    spread: list[F8]  # statistics over the experts, by slot; for nonlinear learners

    def compute_consensus(self, index: ItemIndex) -> F8:
        """The consensus columns, standardized per query."""
        if not self.shared:
            return np.zeros((len(index.items), 0))
        return standardize_by_query(index, np.stack([table.sum(axis=1) for table in self.shared], axis=1))[0]


def standardize_by_query(index: ItemIndex, values: F8) -> tuple[F8, F8, F8]:
    """Values with mean 0 and standard deviation 1 per query (constant ones: 0); both statistics by slot.

    Values that differ by less than 1e-9 of the largest value in the query, or of 1, count as constant: sums
    over the experts can cancel to rounding error. (For item features, which are not sums, see
    `normalize_by_query`.)
    """
    query, n = index.query_of_slot, np.maximum(index.sizes, 1)[:, None]
    mean = np.stack([np.bincount(query, weights=c, minlength=len(index)) for c in values.T], axis=1) / n
    off = values - mean[query]
    square = (
        np.stack([np.bincount(query, weights=c, minlength=len(index)) for c in (off * off).T], axis=1) / n
    )
    size, filled = np.ones(square.shape), np.flatnonzero(index.sizes)
    size[filled] = np.maximum(1.0, np.maximum.reduceat(np.abs(values), index.starts[filled], axis=0))
    spread = np.sqrt(square)
    spread = np.where(spread > 1e-9 * size, spread, np.inf)[query]
    return off / spread, mean[query], spread


def build_expert_features(
    preferences: Preferences, groups: I8, n: int, depth: float, views: str = "all"
) -> ExpertFeatures:
    """All features; `groups` numbers each expert (-1: excluded) and `depth` is the rank that scores 0.

    With the views "ranks" they are absence, log rank and place in the list, and no consensus.
    """
    lists, index = preferences.lists, preferences.index
    check_table_size(
        preferences, n * TABLES[views], ("use crf, or svd with ", Option("matrices", "hybrid", of="method"))
    )
    expert = groups[lists.expert][lists.list_of_row]
    rows = np.flatnonzero(expert >= 0)

    def fill_table(values: F8) -> F8:
        table = np.zeros((len(index.items), n))
        table[lists.item[rows], expert[rows]] = values[rows]
        return table

    rank = lists.rank.astype(np.float64)
    length = lists.lengths[lists.list_of_row]
    place = segments.fractional_ranks(lists.starts, lists.rank)
    steep = fill_table(1 / (STEEP + rank))
    high = fill_table(np.maximum(0.0, 1 - np.log(rank) / np.log(depth + 1)))
    within = fill_table(1 - (place - 1) / np.maximum(length, 1))
    if views == "ranks":
        listed = fill_table(np.ones(len(rank)))
        own, shared = [1 - listed, (1 + STEEP) * steep, high, within], []
    else:
        vectors = build_svd_columns(preferences, "log", groups, n, scaled=True).values
        size = np.maximum(index.sizes, 1)[index.query_of_slot][:, None]
        wins, losses = _sum_matrices(preferences, groups, n, "log")
        more, fewer = _sum_matrices(preferences, groups, n, "binary")
        listed = 1.0 - vectors[:, 2 * n :]
        own = [
            vectors[:, :n],
            vectors[:, n : 2 * n],
            1 - listed,
            wins / size,
            losses / size,
            (1 + STEEP) * steep,
            high,
            within,
        ]
        shared = [fill_table(1 / (60 + rank)), steep, wins - losses, more - fewer, listed, within]
    # the best few of the experts' values, their median, mean and deviation, regardless of the expert
    best, count = -np.sort(-high, axis=1), np.maximum(listed.sum(axis=1), 1)
    few = [best[:, min(k, best.shape[1] - 1)] for k in (0, 1, 2, 4, 7)]
    mean = high.sum(axis=1) / count
    deviation = np.sqrt(np.maximum((high * high).sum(axis=1) / count - mean * mean, 0.0))
    return ExpertFeatures(own, shared, [*few, np.median(high, axis=1), mean, deviation])


def _sum_matrices(
    preferences: Preferences, groups: I8, n: int, transform: expert_matrices.Transform
) -> tuple[F8, F8]:
    """Row and column sums of every expert's matrix: its support for an item, and against it."""
    grouped = expert_matrices.build_expert_matrices(preferences, transform, groups)
    up, down = sum_rows_and_columns(grouped.matrices)
    build_table = expert_matrices.build_group_table
    return build_table(grouped, up, n), build_table(grouped, down, n)


@dataclass(kw_only=True, eq=False, repr=False)
class FusedAggregator(SupervisedAggregator, ScorerSettings):
    """LambdaRank over features of every expert's lists, and item features if given.

    The features are log rank, place in the list, and absence (`views="ranks"`). With `views="all"` there are also
    singular vectors, sums of preferences, reciprocal ranks, and the sums over the experts, about three times as
    many weights; `auto` takes those for votes, which have no ranks.

    A linear scorer (the default) is a sum over experts, and its explanations are exact. `trees` adds that
    many boosted trees on top of the linear scores (extra lightgbm).

    >>> from podium import Labels, Preferences
    >>> lists = {q: {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]} for q in range(4)}
    >>> labels = Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(4)})
    >>> model = FusedAggregator().fit(Preferences.from_lists(lists), labels)
    >>> model.aggregate(Preferences.from_lists({"new": {"good": ["x", "y"], "bad": ["y", "x"]}})).ranking("new")
    ['x', 'y']
    """

    name = "fused"
    tags = Tags(accepts=ALL_FORMS, supervised=True, weighted=False, additive=True, uses_features=True)

    optimizer: Optimizer = "sgd"
    rate: LearningRate = 0.03
    decay: Decay = 15.0
    passes: Passes = 45
    batch: Batch = 1
    l2: Penalty = 0.03
    average: AverageAll = True
    members: Members = 5
    views: Annotated[
        str,
        Choice("auto", "ranks", "all"),
        Fixed(),
        "features of the lists: ranks (log rank, place, absence), or all; auto: ranks, and all for votes",
    ] = "auto"
    trees: Annotated[int, Range(0, 10_000), "boosted trees on top of the linear scores; 0 for none"] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        ScorerSettings.__post_init__(self)

    @property
    def explains_exactly(self) -> bool:
        """True for a linear scorer without trees."""
        return self.is_linear and not self.trees

    # -- columns ---------------------------------------------------------------------------------------------

    def _build_expert_features(self, preferences: Preferences) -> ExpertFeatures:
        # models of earlier versions have all views
        views = getattr(self, "views_", "all")
        groups = match_experts(self, preferences)
        return build_expert_features(preferences, groups, len(self.experts_), self.depth_, views)

    def _build_columns(
        self, preferences: Preferences, features: Features | None
    ) -> tuple[F8, ExpertFeatures]:
        """Columns by expert, consensus columns, item features; and the tables by expert behind them."""
        expert_features = self._build_expert_features(preferences)
        items = compute_item_columns(preferences.index, features, self.features_, self.name)
        consensus = expert_features.compute_consensus(preferences.index)
        return np.concatenate([*expert_features.own, consensus, items], axis=1), expert_features

    def _build_tree_columns(
        self, preferences: Preferences, expert_features: ExpertFeatures, values: F8
    ) -> F8:
        spread = np.stack(expert_features.spread, axis=1)
        return np.concatenate((values, standardize_by_query(preferences.index, spread)[0]), axis=1)

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        ranks = training.preferences.lists.rank
        self.depth_ = float(max(2, ranks.max(initial=0)))
        self.features_ = [] if training.features is None else list(training.features.names)
        self.grown_: list[str] = []
        has_votes = Form.COMPARISON in training.preferences.forms
        self.views_ = self.views if self.views != "auto" else "all" if has_votes else "ranks"
        values, expert_features = self._build_columns(training.preferences, training.features)
        check, held = None, training.validation
        if held is not None:
            held_values = self._build_columns(held.preferences, held.features)[0]
            check = LearningTask(held_values[held.examples.rows], held.examples)
        rows = training.examples.rows
        task = LearningTask(values[rows], training.examples, check, training.progress)
        scorer = fit_scorer(self, task)
        scorer.store_in(self)
        if self.trees and self.scorer == "lambdarank":
            columns = self._build_tree_columns(training.preferences, expert_features, values)
            self._grow_trees(scorer, task, columns[rows])

    def _grow_trees(self, scorer: FeatureScorer, task: LearningTask, rows: F8) -> None:
        """Trees that correct the linear scorer, fitted on queries it has not seen."""
        from podium.learning import trees

        scores = scorer.compute_scores(task.values)
        self.unit_ = float(scores.std()) or 1.0
        sizes, weight = np.diff(task.examples.starts), task.examples.weight
        part = np.random.default_rng(self.seed).permutation(np.arange(len(sizes)) % PARTS)
        start, useful = scores / self.unit_, task.examples.learning_target(self.metric)[1]
        enough = len(sizes) >= 2 * PARTS and all((part[useful] != k).any() for k in range(PARTS))
        for number in range(PARTS if enough else 0):
            rest = replace(task.examples, weight=np.where(part == number, 0.0, weight))
            other = fit_scorer(self, replace(task, examples=rest), plan=replace(self.plan, members=1))
            mine = np.repeat(part == number, sizes)
            unseen = other.compute_scores(task.values[mine])
            start[mine] = unseen / (float(other.compute_scores(task.values).std()) or 1.0)
        plain = LearningTask(rows, task.examples, progress=task.progress)
        for number in range(self.members):
            text, _ = trees.train_trees(plain, self.trees, TREE_RATE, seed=self.seed + number, initial=start)
            self.grown_.append(text)

    # -- scoring ---------------------------------------------------------------------------------------------

    def _score(self, preferences: Preferences, features: Features | None) -> F8 | Outcome:
        values, expert_features = self._build_columns(preferences, features)
        scores = FeatureScorer.from_model(self).compute_scores(values)
        if not self.grown_:
            return scores
        from podium.learning import trees

        rows = self._build_tree_columns(preferences, expert_features, values)
        grown = np.mean([trees.predict_trees(text, rows) for text in self.grown_], axis=0)
        return np.asarray(scores / self.unit_ + grown)

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8] | None:
        if not self.explains_exactly:
            return None
        expert_features, n = self._build_expert_features(one), len(self.experts_)
        weights = FeatureScorer.from_model(self).linear_weights
        own = weights[: len(expert_features.own) * n].reshape(len(expert_features.own), n)
        common, last = np.split(weights[len(expert_features.own) * n :], [len(expert_features.shared)])
        parts: dict[Id, F8] = {}
        for k, expert in enumerate(self.experts_):
            total = sum(table[:, k] * w[k] for table, w in zip(expert_features.own, own, strict=True))
            parts[expert] = np.asarray(total)
        if len(common):
            sums = np.stack([t.sum(axis=1) for t in expert_features.shared], axis=1)
            *_, spread = standardize_by_query(one.index, sums)
        for c, table in enumerate(expert_features.shared):
            for k, expert in enumerate(self.experts_):
                center = standardize_by_query(one.index, table[:, k : k + 1])[1][:, 0]
                parts[expert] = parts[expert] + common[c] * (table[:, k] - center) / spread[:, c]
        if len(last):
            items = compute_item_columns(one.index, features, self.features_, self.name)
            parts[FEATURES] = np.asarray((items * last).sum(axis=1))
        return parts
