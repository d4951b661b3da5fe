"""All features in one model: LambdaRank over features of the experts' lists, and item features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.errors import PodiumWarning
from podium.core.params import Range
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
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
from podium.methods.feature.feature_normalization import normalize_by_query
from podium.methods.input_checks import match_experts
from podium.methods.learned.expert_features import ExpertFeatures, build_expert_features, standardize_by_query
from podium.methods.learned.supervised_method import SupervisedAggregator

__all__ = ["FusedAggregator"]

PARTS = 5  # for trees, scores of training queries come from models fitted without them
TREE_RATE = 0.03


@dataclass(kw_only=True, eq=False, repr=False)
class FusedAggregator(SupervisedAggregator, ScorerSettings):
    """LambdaRank over many features of every expert, their consensus, and item features if given.

    The features are singular vectors, sums of preferences, reciprocal and log ranks, places in the list, and
    absence.

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
        return build_expert_features(
            preferences, match_experts(self, preferences), len(self.experts_), self.depth_
        )

    def _build_columns(
        self, preferences: Preferences, features: Features | None
    ) -> tuple[F8, ExpertFeatures]:
        """Columns by expert, consensus columns, item features; and the tables by expert behind them."""
        expert_features = self._build_expert_features(preferences)
        items = self._align_item_features(preferences, features)
        return np.concatenate(
            [*expert_features.own, expert_features.compute_consensus(preferences.index), items], axis=1
        ), expert_features

    def _align_item_features(self, preferences: Preferences, features: Features | None) -> F8:
        index, names = preferences.index, self.features_
        if features is None and not names:
            return np.zeros((len(index.items), 0))
        Features.require(features, names, self.name)
        assert features is not None
        values = features.align(index)
        if len(values) and np.isnan(values).all():
            warnings.warn(
                "none of these items has item features, so all of them count as 0; query and item ids are compared "
                "exactly, case and type included",
                PodiumWarning,
                stacklevel=2,
            )
        return normalize_by_query(index.starts, values, "deviation")

    def _build_tree_columns(
        self, preferences: Preferences, expert_features: ExpertFeatures, values: F8
    ) -> F8:
        return np.concatenate(
            (values, standardize_by_query(preferences.index, np.stack(expert_features.spread, axis=1))[0]),
            axis=1,
        )

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        ranks = training.preferences.lists.rank
        self.depth_ = float(max(2, ranks.max(initial=0)))
        self.features_ = [] if training.features is None else list(training.features.names)
        self.grown_: list[str] = []
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
            grown = trees.train_trees(plain, self.trees, TREE_RATE, seed=self.seed + number, initial=start)
            self.grown_.append(grown.text)

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
        expert_features, n, weights = (
            self._build_expert_features(one),
            len(self.experts_),
            FeatureScorer.from_model(self).linear_weights,
        )
        own = weights[: len(expert_features.own) * n].reshape(len(expert_features.own), n)
        common, last = np.split(weights[len(expert_features.own) * n :], [len(expert_features.shared)])
        *_, spread = standardize_by_query(
            one.index, np.stack([t.sum(axis=1) for t in expert_features.shared], axis=1)
        )
        parts: dict[Id, F8] = {}
        for k, expert in enumerate(self.experts_):
            total = sum(table[:, k] * w[k] for table, w in zip(expert_features.own, own, strict=True))
            for c, table in enumerate(expert_features.shared):
                centre = standardize_by_query(one.index, table[:, k : k + 1])[1][:, 0]
                total = total + common[c] * (table[:, k] - centre) / spread[:, c]
            parts[expert] = np.asarray(total)
        if len(last):
            parts[FEATURES] = np.asarray((self._align_item_features(one, features) * last).sum(axis=1))
        return parts
