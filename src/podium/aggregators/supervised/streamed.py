"""LambdaRank over shards: what all of them have in common first, then passes over one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from podium.aggregators.supervised.cache import Part
from podium.aggregators.supervised.courses import Taught
from podium.aggregators.supervised.examples import Progress, silence
from podium.aggregators.supervised.learner import Task
from podium.aggregators.supervised.shards import is_empty
from podium.aggregators.supervised.shelf import (
    Seen,
    Shelf,
    Survey,
    described,
    examples_of,
    forget,
    scale_known,
    weights_key,
)
from podium.data.features import Features
from podium.data.vocabulary import Id
from podium.errors import InputError
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState

if TYPE_CHECKING:
    from podium.aggregators.supervised.lambdarank import LambdaRank

__all__ = ["Streamed"]


class Streamed:
    """A course over shards: a pass takes all of them in a random order; steps do not cross their borders."""

    threads = False

    def __init__(
        self,
        model: LambdaRank,
        train: Shelf,
        check: Shelf,
        weights: Mapping[Id, float],
        progress: Progress = silence,
    ) -> None:
        self.model, self.train, self.check, self.weights = model, train, check, dict(weights)
        self.names: tuple[str, ...] = ()
        self.count, self.mean, self.spread = 0, np.zeros(0), np.zeros(0)
        survey = Survey()
        chosen = Survey(survey)
        survey.over(train, self._part(train, self.weights), self._look, progress)
        survey.check()
        chosen.over(check, self._part(check, {}), self._columns, progress)
        self.seen = Seen(survey.shards, survey.judged, chosen.shards, chosen.judged)
        self.metric = scale_known(model.metric, survey.top)
        self.choose_by = scale_known(model.choose_by, chosen.top)
        self.width = len(self.names)

    def _part(self, shelf: Shelf, weights: dict[Id, float]) -> Callable[[int], Part]:
        """A shard, prepared: features of the labelled items, missing ones 0, and the labels."""
        recipe = f"LambdaRank normalise={self.model.normalise} weights={weights_key(weights)}"

        def make(number: int) -> Part:
            content = shelf.content(number)
            features = Features.from_rows([], [], np.zeros((0, 0))) if is_empty(content) else content.features
            if features is None:
                raise InputError(
                    "there are no features in it", remedy="give a LETOR file, or a table with columns of them"
                )
            examples, part = described(content, features, weights)
            part.arrays["values"] = self.model._values(features)[examples.rows]
            return Part(part.about | {"names": list(features.names)}, part.arrays)

        return lambda number: shelf.part(number, recipe, lambda: make(number))

    def _columns(self, part: Part) -> None:
        if not part.about["names"]:
            return
        labels, values = examples_of(part).labels, part.arrays["values"]
        features = Features(labels.index, values, tuple(part.about["names"]))
        if not self.names:
            self.names = features.names
            self.mean, self.spread = np.zeros(len(self.names)), np.zeros(len(self.names))
        self.model._check_columns(features, self.names)

    def _look(self, part: Part) -> None:
        """Names and moments of the features of a shard."""
        self._columns(part)
        if self.model.standardise and len(part.arrays["values"]):
            self._add(part.arrays["values"])

    def _add(self, values: F8) -> None:
        """Add rows to the mean and the sum of squares about it (Chan, Golub & LeVeque 1983)."""
        here, both = values.mean(axis=0), self.count + len(values)
        apart = here - self.mean
        self.spread += ((values - here) ** 2).sum(axis=0) + apart**2 * (self.count * len(values) / both)
        self.mean += apart * (len(values) / both)
        self.count = both

    def _task(self, shelf: Shelf, weights: dict[Id, float]) -> Callable[[int], Task]:
        load = self._part(shelf, weights)

        def made(number: int) -> Task:
            part = load(number)
            values = np.ascontiguousarray(self.model._scaled(part.arrays["values"]))
            return Task(values, examples_of(part), progress=silence)

        return made

    def learn(self, optimiser: OptimizerState, random: np.random.Generator) -> None:
        """One pass."""
        task, order = self._task(self.train, self.weights), self.train.shuffled(random)

        def taught(number: int) -> Taught:
            return Taught(self.model, task(number), self.metric, shards=len(order))

        with closing(self.train.each(taught, order)) as lessons:
            for lesson in lessons:
                lesson.learn(optimiser, random)
                forget(lesson.task.examples)

    def quality(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not len(self.check):
            return None
        network, total, mass = self.model._network(self.width), 0.0, 0.0
        with closing(self.check.each(self._task(self.check, {}), self.check.used)) as tasks:
            for task in tasks:
                more = task.examples.tally(network.scores(weights, task.values), self.choose_by)
                total, mass = total + more[0], mass + more[1]
                forget(task.examples)
        return total / max(mass, 1e-300)
