"""A conditional random field over rankings: simple sums at test time, exact expected metrics in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple, Self, cast

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
from podium.methods.base import ALL_FORMS, Tags
from podium.methods.input_checks import match_expert_ids
from podium.methods.learned.crf_potentials import (
    ExpertStatements,
    PotentialBlock,
    build_potentials,
    collect_statements,
    compute_scales,
    count_rows_by_expert,
    order_by_content,
    sum_squares_within,
)
from podium.methods.learned.expert_matrices import Transform
from podium.methods.learned.provenance import forget_queries
from podium.methods.learned.supervised_method import PlanTrainedAggregator
from podium.metrics.base import MetricSpec
from podium.storage.folder_cache import CacheOption

__all__ = ["CrfAggregator", "ExpertWeights", "WeightReading"]

WeightReading = Literal["important", "used", "used in reverse", "ignored", "dropped"]
IGNORED = 0.1  # experts whose effect on scores is below this fraction of the strongest one's count as ignored
IMPORTANT = 0.5


class ExpertWeights(NamedTuple):
    """Learned weights of one expert; `share` is its effect on scores relative to the strongest expert."""

    expert: Id
    missing: float  # a: for unlisted items; strongly negative where the expert's lists matter
    preferred: float  # bP: for items it puts above others
    beaten: float  # bN: against items it puts below others
    share: float
    reading: WeightReading


@dataclass(kw_only=True, eq=False, repr=False)
class CrfAggregator(PlanTrainedAggregator):
    """Learned weights of three sums per expert, minimizing the exact expected loss of a ranking distribution.

    The score of an item adds, for every expert of the query, `missing` if the expert does not list it, plus
    `preferred` times the strength with which the expert prefers it to others, minus `beaten` times the
    strength with which others are preferred to it. The probability of a ranking falls with the sum over
    places of score / log2(place + 1). Each pass samples a few items per query, at least one of each grade;
    the expected loss over all their rankings is exact.

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
    tags: ClassVar[Tags] = Tags(accepts=ALL_FORMS, additive=True, weighted=False, supervised=True)

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

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        self._assign_groups(count_rows_by_expert(training.preferences))
        statements, examples = self._collect_statements(training.preferences), training.examples
        index, slots = examples.labels.index, len(training.preferences.index.items)
        mine = self._build_potentials(statements, examples, slots)
        scale = self._compute_scales(
            [sum_squares_within(mine, index.query_of_slot, index.sizes, self._count_groups())]
        )
        block = self._build_block(mine, scale, examples, self.metric)
        check, held = None, training.validation
        if held is not None:
            potentials = build_potentials(
                self._collect_statements(held.preferences),
                self._find_groups(held.preferences),
                self._count_groups(),
                held.examples.rows,
                len(held.preferences.index.items),
            )
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

    def _build_potentials(self, statements: ExpertStatements, examples: Examples, slots: int) -> Potentials:
        """Potentials of the rows of the examples, in an order that does not depend on ids."""
        mine = build_potentials(statements, self.group_, self._count_groups(), examples.rows, slots)
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
        """Learn `weights_`, three per group, from potentials that were divided by `scale`."""
        size = 3 * self._count_groups()
        objective = Objective(training, validation, choose_by, lambda _: np.zeros(size))
        trained = train(objective, self.plan, self.seed, progress)
        self.losses_, self.passes_ = trained.losses, [trained.pass_number]
        self.quality_ = 0.0 if validation is None else trained.quality
        self.weights_ = trained.weights.reshape(-1, 3) / scale
        if self.shared_ > 0 and not (self.group_ == self.shared_).any():
            # unknown experts get the mean of the known ones
            self.weights_[self.shared_] = self.weights_[: self.shared_].mean(axis=0)

    def _compute_scales(self, squares: Sequence[F8]) -> F8:
        """What the potentials are divided by in training, from `sum_squares_within` over parts."""
        return compute_scales(squares) if self.scaling == "spread" else np.ones(3)

    def _build_block(
        self, p: Potentials, scale: F8, examples: Examples, metric: MetricSpec | None = None, shards: int = 0
    ) -> PotentialBlock:
        """Examples with their potentials over `scale`."""
        scaled, plan = p._replace(values=p.values / scale), self.plan
        return PotentialBlock(
            potentials=scaled, subset=self.subset, examples=examples, plan=plan, metric=metric, shards=shards
        )

    def _compute_effects(self, statements: ExpertStatements, rows: I8, slots: int) -> tuple[F8, F8]:
        """By expert: its squared effect on scores within queries, and how far it follows its preferences."""
        labelled = np.zeros(slots, np.bool_)
        labelled[rows] = True
        kept = statements.select_entries(np.flatnonzero(labelled[statements.slot]))
        count = len(self.experts_)
        part = self._compute_terms(kept, self.group_)
        _, pair = np.unique(kept.query * count + kept.expert, return_inverse=True)
        who = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
        who[pair] = kept.expert
        listed_rows = np.flatnonzero(kept.listed)
        net, mine = kept.above - kept.below, part - self._compute_terms(kept, self.group_, missing_only=True)
        along = _sum_products_within(net[listed_rows], mine[listed_rows], pair[listed_rows], who, count)
        return _sum_products_within(part, part, pair, who, count), along

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

    def _collect_statements(self, preferences: Preferences) -> ExpertStatements:
        counts = self._find_groups(preferences) >= 0
        return collect_statements(
            preferences, cast(Transform, self.transform), self.length_power, counts, self.divisor == "others"
        )

    def _find_groups(self, preferences: Preferences) -> I8:
        """The weight group of every expert here; -1 excludes it."""
        return self._find_groups_by_id(preferences.experts, preferences.active_experts)

    def _find_groups_by_id(self, experts: Ids, speaking: B1) -> I8:
        if self.sharing == "own":
            codes = match_expert_ids(self, experts, speaking)
        else:
            codes = Ids(self.experts_).codes_of(experts)
        return np.where(codes >= 0, self.group_[codes], self.shared_)

    def _compute_terms(self, statements: ExpertStatements, group: I8, *, missing_only: bool = False) -> F8:
        """The term that each entry adds to the score of its slot."""
        a, p, n = self.weights_[group[statements.expert]].T
        alone = np.where(statements.listed, 0.0, a)
        return alone if missing_only else alone + p * statements.above - n * statements.below

    def _score(self, preferences: Preferences, features: Features | None) -> F8:
        statements = self._collect_statements(preferences)
        part = self._compute_terms(statements, self._find_groups(preferences))
        return sum_by_index(statements.slot, part, len(preferences.index.items))

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        statements = self._collect_statements(one)
        part, slots = self._compute_terms(statements, self._find_groups(one)), len(one.index.items)
        out = {}
        for code in np.unique(statements.expert).tolist():
            mine = statements.expert == code
            out[one.experts[code]] = sum_by_index(statements.slot[mine], part[mine], slots)
        return out

    # -- interpretation --------------------------------------------------------------------------------------

    def expert_weights(self) -> list[ExpertWeights]:
        """The learned weights with their interpretation, in expert order; the class has an example."""
        self._check_fitted()
        shares = self.spread_ / max(float(self.spread_.max(initial=0.0)), 1e-300)
        table = []
        for code, expert in enumerate(self.experts_):
            group = int(self.group_[code])
            a, p, n = [0.0] * 3 if group < 0 else self.weights_[group].tolist()
            share = float(shares[code])
            reading: WeightReading = "important" if share >= IMPORTANT else "used"
            if group < 0:
                reading = "dropped"
            elif share < IGNORED:
                reading = "ignored"
            elif self.along_[code] < 0:
                reading = "used in reverse"
            table.append(ExpertWeights(expert, a, p, n, share, reading))
        return table

    def prune(
        self,
        preferences: Preferences,
        labels: Labels,
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
            preferences, labels, validation=validation, query_weights=query_weights, progress=progress
        )


def _sum_products_within(a: F8, b: F8, pair: I8, who: I8, count: int) -> F8:
    """For every expert the sum of products of deviations from the means of its queries."""
    size = np.maximum(np.bincount(pair, minlength=len(who)), 1)
    mean_a, mean_b = (sum_by_index(pair, x, len(who)) / size for x in (a, b))
    return sum_by_index(who[pair], (a - mean_a[pair]) * (b - mean_b[pair]), count)
