"""LambdaRank over shards: first statistics over all shards, then passes over one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import InputError
from podium.data.features import Features
from podium.data.ids import Id
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Progress, no_progress
from podium.learning.shard_cache import (
    PreparedShards,
    ShardCounts,
    ShardScan,
    clear_metric_cache,
    extract_examples,
    fix_max_grade,
    read_examples,
    weights_key,
)
from podium.learning.training_shards import is_empty
from podium.methods.learned.learner import LearningTask
from podium.methods.learned.objectives import InMemoryObjective
from podium.storage.array_files import PreparedArrays

if TYPE_CHECKING:
    from podium.methods.learned.lambdarank import LambdaRank

__all__ = ["ShardedObjective"]


class ShardedObjective:
    """Objective over shards: a pass visits all in random order; steps do not cross shard boundaries."""

    threads = False

    def __init__(
        self,
        model: LambdaRank,
        train: PreparedShards,
        check: PreparedShards,
        weights: Mapping[Id, float],
        progress: Progress = no_progress,
    ) -> None:
        self.model, self.train, self.check, self.weights = model, train, check, dict(weights)
        self.names: tuple[str, ...] = ()
        self.count, self.mean, self.spread = 0, np.zeros(0), np.zeros(0)
        survey = ShardScan()
        chosen = ShardScan(survey)
        survey.scan_shards(train, self._build_part_loader(train, self.weights), self._scan_features, progress)
        survey.check_learnable()
        chosen.scan_shards(check, self._build_part_loader(check, {}), self._register_columns, progress)
        self.seen = ShardCounts(survey.shards, survey.judged, chosen.shards, chosen.judged)
        self.metric = fix_max_grade(model.metric, survey.top)
        self.choose_by = fix_max_grade(model.choose_by, chosen.top)
        self.width = len(self.names)

    def _build_part_loader(
        self, shelf: PreparedShards, weights: dict[Id, float]
    ) -> Callable[[int], PreparedArrays]:
        """A prepared shard: features of the labeled items, missing values 0, and the labels."""
        recipe = f"LambdaRank normalise={self.model.normalize} weights={weights_key(weights)}"

        def make_part(number: int) -> PreparedArrays:
            content = shelf.content(number)
            features = Features.from_rows([], [], np.zeros((0, 0))) if is_empty(content) else content.features
            if features is None:
                raise InputError(
                    "it contains no features", remedy="give a LETOR file, or a table with feature columns"
                )
            examples, part = extract_examples(content, features, weights)
            part.arrays["values"] = self.model._prepare_values(features)[examples.rows]
            return PreparedArrays(part.about | {"names": list(features.names)}, part.arrays)

        return lambda number: shelf.get_or_make(number, recipe, lambda: make_part(number))

    def _register_columns(self, part: PreparedArrays) -> None:
        if not part.about["names"]:
            return
        labels, values = read_examples(part).labels, part.arrays["values"]
        features = Features(labels.index, values, tuple(part.about["names"]))
        if not self.names:
            self.names = features.names
            self.mean, self.spread = np.zeros(len(self.names)), np.zeros(len(self.names))
        Features.require(features, self.names, self.model.name)

    def _scan_features(self, part: PreparedArrays) -> None:
        """Collect names and moments of the features of a shard."""
        self._register_columns(part)
        if self.model.standardise and len(part.arrays["values"]):
            self._add_moments(part.arrays["values"])

    def _add_moments(self, values: F8) -> None:
        """Add rows to the running mean and centered sum of squares (Chan, Golub & LeVeque 1983)."""
        here, both = values.mean(axis=0), self.count + len(values)
        apart = here - self.mean
        self.spread += ((values - here) ** 2).sum(axis=0) + apart**2 * (self.count * len(values) / both)
        self.mean += apart * (len(values) / both)
        self.count = both

    def _build_task_loader(
        self, shelf: PreparedShards, weights: dict[Id, float]
    ) -> Callable[[int], LearningTask]:
        load = self._build_part_loader(shelf, weights)

        def load_task(number: int) -> LearningTask:
            part = load(number)
            values = np.ascontiguousarray(self.model._scale_values(part.arrays["values"]))
            return LearningTask(values, read_examples(part), progress=no_progress)

        return load_task

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> None:
        """Run one pass."""
        task, order = self._build_task_loader(self.train, self.weights), self.train.shuffle_order(random)

        def load_objective(number: int) -> InMemoryObjective:
            return InMemoryObjective(self.model, task(number), self.metric, shards=len(order))

        with closing(self.train.iterate_prepared(load_objective, order)) as lessons:
            for lesson in lessons:
                lesson.run_pass(optimiser, random)
                clear_metric_cache(lesson.task.examples)

    def validate(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not len(self.check):
            return None
        network, total, mass = self.model._build_network(self.width), 0.0, 0.0
        with closing(
            self.check.iterate_prepared(self._build_task_loader(self.check, {}), self.check.used)
        ) as tasks:
            for task in tasks:
                more = task.examples.sum_metric(network.compute_scores(weights, task.values), self.choose_by)
                total, mass = total + more[0], mass + more[1]
                clear_metric_cache(task.examples)
        return total / max(mass, 1e-300)
