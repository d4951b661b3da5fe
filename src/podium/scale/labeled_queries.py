"""The labeled queries of shards, read into memory: they are few, so that `podium.tune` can search them."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import InputError, ParameterError, PodiumError
from podium.core.optional import require_module
from podium.data.dataset import Dataset
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate.evaluation import evaluate
from podium.evaluate.tuning import tune as tune_in_memory
from podium.learning.training_shards import SharedLabels
from podium.methods.base import Aggregator, make
from podium.scale.arrow_schema import (
    decode_dictionaries,
    find_run_starts,
    normalize_columns,
    select_column_names,
    take_run_values,
    to_arrow,
    to_table,
)
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.query_overlap import shared_query_error
from podium.scale.shard_reading import check_parquet_options, read_parquet, read_text, read_unlisted
from podium.scale.shard_records import ShardRecord
from podium.scale.table_preferences import add_experts, build_preferences, find_weighted_experts
from podium.storage.shards import Paths, Shard, find_shards, is_parquet, to_absolute_paths


def labelled(
    inputs: Paths,
    labels: Labels | str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Dataset:
    """The queries of the shards that have labels, with these labels, as data in memory.

    `labels` are labels or a file of them, such as qrels. The other queries are read, but not kept. `options`
    are those of the shard format, for Parquet a mapping to other column names, such as {"item": "doc"}.
    """
    labels = labels if isinstance(labels, Labels) else SharedLabels(labels).labels
    read = LabeledReader(frozenset(labels.queries.tolist()), format, dict(options or {}))
    shards = to_absolute_paths(find_shards(inputs))
    if all(is_parquet(s.path) for s in shards):
        check_parquet_options(format, {k: v for k, v in read.options.items() if k != "unlisted"})
    owner: dict[Id, str] = {}
    parts: list[Preferences] = []
    for path, error, part in sorted(find_engine(engine)(read, shards, workers=workers, address=address)):
        if error is not None:
            raise InputError(error)
        for query in [] if part is None else part.queries.tolist():
            if query in owner:
                raise shared_query_error(query, owner[query], path)
            owner[query] = path
        parts += [] if part is None else [part]
    if not parts:
        raise InputError(
            "no query in the shards has labels",
            remedy="check that the ids are the same, type included: 7 is not '7'",
        )
    return Dataset(Preferences.concat(parts), labels)


class LabeledPart(NamedTuple):
    """What was read of a shard: the preferences on its labeled queries, None if there are none."""

    path: str
    error: str | None
    preferences: Preferences | None


@dataclass(frozen=True)
class LabeledReader:
    """Read the queries of a shard that have labels."""

    queries: frozenset[Id]
    format: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, shard: Shard) -> LabeledPart:
        """The preferences on these queries; unreadable input becomes an error."""
        try:
            if not is_parquet(shard.path):
                preferences = read_text(shard.path, self.format, self.options)
                known = [q for q in preferences.queries.tolist() if q in self.queries]
                return LabeledPart(shard.path, None, preferences.select(known) if known else None)
            pa = require_module("pyarrow")
            schema, batches = read_parquet(shard.path, names=select_column_names(self.options))
            parts = []
            for batch in batches:
                table = normalize_columns(to_table(batch))
                starts = find_run_starts(table.column("query"))
                ids = take_run_values(table.column("query"), starts).to_pylist()
                wanted = np.array([i in self.queries for i in ids], np.bool_)
                parts.append(table.filter(to_arrow(np.repeat(wanted, np.diff(starts)))))
            if not any(part.num_rows for part in parts):
                return LabeledPart(shard.path, None, None)
            unlisted: Any = self.options.get("unlisted") or read_unlisted(schema) or "unknown"
            table = pa.concat_tables([decode_dictionaries(part) for part in parts])
            duplicates = self.options.get("duplicates", "error")
            built = build_preferences(table, unlisted, duplicates, None)
            return LabeledPart(shard.path, None, built.preferences)
        except PodiumError as error:
            return LabeledPart(shard.path, ShardRecord.from_error(shard, error).error, None)


# -- names of the last release ---------------------------------------------------------------------------------


class CandidateScore(NamedTuple):
    """A candidate with its mean metric over the labeled queries."""

    method: str
    mean: float
    queries: int


class TunedMethod(NamedTuple):
    """The selected method, and its gain over the given method on held-out queries."""

    method: Aggregator
    steps: tuple[CandidateScore, ...]  # the selected method, on the queries that selected it
    gain: float
    error: float  # standard error of the gain
    queries: int  # held-out queries behind the gain


def trials(
    candidates: Sequence[Aggregator | str],
    inputs: Paths,
    labels: str | os.PathLike[str],
    folder: str | os.PathLike[str],  # noqa: ARG001 - nothing is kept any more
    *,
    metric: str = "ndcg@10",
    **how: Any,
) -> list[CandidateScore]:
    """Deprecated: evaluate the candidates on `labelled(inputs, labels)`."""
    _warn_of_rename("trials", "podium.evaluate")
    if not candidates:
        raise ParameterError("no candidate given; name at least one method")
    methods = [batch_function(candidate).aggregator for candidate in candidates]
    data = labelled(inputs, labels, **how)
    assert data.labels is not None
    scores = []
    for method in methods:
        preferences = add_experts(data.preferences, find_weighted_experts(method))
        values = evaluate(method.aggregate(preferences), data.labels, metric).values[0]
        there = values[~np.isnan(values)]
        scores.append(CandidateScore(repr(method), float(there.mean()), len(there)))
    return sorted(scores, key=lambda score: -score.mean)


def tune(
    method: Aggregator | str,
    inputs: Paths,
    labels: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    weights: Sequence[float] = (0.0, 1.0),
    metric: str = "ndcg@10",
    rounds: int = 10,  # noqa: ARG001 - `podium.tune` has a time budget instead
    least: float = 1e-3,  # noqa: ARG001
    **how: Any,
) -> TunedMethod:
    """Deprecated: `podium.tune(labelled(inputs, labels), metric, [method])`."""
    _warn_of_rename("tune", "podium.tune")
    given, names = make(method), list(values or {})
    own = {name: value for name, value in given.get_parameters().items() if name != "weights"}
    grid = [
        own | dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*(values or {}).values())
    ]
    # parameters that a method is given are not searched
    fixed = [f"{given.name}({', '.join(f'{n}={v!r}' for n, v in point.items())})" for point in grid]
    tuning = tune_in_memory(
        labelled(inputs, labels, **how), metric, fixed, weights=bool(weights), baseline=given, resume=folder
    )
    gain = np.asarray(tuning.values["tuned"]) - np.asarray(tuning.values[tuning.baseline])
    best = tuning.trials[0]
    steps = (CandidateScore(best.config, best.mean, best.queries),)
    error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
    return TunedMethod(tuning.best, steps, float(gain.mean()), error, len(gain))


def _warn_of_rename(old: str, new: str) -> None:
    warnings.warn(
        f"podium.scale.{old} is now {new} on podium.scale.labelled(inputs, labels)",
        DeprecationWarning,
        stacklevel=3,
    )
