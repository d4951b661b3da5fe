"""The CRF over shards: who the experts are, the spread of what they say, then passes and a last look."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, cast

import numpy as np

from podium.aggregators.supervised.cache import Part
from podium.aggregators.supervised.examples import Examples, Progress, silence
from podium.aggregators.supervised.potentials import Said, potentials, rows_by_expert, said, scales, within
from podium.aggregators.supervised.shards import is_empty
from podium.aggregators.supervised.shelf import (
    Seen,
    Shelf,
    Survey,
    described,
    examples_of,
    forget,
    narrow,
    scale_known,
    weights_key,
)
from podium.aggregators.supervised.strengths import Transform
from podium.aggregators.supervised.visits import Checked, Visits
from podium.data.preferences import Preferences
from podium.data.vocabulary import Id, Ids
from podium.errors import InputError
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials

if TYPE_CHECKING:
    from podium.aggregators.supervised.crf import CrfAggregator

__all__ = ["Shards", "learn"]


def learn(
    model: CrfAggregator, train: Shelf, check: Shelf, weights: dict[Id, float], progress: Progress
) -> Seen:
    """Set everything that fitting sets; how much there was."""
    rounds = Shards(model, train, check, weights, progress)
    rounds.measure()
    model._finish(model._descend(rounds, progress), rounds.scale)
    moves, rows = [], 0
    with closing(train.each(rounds.said(train), train.used)) as parts:
        for found, examples in map(rounds.heard, parts):
            moves.append(model._moves(found, examples.rows, len(examples)))
            rows += len(examples)
    model._judge(moves, rows)
    return rounds.seen


class Shards:
    """Passes over shards, in a random order.

    Two things are made of a shard: what the experts say of its labelled items, which knows no other shard, and from
    this the potentials by groups of experts, which are told by all shards.
    """

    def __init__(
        self,
        model: CrfAggregator,
        train: Shelf,
        check: Shelf,
        weights: dict[Id, float],
        progress: Progress = silence,
    ) -> None:
        self.model, self.train, self.check, self.weights = model, train, check, weights
        self.scale: F8 = np.ones(3)
        self.rows: dict[tuple[type, Id], int] = {}  # and votes of every expert
        self.experts: list[Ids] = []  # by shard
        survey = Survey()
        chosen = Survey(survey)
        survey.over(train, self.said(train), self._look, progress)
        survey.check()
        strangers: list[Ids] = []
        chosen.over(check, self.said(check), lambda part: strangers.append(_experts(part)), progress)
        model.experts_ = [expert for _, expert in self.rows]
        model._begin(np.array(list(self.rows.values()), np.int64))
        self.groups = {
            train.what: list(map(self._groups, self.experts)),
            check.what: list(map(self._groups, strangers)),
        }
        self.seen = Seen(survey.shards, survey.judged, chosen.shards, chosen.judged)
        self.metric = scale_known(model.metric, survey.top)
        self.choose_by = scale_known(model.choose_by, chosen.top)

    def _look(self, part: Part) -> None:
        """Who speaks in a shard and how much."""
        self.experts.append(_experts(part))
        for expert, count in zip(part.about["experts"], part.about["rows"], strict=True):
            key = (type(expert), expert)
            self.rows[key] = self.rows.get(key, 0) + count

    def _groups(self, experts: Ids) -> I8:
        return self.model._groups_of(experts, np.ones(len(experts), np.bool_))

    # -- what is made of a shard ---------------------------------------------------------------------------------

    def _recipe(self, shelf: Shelf) -> str:
        weights = weights_key(self.weights if shelf is self.train else {})
        return f"crf transform={self.model.transform} power={self.model.length_power} weights={weights}"

    def said(self, shelf: Shelf) -> Callable[[int], Part]:
        """What every expert says of the labelled items."""

        def make(number: int) -> Part:
            content = shelf.content(number)
            preferences = Preferences.from_lists({}) if is_empty(content) else content.preferences
            if preferences is None:
                raise InputError(
                    "there are no preferences in it", remedy="give lists or votes with their labels"
                )
            examples, part = described(content, preferences, self.weights if shelf is self.train else {})
            return self._told(preferences, examples, part)

        return lambda number: shelf.part(number, self._recipe(shelf), lambda: make(number))

    def _told(self, preferences: Preferences, examples: Examples, part: Part) -> Part:
        model = self.model
        model._check_forms(preferences)
        heard = np.flatnonzero(preferences.speaking)
        preferences = preferences.with_experts(preferences.experts.take(heard).tolist())
        found = said(
            preferences, cast(Transform, model.transform), model.length_power, np.ones(len(heard), np.bool_)
        )
        row = np.full(len(preferences.index.items), -1, np.int64)
        row[examples.rows] = np.arange(len(examples))
        found = found.take(np.flatnonzero(row[found.slot] >= 0))
        experts = {"experts": preferences.experts.tolist(), "rows": rows_by_expert(preferences).tolist()}
        columns = {
            "expert": narrow(found.expert),
            "row": narrow(row[found.slot]),
            "listed": found.listed,
            "above": found.above,
            "below": found.below,
        }
        return Part(part.about | experts, part.arrays | columns)

    def _said(self, part: Part, codes: I8) -> tuple[Said, Examples]:
        """What experts with a code say, slots being the rows of the examples."""
        examples, arrays = examples_of(part), part.arrays
        slot = arrays["row"].astype(np.int64)
        query = examples.labels.index.query_of_slot[slot]
        found = Said(codes[arrays["expert"]], query, slot, arrays["listed"], arrays["above"], arrays["below"])
        return found.take(np.flatnonzero(found.expert >= 0)), examples

    def heard(self, part: Part) -> tuple[Said, Examples]:
        """What is said in a shard of training, experts numbered as in the model; those left out are not in it."""
        experts = _experts(part)
        codes = self.model._numbers(experts, np.ones(len(experts), np.bool_))
        return self._said(part, np.where(self.model.group_[codes] >= 0, codes, -1))

    def _mine(self, shelf: Shelf) -> Callable[[int], Part]:
        """The potentials of a shard, not yet scaled."""
        model, load = self.model, self.said(shelf)

        def make(part: Part, groups: I8) -> Part:
            if shelf is self.train:
                found, examples = self.heard(part)
                mine = model._potentials(found, examples, len(examples))
            else:
                found, examples = self._said(part, groups)
                count = model._n_groups()
                mine = potentials(found, np.arange(count), count, examples.rows, len(examples))
            arrays = {name: part.arrays[name] for name in ("grades", "starts", "weight")}
            values = {"first": mine.starts, "group": narrow(mine.group), "values": mine.values}
            return Part({}, arrays | values)

        def made(number: int) -> Part:
            groups = self.groups[shelf.what][number]
            recipe = f"{self._recipe(shelf)} groups={groups.tolist()} {shelf.what}"
            return shelf.part(number, recipe, lambda: make(load(number), groups))

        return made

    def _potentials(self, part: Part) -> Potentials:
        arrays = part.arrays
        return Potentials(arrays["first"], arrays["group"].astype(np.int64), arrays["values"] / self.scale)

    # -- going through them --------------------------------------------------------------------------------------

    def measure(self) -> None:
        """The spread of what is said, over all shards."""
        found, groups = [], self.model._n_groups()
        with closing(self.train.each(self._mine(self.train), self.train.used)) as parts:
            for part in parts:
                index = examples_of(part).labels.index
                found.append(within(self._potentials(part), index.query_of_slot, index.sizes, groups))
        self.scale = scales(found)

    def visits(self, order: list[int]) -> Generator[Visits]:
        """The shards in this order, ready to be visited."""
        load = self._mine(self.train)

        def made(number: int) -> Visits:
            part = load(number)
            return Visits(
                self.model, self._potentials(part), examples_of(part), self.metric, shards=len(order)
            )

        return self.train.each(made, order)

    def learn(self, optimiser: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """One pass."""
        lost, weight = 0.0, 0.0
        with closing(self.visits(self.train.shuffled(random))) as visits:
            for visit in visits:
                more = visit.learn(optimiser, random)
                lost, weight = lost + more[0], weight + more[1]
                forget(visit.examples)
        return lost, weight

    def quality(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not len(self.check):
            return None
        total, mass, load = 0.0, 0.0, self._mine(self.check)

        def made(number: int) -> Checked:
            part = load(number)
            return Checked(self._potentials(part), examples_of(part), self.choose_by)

        with closing(self.check.each(made, self.check.used)) as parts:
            for checked in parts:
                more = checked.tally(weights)
                total, mass = total + more[0], mass + more[1]
                forget(checked.examples)
        return total / max(mass, 1e-300)


def _experts(part: Part) -> Ids:
    return Ids(part.about["experts"])
