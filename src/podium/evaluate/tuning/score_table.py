"""Values of every configuration on every query, each computed without learning from that query.

One array serves both selection and the nested estimate: `table[c, o, q]` is the metric of configuration c on
query q when neither the fold of q nor fold o was learned from. A configuration that learns nothing has one
value per query, independent of o, and is computed once.
"""

from __future__ import annotations

import functools
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, PodiumError, PodiumWarning
from podium.core.progress import Progress, no_progress
from podium.core.version import __version__
from podium.data.consensus import Consensus, TieRule
from podium.data.dataset import Dataset
from podium.data.ids import Id, Ids
from podium.evaluate.result_rankings import aggregate_dataset, expert_rankings
from podium.evaluate.splits import find_labeled_queries
from podium.evaluate.tuning.search_space import QualityWeights, TuningConfig
from podium.evaluate.tuning.stacked_folds import FoldGroup, StackedFolds
from podium.kernels.dispatch import F8, I8
from podium.methods.base import Aggregator
from podium.metrics.base import Metric, measure
from podium.storage.digests import digest_dataset, digest_values
from podium.storage.folder_cache import ResultCache

__all__ = [
    "ScoreTable",
    "TuningTask",
    "find_best",
    "find_finalists",
    "measure_method",
    "own_values",
]

THIRD = 3  # one in THIRD configurations advances, to THIRD times the queries
FEWEST = 8  # queries in the first rung
LAST = 20  # finalists: the bootstrap must see the alternatives
NOT_STORED = ResultCache(None)
_Stack = tuple[tuple[FoldGroup, ...], StackedFolds | None]


@dataclass(frozen=True, eq=False)
class TuningTask:
    """The tuning task: judged queries in id order, their folds, and the metric."""

    data: Dataset  # all data; methods that use all queries at once see the unjudged ones too
    codes: I8  # codes of the judged queries in the data, by id
    fold: I8  # fold of each judged query
    metric: Metric
    ties: TieRule
    folder: ResultCache

    @classmethod
    def from_dataset(
        cls,
        data: Dataset,
        metric: Metric,
        ties: TieRule,
        folds: int | None,
        seed: int,
        folder: ResultCache = NOT_STORED,
    ) -> TuningTask:
        """The judged queries of a data set, split into folds by id and seed (or by its parts)."""
        if data.labels is None:
            raise InputError("the data have no labels to tune by", remedy="give labels (qrels)")
        metric.check_cutoff()
        queries = data.queries_by_id()
        codes = queries[find_labeled_queries(data)[queries]]
        if not len(codes):
            ours, theirs = data.preferences.queries[:3], data.labels.queries[:3]
            raise InputError(
                f"no item that was ranked has a label: the preferences have queries {ours}, the labels {theirs}",
                remedy="ids are compared exactly, case and type included; label these queries and items",
            )
        # queries on which the metric is defined (tau needs two grades), for any strict ranking
        index = data.preferences.index
        strict = Consensus.from_scores(index, -np.arange(len(index.items), dtype=np.float64), tolerance=0.0)
        wanted = data.labels.queries.codes_of(index.queries.take(codes))
        codes = codes[~np.isnan(measure([metric], strict, data.labels, wanted)[0])]
        n = len(codes)
        if not n:
            raise InputError(f"{metric} is not defined for any judged query", remedy="choose another metric")
        if folds is None and data.part is not None and len(np.unique(data.part[codes])) > 2:
            fold = np.unique(data.part[codes], return_inverse=True)[1].astype(np.int64)
        else:
            # few judged queries: leave one out
            count = n if n < 10 else min(n, 5 if folds is None else folds)
            fold = np.random.default_rng(seed).permutation(np.arange(n) % count).astype(np.int64)
        return cls(data, codes, fold, metric, ties, folder)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def fold_count(self) -> int:
        """Number of folds."""
        return int(self.fold.max(initial=0)) + 1

    @property
    def queries(self) -> Ids:
        """The judged queries."""
        return self.data.preferences.queries.take(self.codes)

    @functools.cached_property
    def key(self) -> str:
        """A digest of everything a value depends on besides the configuration."""
        facts = [digest_dataset(self.data), self.fold.tolist(), str(self.metric), self.ties]
        return digest_values([*facts, __version__])

    def select_part(self, columns: I8) -> Dataset:
        """The data restricted to these judged queries."""
        return self._caches[0](columns.tobytes())

    def fold_groups(self, columns: I8) -> tuple[FoldGroup, ...]:
        """The queries of each pair of folds, and of each fold, among these columns."""
        return self._caches[1](columns.tobytes())[0]

    def stack(self, columns: I8) -> StackedFolds | None:
        """The same stacked in one table, if possible."""
        return self._caches[1](columns.tobytes())[1]

    @functools.cached_property
    def _caches(self) -> tuple[Callable[[bytes], Dataset], Callable[[bytes], _Stack]]:
        return functools.lru_cache(256)(self._build_part), functools.lru_cache(8)(self._build_stack)

    def _build_part(self, raw: bytes) -> Dataset:
        codes = self.codes[np.frombuffer(raw, np.int64)]
        everything = np.array_equal(codes, np.arange(len(self.data)))
        return self.data if everything else self.data.select_codes(codes)

    def _build_stack(self, raw: bytes) -> _Stack:
        columns = np.frombuffer(raw, np.int64)
        fold, parts = self.fold[columns], []
        for a in range(self.fold_count):
            for b in range(a, self.fold_count):
                at = np.flatnonzero((fold == a) | (fold == b))
                if len(at):
                    parts.append(FoldGroup(a, b, at, self.select_part(columns[at])))
        groups = tuple(parts)
        return groups, StackedFolds.from_groups(groups)

    def measure_queries(self, consensus: Consensus, part: Dataset, columns: I8) -> F8:
        """The metric on these judged queries; a query that the result lacks counts as 0."""
        assert part.labels is not None
        wanted = part.labels.queries.codes_of(self.queries.take(columns))
        values: F8 = measure([self.metric], consensus, part.labels, wanted)[0]
        return values

    def measure_expert(self, expert: Id) -> F8:
        """The metric of an expert's own lists on every query."""
        alone = expert_rankings(self.data.preferences, expert, ties=self.ties)
        values: F8 = np.nan_to_num(self.measure_queries(alone, self.data, np.arange(len(self))))
        return values

    @functools.cached_property
    def expert_values(self) -> F8:
        """The metric of every expert's own lists on every query, one row per expert."""
        preferences = self.data.preferences
        if not preferences.lists.rows:
            return np.zeros((0, len(self)))
        return np.array([self.measure_expert(e) for e in preferences.experts])


@dataclass(eq=False)
class ScoreTable:
    """Values of configurations, computed on demand."""

    problem: TuningTask
    configs: Sequence[TuningConfig]
    values: F8 = field(init=False)
    failed: dict[int, str] = field(default_factory=dict)  # configurations that cannot be computed -> why
    stop_at: float = math.inf  # time.monotonic() after which no further configuration is started
    config_limit: int = -1  # number of configurations before the first that was not started in time

    def __post_init__(self) -> None:
        self.config_limit = len(self.configs)
        self.values = np.full((len(self.configs), self.problem.fold_count, len(self.problem)), np.nan)

    def compute_missing(
        self,
        rows: Iterable[int],
        columns: I8,
        workers: int,
        progress: Progress = no_progress,
        *,
        optional: bool = False,
    ) -> None:
        """Compute missing values; results do not depend on the number of workers.

        `optional` rows are skipped from the first one that would start too late; the baseline never is.
        """
        from concurrent.futures import ThreadPoolExecutor

        todo = [r for r in rows if r not in self.failed and np.isnan(self.values[r, 0, columns]).any()]
        _ = self.problem.expert_values if any(self.configs[r].weights for r in todo) else None
        done, lock = 0, threading.Lock()

        def compute_row(row: int) -> None:
            nonlocal done
            if optional and row and (row >= self.config_limit or time.monotonic() >= self.stop_at):
                with lock:
                    self.config_limit = min(self.config_limit, row)
                return
            self._compute_row(row, columns)
            with lock:
                done += 1
                progress(done, len(todo), "trying configurations")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)
            pool = ThreadPoolExecutor(max(1, workers))
            try:
                list(pool.map(compute_row, todo))
            finally:  # an interruption does not wait for tasks not yet started
                pool.shutdown(cancel_futures=True)

    def _compute_row(self, row: int, columns: I8) -> None:
        problem, config = self.problem, self.configs[row]
        wanted = columns if _is_per_query(config) else np.arange(len(problem))
        wanted = wanted[np.isnan(self.values[row, 0, wanted])]

        def evaluate_wanted() -> dict[str, Any]:
            try:
                return {"values": evaluate_config(problem, config, wanted).tolist()}
            except PodiumError as error:
                return {"failed": str(error)}

        kept = problem.folder.get_or_make(
            lambda: digest_values([problem.key, config.key_facts(), wanted.tolist()]), evaluate_wanted
        )
        if "failed" in kept:
            self.failed[row] = kept["failed"]
        else:
            self.values[row][:, wanted] = kept["values"]


def _is_per_query(config: TuningConfig) -> bool:
    """Whether some queries can be computed without the others."""
    tags = registry.aggregators.get(config.method).tags
    return bool(tags.per_query and not tags.supervised)


def evaluate_config(problem: TuningTask, config: TuningConfig, columns: I8) -> F8:
    """Values of one configuration on some queries: one row per fold excluded from learning."""
    experts, count = problem.data.preferences.experts.tolist(), problem.fold_count
    out = np.empty((count, len(columns)))
    if not config.depends_on_labels:
        out[:] = measure_method(problem, config.make_method(experts), columns)
        return _check_defined(out)
    groups = problem.fold_groups(columns)
    # every group of queries is evaluated with what was learned without it
    free = [np.flatnonzero((problem.fold != g.a) & (problem.fold != g.b)) for g in groups]
    by_quality = isinstance(config.weights, QualityWeights) and _is_per_query(config)
    stack = problem.stack(columns) if by_quality else None
    if stack is None:
        models = [fit_config(problem, config, rest) for rest in free]
        held_out = [measure_method(problem, m, columns[g.at]) for m, g in zip(models, groups, strict=True)]
    else:
        weights = [w for rest in free for w in learn_weights(problem, config, rest)]
        method = config.make_method(stack.preferences.experts.tolist(), weights)
        ranked = zip(stack.rank_groups(method, problem.ties), groups, strict=True)
        held_out = [problem.measure_queries(c, g.part, columns[g.at]) for c, g in ranked]
    fold = problem.fold[columns]
    for group, group_values in zip(groups, held_out, strict=True):
        # without a and b: values of fold a's queries when b is excluded too, and vice versa
        for own, other in ((group.a, group.b), (group.b, group.a)):
            at = fold[group.at] == own
            out[other, group.at[at]] = group_values[at]
    return _check_defined(out)


def _check_defined(values: F8) -> F8:
    if np.isnan(values).any():
        raise InputError("the metric is not defined for some query", remedy="choose one that is")
    return values


def fit_config(
    problem: TuningTask, config: TuningConfig, columns: I8, progress: Progress = no_progress
) -> Aggregator:
    """Fit the aggregator of a configuration that learns, on these queries only."""
    experts = problem.data.preferences.experts.tolist()
    if isinstance(config.weights, QualityWeights):
        return config.make_method(experts, learn_weights(problem, config, columns))
    _check_enough(columns)
    model: Any = config.make_method(experts)
    part = problem.select_part(columns)
    features = part.features if model.tags.uses_features else None
    model.fit(part.preferences, part.labels, features, progress=progress)
    return model  # type: ignore[no-any-return]


def learn_weights(problem: TuningTask, config: TuningConfig, columns: I8) -> list[float]:
    """Expert weights estimated on these queries."""
    _check_enough(columns)
    assert isinstance(config.weights, QualityWeights)
    return config.weights.compute_weights(problem.expert_values[:, columns].mean(axis=1))


def _check_enough(columns: I8) -> None:
    if not len(columns):
        raise InputError("there are too few judged queries to learn from", remedy="label three or more")


def measure_method(problem: TuningTask, model: Aggregator, columns: I8) -> F8:
    """The metric of a method on these judged queries."""
    part = problem.select_part(columns) if model.tags.per_query else problem.data
    return problem.measure_queries(aggregate_dataset(model, part, problem.ties), part, columns)


def own_values(table: ScoreTable) -> F8:
    """Evaluate each query only with what was learned without its own fold."""
    columns = np.arange(len(table.problem))
    values: F8 = table.values[:, table.problem.fold, columns]
    return values


def find_finalists(
    table: ScoreTable, kind: str, fold: int | None, seed: int, workers: int, progress: Progress = no_progress
) -> I8:
    """Remaining configurations when `fold` (None: no fold) is held out; their values are complete."""
    problem, rows = table.problem, list(range(table.config_limit))
    # rungs are the same queries for every fold, minus the fold itself, so that values are shared
    dealt = np.random.default_rng(seed).permutation(len(problem))
    size = max(FEWEST, math.ceil(len(problem) / THIRD**2))
    while kind == "halving" and size < len(problem) and len(rows) > LAST:
        columns = np.sort(dealt[:size])
        # survivors of a rung must be computed to the end, so only the first rung may be cut short
        table.compute_missing(rows, columns, workers, progress, optional=len(rows) == len(table.configs))
        rows = [r for r in rows if r < table.config_limit and r not in table.failed]
        if fold is not None:
            columns = columns[problem.fold[columns] != fold]
        values = (own_values(table) if fold is None else table.values[:, fold])[rows][:, columns]
        order = np.argsort(-np.round(values.sum(axis=1), 12), kind="stable")
        kept = {rows[i] for i in order[: max(LAST, math.ceil(len(rows) / THIRD))].tolist()}
        rows, size = sorted(kept | {0}), size * THIRD  # the baseline stays
    everything = np.arange(len(problem))
    table.compute_missing(rows, everything, workers, progress, optional=len(rows) == len(table.configs))
    return np.array([r for r in rows if r < table.config_limit and r not in table.failed], np.int64)


def find_best(means: F8) -> I8:
    """The first best entry of every row; differences in the last bits, from summation order, are ignored."""
    positions: I8 = np.argmax(np.round(means, 12), axis=-1)
    return positions
