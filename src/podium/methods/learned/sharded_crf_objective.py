"""The CRF over shards: collect the experts, the spread of their statements, then train and validate."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, cast

import numpy as np

from podium.core.errors import InputError
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials
from podium.learning.examples import Examples, Progress, no_progress
from podium.learning.shard_cache import (
    PreparedShards,
    ShardCounts,
    ShardScan,
    clear_metric_cache,
    extract_examples,
    fix_max_grade,
    narrow_integers,
    read_examples,
    weights_key,
)
from podium.learning.training_shards import is_empty
from podium.methods.input_checks import check_forms
from podium.methods.learned.crf_objective import CrfValidation, InMemoryCrfObjective
from podium.methods.learned.crf_potentials import (
    ExpertStatements,
    build_potentials,
    collect_statements,
    compute_scales,
    count_rows_by_expert,
    sum_squares_within,
)
from podium.methods.learned.expert_matrices import Transform
from podium.storage.array_files import PreparedArrays

if TYPE_CHECKING:
    from podium.methods.learned.crf import CrfAggregator

__all__ = ["ShardedCrfObjective", "train_on_shards"]


def train_on_shards(
    model: CrfAggregator,
    train: PreparedShards,
    check: PreparedShards,
    weights: dict[Id, float],
    progress: Progress,
) -> ShardCounts:
    """Set all fitted attributes; returns the counts."""
    rounds = ShardedCrfObjective(model, train, check, weights, progress)
    rounds.measure_scale()
    model._set_weights(model._train_weights(rounds, progress), rounds.scale)
    moves, rows = [], 0
    with closing(train.iterate_prepared(rounds.build_statement_loader(train), train.used)) as parts:
        for found, examples in map(rounds.read_training_statements, parts):
            moves.append(model._compute_effects(found, examples.rows, len(examples)))
            rows += len(examples)
    model._set_effects(moves, rows)
    return rounds.seen


class ShardedCrfObjective:
    """Passes over shards, in random order.

    Each shard is prepared in two steps: the experts' statements about its labeled items, which depend on this
    shard alone, and from them the potentials by groups of experts, which depend on all shards.
    """

    def __init__(
        self,
        model: CrfAggregator,
        train: PreparedShards,
        check: PreparedShards,
        weights: dict[Id, float],
        progress: Progress = no_progress,
    ) -> None:
        self.model, self.train, self.check, self.weights = model, train, check, weights
        self.scale: F8 = np.ones(3)
        self.rows: dict[tuple[type, Id], int] = {}  # rows and votes of every expert
        self.experts: list[Ids] = []  # by shard
        survey = ShardScan()
        chosen = ShardScan(survey)
        survey.scan_shards(train, self.build_statement_loader(train), self._count_expert_rows, progress)
        survey.check_learnable()
        strangers: list[Ids] = []
        chosen.scan_shards(
            check,
            self.build_statement_loader(check),
            lambda part: strangers.append(_read_experts(part)),
            progress,
        )
        model.experts_ = [expert for _, expert in self.rows]
        model._assign_groups(np.array(list(self.rows.values()), np.int64))
        self.groups = {
            train.what: list(map(self._find_groups, self.experts)),
            check.what: list(map(self._find_groups, strangers)),
        }
        self.seen = ShardCounts(survey.shards, survey.judged, chosen.shards, chosen.judged)
        self.metric = fix_max_grade(model.metric, survey.top)
        self.choose_by = fix_max_grade(model.choose_by, chosen.top)

    def _count_expert_rows(self, part: PreparedArrays) -> None:
        """Experts of a shard, and their numbers of rows."""
        self.experts.append(_read_experts(part))
        for expert, count in zip(part.about["experts"], part.about["rows"], strict=True):
            key = (type(expert), expert)
            self.rows[key] = self.rows.get(key, 0) + count

    def _find_groups(self, experts: Ids) -> I8:
        return self.model._find_groups_by_id(experts, np.ones(len(experts), np.bool_))

    # -- preparing a shard -----------------------------------------------------------------------------------

    def _describe_recipe(self, shelf: PreparedShards) -> str:
        weights = weights_key(self.weights if shelf is self.train else {})
        return f"crf transform={self.model.transform} power={self.model.length_power} weights={weights}"

    def build_statement_loader(self, shelf: PreparedShards) -> Callable[[int], PreparedArrays]:
        """The statements of every expert about the labeled items."""

        def make_statements(number: int) -> PreparedArrays:
            content = shelf.content(number)
            preferences = Preferences.from_lists({}) if is_empty(content) else content.preferences
            if preferences is None:
                raise InputError("it contains no preferences", remedy="give lists or votes with their labels")
            examples, part = extract_examples(
                content, preferences, self.weights if shelf is self.train else {}
            )
            return self._extract_statements(preferences, examples, part)

        return lambda number: shelf.get_or_make(
            number, self._describe_recipe(shelf), lambda: make_statements(number)
        )

    def _extract_statements(
        self, preferences: Preferences, examples: Examples, part: PreparedArrays
    ) -> PreparedArrays:
        model = self.model
        check_forms(model, preferences)
        heard = np.flatnonzero(preferences.active_experts)
        preferences = preferences.with_experts(preferences.experts.take(heard).tolist())
        found = collect_statements(
            preferences, cast(Transform, model.transform), model.length_power, np.ones(len(heard), np.bool_)
        )
        row = np.full(len(preferences.index.items), -1, np.int64)
        row[examples.rows] = np.arange(len(examples))
        found = found.select_entries(np.flatnonzero(row[found.slot] >= 0))
        experts = {
            "experts": preferences.experts.tolist(),
            "rows": count_rows_by_expert(preferences).tolist(),
        }
        columns = {
            "expert": narrow_integers(found.expert),
            "row": narrow_integers(row[found.slot]),
            "listed": found.listed,
            "above": found.above,
            "below": found.below,
        }
        return PreparedArrays(part.about | experts, part.arrays | columns)

    def _read_statements(self, part: PreparedArrays, codes: I8) -> tuple[ExpertStatements, Examples]:
        """Statements of the experts with a code, slots being the rows of the examples."""
        examples, arrays = read_examples(part), part.arrays
        slot = arrays["row"].astype(np.int64)
        query = examples.labels.index.query_of_slot[slot]
        found = ExpertStatements(
            codes[arrays["expert"]], query, slot, arrays["listed"], arrays["above"], arrays["below"]
        )
        return found.select_entries(np.flatnonzero(found.expert >= 0)), examples

    def read_training_statements(self, part: PreparedArrays) -> tuple[ExpertStatements, Examples]:
        """The statements of a training shard, experts numbered as in the model, without excluded experts."""
        experts = _read_experts(part)
        codes = self.model._match_expert_ids(experts, np.ones(len(experts), np.bool_))
        return self._read_statements(part, np.where(self.model.group_[codes] >= 0, codes, -1))

    def _build_potential_loader(self, shelf: PreparedShards) -> Callable[[int], PreparedArrays]:
        """The potentials of a shard, not yet scaled."""
        model, load = self.model, self.build_statement_loader(shelf)

        def make_potentials(part: PreparedArrays, groups: I8) -> PreparedArrays:
            if shelf is self.train:
                found, examples = self.read_training_statements(part)
                mine = model._build_potentials(found, examples, len(examples))
            else:
                found, examples = self._read_statements(part, groups)
                count = model._count_groups()
                mine = build_potentials(found, np.arange(count), count, examples.rows, len(examples))
            arrays = {name: part.arrays[name] for name in ("grades", "starts", "weight")}
            values = {"first": mine.starts, "group": narrow_integers(mine.group), "values": mine.values}
            return PreparedArrays({}, arrays | values)

        def load_potentials(number: int) -> PreparedArrays:
            groups = self.groups[shelf.what][number]
            recipe = f"{self._describe_recipe(shelf)} groups={groups.tolist()} {shelf.what}"
            return shelf.get_or_make(number, recipe, lambda: make_potentials(load(number), groups))

        return load_potentials

    def _read_potentials(self, part: PreparedArrays) -> Potentials:
        arrays = part.arrays
        return Potentials(arrays["first"], arrays["group"].astype(np.int64), arrays["values"] / self.scale)

    # -- passes ----------------------------------------------------------------------------------------------

    def measure_scale(self) -> None:
        """The spread of the statements, over all shards."""
        found, groups = [], self.model._count_groups()
        with closing(
            self.train.iterate_prepared(self._build_potential_loader(self.train), self.train.used)
        ) as parts:
            for part in parts:
                index = read_examples(part).labels.index
                found.append(
                    sum_squares_within(self._read_potentials(part), index.query_of_slot, index.sizes, groups)
                )
        self.scale = compute_scales(found)

    def iterate_objectives(self, order: list[int]) -> Generator[InMemoryCrfObjective]:
        """The shards in this order, ready for a pass."""
        load = self._build_potential_loader(self.train)

        def load_objective(number: int) -> InMemoryCrfObjective:
            part = load(number)
            return InMemoryCrfObjective(
                self.model, self._read_potentials(part), read_examples(part), self.metric, shards=len(order)
            )

        return self.train.iterate_prepared(load_objective, order)

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """Run one pass."""
        lost, weight = 0.0, 0.0
        with closing(self.iterate_objectives(self.train.shuffle_order(random))) as visits:
            for visit in visits:
                more = visit.run_pass(optimiser, random)
                lost, weight = lost + more[0], weight + more[1]
                clear_metric_cache(visit.examples)
        return lost, weight

    def validate(self, weights: F8) -> float | None:
        """The mean over the queries of all validation shards."""
        if not len(self.check):
            return None
        total, mass, load = 0.0, 0.0, self._build_potential_loader(self.check)

        def load_validation(number: int) -> CrfValidation:
            part = load(number)
            return CrfValidation(self._read_potentials(part), read_examples(part), self.choose_by)

        with closing(self.check.iterate_prepared(load_validation, self.check.used)) as parts:
            for checked in parts:
                more = checked.sum_metric(weights)
                total, mass = total + more[0], mass + more[1]
                clear_metric_cache(checked.examples)
        return total / max(mass, 1e-300)


def _read_experts(part: PreparedArrays) -> Ids:
    return Ids(part.about["experts"])
