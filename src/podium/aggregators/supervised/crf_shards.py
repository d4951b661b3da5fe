"""The CRF over shards: who the experts are, the spread of what they say, then passes and a last look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.aggregators.supervised.examples import Examples, Progress
from podium.aggregators.supervised.potentials import Said, potentials, rows_by_expert, scales, within
from podium.aggregators.supervised.shards import Shard, Survey, ahead, scale_known
from podium.aggregators.supervised.visits import Checked, Visits
from podium.data.preferences import Preferences
from podium.data.vocabulary import Id
from podium.errors import InputError
from podium.formats import Content
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import Optimiser
from podium.kernels.permutations import Potentials

if TYPE_CHECKING:
    from podium.aggregators.supervised.crf import CrfAggregator

__all__ = ["learn"]


class _Part(NamedTuple):
    """A shard, prepared: what the experts say, numbered as in the model, and the examples."""

    said: Said
    examples: Examples
    slots: int


def learn(
    model: CrfAggregator,
    shards: list[Shard],
    check: list[Shard],
    weights: dict[Id, float],
    progress: Progress,
) -> None:
    """Set everything that fitting sets."""
    rounds = _Shards(model, shards, check, weights)
    found = []
    for part in rounds.parts():
        index = part.examples.labels.index
        found.append(within(rounds.potentials(part), index.query_of_slot, index.sizes, model._n_groups()))
    rounds.scale = scales(found)
    model._finish(model._descend(rounds, progress), rounds.scale)
    moves, rows = [], 0
    for part in rounds.parts():
        moves.append(model._moves(part.said, part.examples.rows, part.slots))
        rows += len(part.examples)
    model._judge(moves, rows)


class _Shards:
    """Passes over shards, in a random order."""

    def __init__(
        self, model: CrfAggregator, shards: list[Shard], check: list[Shard], weights: dict[Id, float]
    ) -> None:
        self.model, self.shards, self.check, self.weights = model, shards, check, weights
        self.scale: F8 = np.ones(3)
        survey, check_survey = Survey(), Survey()
        rows: dict[tuple[type, Id], int] = {}
        if not sum(ahead(shards, range(len(shards)), lambda content: self._look(content, survey, rows))):
            raise InputError(
                "no query of any shard has items of two grades",
                remedy="a ranking is learned from better and worse items of one query: give both",
            )
        for _ in ahead(check, range(len(check)), check_survey.see):
            pass
        model.experts_ = [expert for _, expert in rows]
        model._begin(np.array(list(rows.values()), np.int64))
        self.metric = scale_known(model.metric, survey.top)
        self.choose_by = scale_known(model.choose_by, check_survey.top)

    def _look(self, content: Content, survey: Survey, rows: dict[tuple[type, Id], int]) -> int:
        """Who speaks in a shard and how much, added to `rows`; how many queries can teach."""
        survey.see(content)
        preferences = _preferences(content)
        self.model._check_forms(preferences)
        counts = rows_by_expert(preferences)
        for code in np.flatnonzero(preferences.speaking).tolist():
            expert = preferences.experts[code]
            rows[type(expert), expert] = rows.get((type(expert), expert), 0) + int(counts[code])
        return len(self._examples(content).useful())

    def _examples(self, content: Content) -> Examples:
        return Examples.of(_preferences(content).index, content.labels, self.weights, teaches=False)

    def _part(self, content: Content) -> _Part:
        preferences = _preferences(content)
        found = self.model._said(preferences)
        found = found._replace(expert=self.model._codes(preferences)[found.expert])
        return _Part(found, self._examples(content), len(preferences.index.items))

    def parts(self, order: Sequence[int] | None = None) -> Iterator[_Part]:
        """The shards, prepared."""
        return ahead(self.shards, range(len(self.shards)) if order is None else order, self._part)

    def potentials(self, part: _Part) -> Potentials:
        """What is said of the examples of a shard."""
        found = self.model._potentials(part.said, part.examples, part.slots)
        return found._replace(values=found.values / self.scale)

    def learn(self, optimiser: Optimiser, random: np.random.Generator) -> tuple[float, float]:
        """One pass."""
        order = random.permutation(len(self.shards)).tolist() if len(self.shards) > 1 else [0]
        lost, weight = 0.0, 0.0
        for part in self.parts(order):
            visits = Visits(self.model, self.potentials(part), part.examples, self.metric, part=True)
            more = visits.learn(optimiser, random)
            lost, weight = lost + more[0], weight + more[1]
        return lost, weight

    def quality(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not self.check:
            return None
        total, mass = 0.0, 0.0
        for checked in ahead(self.check, range(len(self.check)), self._checked):
            more = checked.tally(weights)
            total, mass = total + more[0], mass + more[1]
        return total / max(mass, 1e-300)

    def _checked(self, content: Content) -> Checked:
        model, preferences = self.model, _preferences(content)
        examples = Examples.of(preferences.index, content.labels, teaches=False)
        plan = (model._groups(preferences), model._n_groups(), examples.rows, len(preferences.index.items))
        found = potentials(model._said(preferences), *plan)
        return Checked(found._replace(values=found.values / self.scale), examples, self.choose_by)


def _preferences(content: Content) -> Preferences:
    if content.preferences is None:
        raise InputError("there are no preferences in it", remedy="give lists or votes with their labels")
    return content.preferences
