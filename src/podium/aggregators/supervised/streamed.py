"""LambdaRank over shards: what all of them have in common first, then passes that read them one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from podium.aggregators.supervised.courses import Taught
from podium.aggregators.supervised.examples import Examples, silence
from podium.aggregators.supervised.learner import Task
from podium.aggregators.supervised.shards import Shard, Survey, ahead, scale_known
from podium.data.features import Features
from podium.data.vocabulary import Id
from podium.errors import InputError
from podium.formats import Content
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import Optimiser

if TYPE_CHECKING:
    from podium.aggregators.supervised.lambdarank import LambdaRank

__all__ = ["Streamed"]


class Streamed:
    """A course over shards: every pass reads all of them in a random order; steps do not cross their borders."""

    threads = False

    def __init__(
        self, model: LambdaRank, shards: list[Shard], check: list[Shard], weights: Mapping[Id, float]
    ) -> None:
        self.model, self.shards, self.check, self.weights = model, shards, check, dict(weights)
        self.names: tuple[str, ...] = ()
        self.count, self.mean, self.spread = 0, np.zeros(0), np.zeros(0)
        survey, check_survey = Survey(), Survey()
        if not sum(
            ahead(shards, range(len(shards)), lambda content: self._look(content, survey, measured=True))
        ):
            raise InputError(
                "no query of any shard has items of two grades",
                remedy="a ranking is learned from better and worse items of one query: give both",
            )
        for _ in ahead(
            check, range(len(check)), lambda content: self._look(content, check_survey, measured=False)
        ):
            pass
        self.metric = scale_known(model.metric, survey.top)
        self.choose_by = scale_known(model.choose_by, check_survey.top)
        self.width = len(self.names)

    def _look(self, content: Content, survey: Survey, *, measured: bool) -> int:
        """Names and moments of the features of a shard; how many queries can teach."""
        survey.see(content)
        features = _features(content)
        self.names = self.names or features.names
        self.model._check_columns(features, self.names)
        if not measured:
            return 0
        values, examples = self._examples(content, self.weights)
        if len(values):
            self._add(values)
        return len(examples.useful())

    def _add(self, values: F8) -> None:
        """Add rows to the mean and the sum of squares about it (Chan, Golub & LeVeque 1983)."""
        if not self.count:
            self.mean, self.spread = np.zeros(values.shape[1]), np.zeros(values.shape[1])
        here, both = values.mean(axis=0), self.count + len(values)
        apart = here - self.mean
        self.spread += ((values - here) ** 2).sum(axis=0) + apart**2 * (self.count * len(values) / both)
        self.mean += apart * (len(values) / both)
        self.count = both

    def _examples(self, content: Content, weights: dict[Id, float]) -> tuple[F8, Examples]:
        features = _features(content)
        examples = Examples.of(features.index, content.labels, weights, teaches=False)
        return self.model._values(features)[examples.rows], examples

    def _scaled(self, content: Content, weights: dict[Id, float]) -> Task:
        values, examples = self._examples(content, weights)
        return Task(np.ascontiguousarray(self.model._scaled(values)), examples, progress=silence)

    def _tasks(
        self, shards: Sequence[Shard], order: Sequence[int], weights: dict[Id, float]
    ) -> Iterator[Task]:
        return ahead(shards, order, lambda content: self._scaled(content, weights))

    def learn(self, optimiser: Optimiser, random: np.random.Generator) -> None:
        """One pass."""
        order = random.permutation(len(self.shards)).tolist() if len(self.shards) > 1 else [0]
        for task in self._tasks(self.shards, order, self.weights):
            Taught(self.model, task, self.metric, part=True).learn(optimiser, random)

    def quality(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not self.check:
            return None
        network, total, mass = self.model._network(self.width), 0.0, 0.0
        for task in self._tasks(self.check, range(len(self.check)), {}):
            more = task.examples.tally(network.scores(weights, task.values), self.choose_by)
            total, mass = total + more[0], mass + more[1]
        return total / max(mass, 1e-300)


def _features(content: Content) -> Features:
    if content.features is None:
        raise InputError(
            "there are no features in it",
            remedy="of a LETOR file that looks like ranks make a shard by lambda: formats.read(path, kind='features')",
        )
    return content.features
