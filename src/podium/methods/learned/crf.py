"""A conditional random field over rankings: simple sums at test time, exact expected metrics in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self, cast

import numpy as np

from podium.core.errors import InputError, Option, ParameterError
from podium.core.params import Choice, Range, Tune
from podium.core.progress import Progress, no_progress
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.ranking_expectations import LARGEST, Potentials, sum_by_index
from podium.learning.examples import Examples, Training
from podium.learning.plan import (
    Batch,
    ChooseBy,
    Decay,
    Device,
    KeptPass,
    LearningRate,
    Optimizer,
    Passes,
    Penalty,
    Plan,
    Seed,
    TargetMetric,
)
from podium.learning.shard_cache import open_prepared_shards
from podium.learning.trainer import BlockSource, Objective, train
from podium.learning.training_shards import TrainingShard
from podium.methods.base import ALL_FORMS, FEATURES, Tags
from podium.methods.input_checks import match_expert_ids
from podium.methods.learned.crf_columns import PotentialColumns
from podium.methods.learned.crf_features import NO_FEATURES, FeatureRoles, find_feature_roles
from podium.methods.learned.crf_interpretation import (
    IGNORED,
    ExpertWeights,
    ReadableWeights,
    WeightReading,
    compute_effects,
)
from podium.methods.learned.crf_potentials import (
    ExpertStatements,
    PotentialBlock,
    append_features,
    build_potentials,
    compute_scales,
    count_rows_by_expert,
    order_by_content,
    sum_squares_within,
)
from podium.methods.learned.expert_matrices import Transform
from podium.methods.learned.potentials import collect_entries, parse_potentials
from podium.methods.learned.provenance import forget_queries
from podium.methods.learned.supervised_method import PlanTrainedAggregator
from podium.metrics.base import MetricSpec
from podium.storage.folder_cache import CacheOption

__all__ = ["CrfAggregator", "ExpertWeights", "WeightReading"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrfAggregator(ReadableWeights, PlanTrainedAggregator):
    """Learned weights of a few potentials per expert, minimizing the exact expected loss of a ranking distribution.

    The score of an item adds, for every expert of the query, `missing` if the expert does not list it, plus
    `preferred` times the strength with which the expert prefers it to others, minus `beaten` times the
    strength with which others are preferred to it; `potentials` names further terms. Item features add terms of
    their own, and features that are constant in every query change the weights of the experts from query to query.
    The probability of a ranking falls with the sum over places of score / log2(place + 1). Each pass samples a few
    items per query, at least one of each grade; the expected loss over all their rankings is exact.

    >>> from podium import Labels, Preferences
    >>> good, bad = ["a", "b", "c"], ["c", "b", "a"]
    >>> p = Preferences.from_lists({q: {"x": good, "y": bad} for q in ("q1", "q2")})
    >>> model = CrfAggregator().fit(p, Labels.from_dict({"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"a": 1, "c": 0}}))
    >>> model.aggregate(p).ranking("q1")
    ['a', 'b', 'c']
    >>> [(row.expert, row.reading) for row in model.expert_weights()]
    [('x', 'important'), ('y', 'used in reverse')]
    """

    name: ClassVar[str] = "crf"
    citation: ClassVar[str] = (
        "Volkovs & Zemel, CRF framework for supervised preference aggregation, CIKM 2013"
    )
    tags: ClassVar[Tags] = Tags(
        accepts=ALL_FORMS, additive=True, weighted=False, supervised=True, uses_features=True
    )

    potentials: Annotated[
        str | Sequence[str],
        "what is weighed per expert and item, joined by +: absence, pairwise, reciprocal_rank(k=5), "
        "log_rank(depth=1000), or your own",
    ] = "absence + pairwise"
    transform: Annotated[
        str,
        Choice("log", "rank", "binary"),
        "strength of one item over another: difference of log ranks, of ranks, or 1",
    ] = "log"
    length_power: Annotated[
        float,
        Range(0, 2),
        Tune(0, 1),
        "exponent of the number of items that divides the two sums, not the weight of absence; 0: the "
        "paper's order (it divides the whole energy by the squared number); 1: means, as in the authors' code",
    ] = 0.5
    divisor: Annotated[
        str,
        Choice("items", "others"),
        "number that `length_power` applies to: the items of the query, or one fewer, as in the authors' code",
    ] = "items"
    scaling: Annotated[
        str,
        Choice("spread", "none"),
        "potentials in training: divided by their spread, or as they are, as in the authors' code",
    ] = "spread"
    sharing: Annotated[
        str,
        Choice("own", "shared", "hybrid"),
        "weights per expert, shared by all (accepts unknown experts), or per expert with enough data",
    ] = "own"
    min_preferences: Annotated[
        int,
        Range(1, 10**9),
        "training rows and votes an expert needs for its own weights, if sharing='hybrid'",
    ] = 500
    metric: TargetMetric = "ndcg:exp"
    choose_by: ChooseBy = "map"
    subset: Annotated[
        int, Range(2, LARGEST), "maximum number of labeled items sampled per query and step"
    ] = 6
    passes: Passes = 200
    kept_pass: KeptPass = Plan.kept_pass
    optimizer: Annotated[Optimizer, "optimizer; sgd needs a rate near 1"] = "adam"
    rate: Annotated[LearningRate, Tune(0.003, 0.1, log=True)] = 0.03
    decay: Decay = 30.0
    batch: Batch = 8
    l2: Annotated[Penalty, Tune(1e-6, 1e-2, log=True)] = 1e-4
    average: Annotated[
        int, Range(1, 100_000), "passes over which the weights are averaged; 1 disables averaging"
    ] = 100
    seed: Seed = 0
    device: Device = "cpu"

    def __post_init__(self) -> None:
        self.potentials = " + ".join(map(repr, parse_potentials(self.potentials)))
        super().__post_init__()

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        self._assign_groups(count_rows_by_expert(training.preferences))
        self._set_roles(find_feature_roles(training.preferences.index, training.features))
        statements = self._collect_statements(training.preferences, training.features)
        examples, slots = training.examples, len(training.preferences.index.items)
        index, groups = examples.labels.index, self._count_groups()
        mine = self._build_potentials(statements, examples, slots, self._compute_item_values(training))
        squares = sum_squares_within(mine, index.query_of_slot, index.sizes, groups)
        scale = self._compute_scales([squares])
        block = self._build_block(mine, scale, examples, self.metric)
        check, held = None, training.validation
        if held is not None:
            potentials = build_potentials(
                self._collect_statements(held.preferences, held.features),
                self._columns.unlisted,
                self._find_groups(held.preferences),
                groups,
                held.examples.rows,
                len(held.preferences.index.items),
            )
            potentials = append_features(potentials, self._compute_item_values(held), groups)
            check = self._build_block(potentials, scale, held.examples)
        self._train_weights(block, check, self.choose_by, scale, training.progress)
        self._set_effects([self._compute_effects(statements, examples.rows, slots)], len(examples))

    def _assign_groups(self, rows: I8) -> None:
        """Set the weight group of every expert (-1: dropped), and that of experts without own weights or -1.

        `rows` is the number of rows and votes of every expert.
        """
        self.dropped_: list[Id] = list(getattr(self, "dropped_", []))
        counts = Ids(self.dropped_).codes_of(Ids(self.experts_)) < 0
        if not counts.any():
            raise InputError("all experts were dropped", remedy="drop fewer experts")
        own = counts & (rows >= self.min_preferences if self.sharing == "hybrid" else self.sharing == "own")
        self.shared_ = -1 if self.sharing == "own" else int(own.sum())
        self.group_ = np.where(own, np.cumsum(own) - 1, np.where(counts, self.shared_, -1))

    def _count_groups(self) -> int:
        return int(max(self.group_.max(initial=-1), self.shared_)) + 1

    def _build_potentials(
        self, statements: ExpertStatements, examples: Examples, slots: int, items: F8 | None = None
    ) -> Potentials:
        """Potentials of the rows of the examples, in an order that does not depend on ids; `items`: features."""
        count = self._count_groups()
        mine = build_potentials(statements, self._columns.unlisted, self.group_, count, examples.rows, slots)
        mine = mine if items is None else append_features(mine, items, count)
        if examples.labels.kind == "pairs":
            return mine  # every row has its own pairs, so that none can take the place of another
        starts, entries = segments.gather_segments(mine.starts, order_by_content(mine, examples))
        return Potentials(starts, mine.group[entries], mine.values[entries])

    def _train_weights(
        self,
        training: BlockSource,
        validation: BlockSource | None,
        choose_by: MetricSpec,
        scale: F8,
        progress: Progress,
    ) -> None:
        """Learn `weights_`, one row per group, from potentials that were divided by `scale`, and `feature_weights_`."""
        groups, width, features = self._count_groups(), len(scale), len(self._columns.roles.item_names)
        size = width * (groups - (-features // width))
        objective = Objective(training, validation, choose_by, lambda _: np.zeros(size))
        trained = train(objective, self.plan, self.seed, progress)
        self.losses_, self.passes_ = trained.losses, [trained.pass_number]
        self.quality_ = 0.0 if validation is None else trained.quality
        self.weights_ = trained.weights[: groups * width].reshape(-1, width) / scale
        self.feature_weights_ = trained.weights[groups * width :][:features]
        if self.shared_ > 0 and not (self.group_ == self.shared_).any():
            # unknown experts get the mean of the known ones
            self.weights_[self.shared_] = self.weights_[: self.shared_].mean(axis=0)

    def _compute_scales(self, squares: Sequence[F8]) -> F8:
        """What the potentials are divided by in training, from `sum_squares_within` over parts."""
        owner = self._columns.owner
        return compute_scales(squares, owner) if self.scaling == "spread" else np.ones(len(owner))

    def _build_block(
        self, p: Potentials, scale: F8, examples: Examples, metric: MetricSpec | None = None, shards: int = 0
    ) -> PotentialBlock:
        """Examples with their potentials over `scale`; item features have a scale of their own."""
        values = np.where((p.group < self._count_groups())[:, None], p.values / scale, p.values)
        scaled, plan = p._replace(values=values), self.plan
        return PotentialBlock(
            potentials=scaled, subset=self.subset, examples=examples, plan=plan, metric=metric, shards=shards
        )

    def _compute_effects(self, statements: ExpertStatements, rows: I8, slots: int) -> tuple[F8, F8]:
        """By expert: its squared effect on scores within queries, and how far it follows its preferences."""
        labeled = np.zeros(slots, np.bool_)
        labeled[rows] = True
        kept = statements.select_entries(np.flatnonzero(labeled[statements.slot]))
        return compute_effects(kept, self._compute_terms(kept, self.group_), len(self.experts_))

    def _set_effects(self, moves: Sequence[tuple[F8, F8]], rows: int) -> None:
        """`spread_`: each expert's effect on scores within queries; `along_`: its sign along its preferences."""
        spread, self.along_ = (np.sum(column, axis=0) for column in zip(*moves, strict=True))
        self.spread_ = np.sqrt(spread / rows)

    def fit_stream(
        self,
        shards: Sequence[TrainingShard],
        *,
        validation: Sequence[TrainingShard] = (),
        query_weights: Mapping[Id, float] | None = None,
        progress: Progress = no_progress,
        cache: CacheOption = True,
    ) -> Self:
        """Learn from shards, preparing the next one while one is in use; see `LambdaRank.fit_stream`.

        A shard is a file (or several that belong together), a Dataset, or a function that returns one of
        these.
        """
        from podium.methods.learned.crf_shards import train_on_shards

        forget_queries(self)
        try:
            with open_prepared_shards(shards, validation, cache) as (train, check):
                self.shard_counts = train_on_shards(self, train, check, dict(query_weights or {}), progress)
        except BaseException:
            self.__dict__.pop("experts_", None)  # a partial fit must not look fitted
            raise
        return self

    # -- scoring ---------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> PotentialColumns:
        """The columns of `weights_`; model files of earlier versions know no features."""
        roles = NO_FEATURES
        if hasattr(self, "features_"):
            roles = FeatureRoles(self.features_, self.varies_, self.center_, self.scale_)
        return PotentialColumns(parse_potentials(self.potentials), roles)

    def _set_roles(self, roles: FeatureRoles) -> None:
        self.features_, self.varies_, self.center_, self.scale_ = roles

    def _compute_item_values(self, part: Training) -> F8:
        """Item features of the examples."""
        values = self._columns.roles.compute_item_values(part.preferences.index, part.features, self.name)
        return values[part.examples.rows]

    def _collect_statements(
        self, preferences: Preferences, features: Features | None, counts: B1 | None = None
    ) -> ExpertStatements:
        """The potentials of the experts that count, by entry."""
        counts = self._find_groups(preferences) >= 0 if counts is None else counts
        transform, others = cast(Transform, self.transform), self.divisor == "others"
        entries = collect_entries(preferences, transform, self.length_power, counts, others)
        return self._columns.build_statements(entries, features, self.name)

    def _find_groups(self, preferences: Preferences) -> I8:
        """The weight group of every expert here; -1 excludes it."""
        return self._find_groups_by_id(preferences.experts, preferences.active_experts)

    def _find_groups_by_id(self, experts: Ids, speaking: B1) -> I8:
        if self.sharing == "own":
            codes = match_expert_ids(self, experts, speaking)
        else:
            codes = Ids(self.experts_).codes_of(experts)
        return np.where(codes >= 0, self.group_[codes], self.shared_)

    def _compute_terms(self, statements: ExpertStatements, group: I8) -> F8:
        """The term that each entry adds to the score of its slot."""
        weights = self.weights_[group[statements.expert]]
        if weights.shape != statements.values.shape:
            raise InputError(
                f"the model has {weights.shape[1]} weights per expert for the {statements.values.shape[1]} values of "
                f"{self.potentials}",
                remedy="define the potentials as they were in training, or fit again",
            )
        total = statements.values[:, 0] * weights[:, 0]
        # column by column: scores then have the same bits whatever the number of entries is
        for value, weight in zip(statements.values.T[1:], weights.T[1:], strict=True):
            total += value * weight
        return total

    def _score_features(self, preferences: Preferences, features: Features | None) -> F8:
        """What the item features add to the score of each slot."""
        values = self._columns.roles.compute_item_values(preferences.index, features, self.name)
        return (
            np.asarray((values * self.feature_weights_).sum(axis=1))
            if values.shape[1]
            else np.zeros(len(values))
        )

    def _score(self, preferences: Preferences, features: Features | None) -> F8:
        statements = self._collect_statements(preferences, features)
        part = self._compute_terms(statements, self._find_groups(preferences))
        scores = sum_by_index(statements.slot, part, len(preferences.index.items))
        return scores + self._score_features(preferences, features)

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        statements = self._collect_statements(one, features)
        part, slots = self._compute_terms(statements, self._find_groups(one)), len(one.index.items)
        out = {}
        for code in np.unique(statements.expert).tolist():
            mine = statements.expert == code
            out[one.experts[code]] = sum_by_index(statements.slot[mine], part[mine], slots)
        if self._columns.roles.item_names:
            out[FEATURES] = self._score_features(one, features)
        return out

    def prune(
        self,
        preferences: Preferences,
        labels: Labels,
        features: Features | None = None,
        *,
        validation: Dataset | None = None,
        query_weights: Mapping[Id, float] | None = None,
        progress: Progress = no_progress,
        share: float = IGNORED,
    ) -> Self:
        """A new aggregator, fitted without the experts whose `share` (see `ExpertWeights`) is below `share`.

        `dropped_` names them; the new aggregator ignores them everywhere, also when it is fitted again.
        """
        self._check_fitted()
        if self.sharing == "shared":
            shared, own = (Option("sharing", how, of="method") for how in ("shared", "own"))
            raise ParameterError("with ", shared, " no expert has weights of its own; use ", own)
        if not 0 <= share < 1:
            raise ParameterError(f"share is {share!r}; accepted: number in [0, 1)")
        rows = [row for code, row in enumerate(self.expert_weights()) if self.group_[code] != self.shared_]
        smaller = type(self)(**self.get_parameters())
        smaller.dropped_ = [row.expert for row in rows if row.reading == "dropped" or row.share < share]
        return smaller.fit(
            preferences,
            labels,
            features,
            validation=validation,
            query_weights=query_weights,
            progress=progress,
        )
