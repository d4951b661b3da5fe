"""The CRF over shards: collect the experts, the spread of their statements, then train and validate."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import InputError
from podium.core.progress import Progress
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.ranking_expectations import Potentials
from podium.learning.examples import Examples
from podium.learning.shard_cache import (
    PreparedShards,
    ShardBlocks,
    ShardCounts,
    extract_examples,
    narrow_integers,
    read_examples,
    scan_training_shards,
    weights_key,
)
from podium.learning.training_shards import is_empty
from podium.methods.input_checks import check_forms, match_expert_ids
from podium.methods.learned.crf_features import NO_FEATURES
from podium.methods.learned.crf_potentials import (
    ExpertStatements,
    PotentialBlock,
    build_potentials,
    count_rows_by_expert,
    sum_squares_within,
)
from podium.methods.learned.potentials import describe_definitions
from podium.storage.array_files import PreparedArrays

if TYPE_CHECKING:
    from podium.methods.learned.crf import CrfAggregator

__all__ = ["PreferenceShards", "train_on_shards"]


def train_on_shards(
    model: CrfAggregator,
    train: PreparedShards,
    check: PreparedShards,
    weights: dict[Id, float],
    progress: Progress,
) -> ShardCounts:
    """Set all fitted attributes; returns the counts."""
    model._set_roles(NO_FEATURES)
    given = PreferenceShards(model, train, check, weights, progress)
    scale = given.measure_scale()
    blocks = given.build_blocks(train, scale)
    check_blocks = given.build_blocks(check, scale) if len(check) else None
    model._train_weights(blocks, check_blocks, given.scan.choose_by, scale, progress)
    moves, rows = [], 0
    with closing(train.iterate_prepared(partial(given.load_statements, train), train.used)) as parts:
        for statements, examples in map(given.read_training_statements, parts):
            moves.append(model._compute_effects(statements, examples.rows, len(examples)))
            rows += len(examples)
    model._set_effects(moves, rows)
    return given.scan.counts


class PreferenceShards:
    """Shards of preferences and labels: their experts, and blocks to train on.

    Each shard is prepared in two steps: the experts' statements about its labeled items, which depend on this
    shard alone, and from them the potentials by groups of experts, which depend on all shards.
    """

    def __init__(
        self,
        model: CrfAggregator,
        train: PreparedShards,
        check: PreparedShards,
        weights: dict[Id, float],
        progress: Progress,
    ) -> None:
        self.model, self.train, self.weights = model, train, weights
        self.rows: dict[tuple[type, Id], int] = {}  # rows and votes of every expert in training
        self.experts: dict[str, list[Ids]] = {train.what: [], check.what: []}  # by shard
        self.scan = scan_training_shards(
            train, check, self.load_statements, self._read_experts, model.plan, progress
        )
        model.experts_ = [expert for _, expert in self.rows]
        model._assign_groups(np.array(list(self.rows.values()), np.int64))
        self.groups = {
            what: [model._find_groups_by_id(experts, np.ones(len(experts), np.bool_)) for experts in shards]
            for what, shards in self.experts.items()
        }

    def _read_experts(self, shards: PreparedShards, part: PreparedArrays) -> None:
        """Collect the experts of a shard, and the numbers of their rows in training."""
        self.experts[shards.what].append(Ids(part.about["experts"]))
        if shards is self.train:
            for expert, count in zip(part.about["experts"], part.about["rows"], strict=True):
                key = (type(expert), expert)
                self.rows[key] = self.rows.get(key, 0) + count

    # -- preparing a shard -----------------------------------------------------------------------------------

    def _describe_recipe(self, shards: PreparedShards) -> str:
        weights = weights_key(self.weights if shards is self.train else {})
        model = self.model
        potentials = describe_definitions(model._columns.potentials)
        divisor = f"power={model.length_power} {model.divisor}"
        return f"crf transform={model.transform} {divisor} {potentials} weights={weights}"

    def load_statements(self, shards: PreparedShards, number: int) -> PreparedArrays:
        """The statements of every expert about the labeled items."""
        model = self.model

        def make_statements() -> PreparedArrays:
            content = shards.content(number)
            preferences = Preferences.from_lists({}) if is_empty(content) else content.preferences
            if preferences is None:
                raise InputError("it contains no preferences", remedy="give lists or votes with their labels")
            if content.features is not None:
                raise InputError(
                    "crf does not use item features in shards",
                    remedy="fit in memory, or give shards without features",
                )
            weights = self.weights if shards is self.train else {}
            examples, part = extract_examples(content, preferences, weights)
            check_forms(model, preferences)
            active = preferences.experts.take(np.flatnonzero(preferences.active_experts)).tolist()
            preferences = preferences.with_experts(active)
            statements = model._collect_statements(preferences, None, np.ones(len(active), np.bool_))
            row = np.full(len(preferences.index.items), -1, np.int64)
            row[examples.rows] = np.arange(len(examples))
            statements = statements.select_entries(np.flatnonzero(row[statements.slot] >= 0))
            columns = {
                "expert": narrow_integers(statements.expert),
                "row": narrow_integers(row[statements.slot]),
                "listed": statements.listed,
                "standing": statements.standing,
                "potentials": statements.values,
            }
            experts = {"experts": active, "rows": count_rows_by_expert(preferences).tolist()}
            return PreparedArrays(part.about | experts, part.arrays | columns)

        return shards.get_or_make(number, self._describe_recipe(shards), make_statements)

    def _read_statements(self, part: PreparedArrays, codes: I8) -> tuple[ExpertStatements, Examples]:
        """Statements of the experts with a code, slots being the rows of the examples."""
        examples, arrays = read_examples(part), part.arrays
        slot = arrays["row"].astype(np.int64)
        query = examples.labels.index.query_of_slot[slot]
        statements = ExpertStatements(
            codes[arrays["expert"]], query, slot, arrays["listed"], arrays["standing"], arrays["potentials"]
        )
        return statements.select_entries(np.flatnonzero(statements.expert >= 0)), examples

    def read_training_statements(self, part: PreparedArrays) -> tuple[ExpertStatements, Examples]:
        """The statements of a training shard, experts numbered as in the model, without excluded experts."""
        experts = Ids(part.about["experts"])
        codes = match_expert_ids(self.model, experts, np.ones(len(experts), np.bool_))
        return self._read_statements(part, np.where(self.model.group_[codes] >= 0, codes, -1))

    def _load_potentials(self, shards: PreparedShards, number: int) -> PreparedArrays:
        """The potentials of a shard, not yet scaled."""
        model, groups = self.model, self.groups[shards.what][number]

        def make_potentials() -> PreparedArrays:
            part = self.load_statements(shards, number)
            if shards is self.train:
                statements, examples = self.read_training_statements(part)
                mine = model._build_potentials(statements, examples, len(examples))
            else:
                statements, examples = self._read_statements(part, groups)
                count = model._count_groups()
                unlisted, every = model._columns.unlisted, np.arange(count)
                mine = build_potentials(statements, unlisted, every, count, examples.rows, len(examples))
            arrays = {name: part.arrays[name] for name in ("grades", "starts", "weight")}
            values = {"first": mine.starts, "group": narrow_integers(mine.group), "values": mine.values}
            return PreparedArrays({}, arrays | values)

        recipe = f"{self._describe_recipe(shards)} groups={groups.tolist()} {shards.what}"
        return shards.get_or_make(number, recipe, make_potentials)

    # -- all shards ------------------------------------------------------------------------------------------

    def measure_scale(self) -> F8:
        """The spread of the statements, over all training shards."""
        squares, groups, train = [], self.model._count_groups(), self.train
        with closing(train.iterate_prepared(partial(self._load_potentials, train), train.used)) as parts:
            for part in parts:
                index = read_examples(part).labels.index
                squares.append(
                    sum_squares_within(_read_potentials(part), index.query_of_slot, index.sizes, groups)
                )
        return self.model._compute_scales(squares)

    def build_blocks(self, shards: PreparedShards, scale: F8) -> ShardBlocks:
        """The shards as blocks of potentials divided by `scale`."""
        metric = self.scan.metric if shards is self.train else None

        def load_block(number: int) -> PotentialBlock:
            part = self._load_potentials(shards, number)
            return self.model._build_block(
                _read_potentials(part), scale, read_examples(part), metric, len(shards.used)
            )

        return ShardBlocks(shards, load_block)


def _read_potentials(part: PreparedArrays) -> Potentials:
    arrays = part.arrays
    return Potentials(arrays["first"], arrays["group"].astype(np.int64), arrays["values"])
