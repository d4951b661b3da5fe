"""Fitting on many shards: additive counts per shard, cached so that only new shards are counted.

The counts of a shard are stored with a hash of its bytes. They are integers or sums rounded once per shard,
and they are added in the order of shard names: any engine and number of workers gives the same bits.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from podium.analysis.leaderboard.tally import COLUMNS, MARKS, Tally
from podium.core.errors import ModelFileError, PodiumError
from podium.core.version import __version__
from podium.data.ids import Id, Ids, code_ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.models import model_files
from podium.scale.query_batches import ROWS, iterate_query_batches
from podium.scale.shard_job import ShardRecord
from podium.scale.shards import Shard, digest_file, is_parquet, read_parquet, read_text
from podium.scale.table_preferences import add_experts, build_preferences, find_weighted_experts

__all__ = ["CountJob", "ExpertCounter", "ExpertStatistics", "TrialCounter", "VoteCounter", "merge_counts"]

LAYOUT = 3


class ShardCounter(Protocol):
    """A kind of count: computed from preferences, added, and converted to arrays and back."""

    whole: ClassVar[bool]  # whether each query must be in one shard

    def count_part(self, preferences: Preferences) -> Any:
        """The counts of these preferences."""

    def merge_parts(self, a: Any, b: Any) -> Any:
        """The sum of both."""

    def to_values(self, counted: Any) -> dict[str, Any]:
        """As arrays and plain values."""

    def from_values(self, values: dict[str, Any]) -> Any:
        """Back."""


@dataclass(frozen=True)
class VoteCounter:
    """Wins of each side of each pair, by expert: sufficient for Bradley-Terry and related models."""

    by_query: bool = False  # count per query, for intervals over queries
    whole: ClassVar[bool] = False  # votes on one query may be in any shard

    def count_part(self, preferences: Preferences) -> Tally:
        tally = Tally.from_preferences(preferences)
        return tally if self.by_query else tally.pool_queries()

    def merge_parts(self, a: Tally, b: Tally) -> Tally:
        return a + b

    def to_values(self, counted: Tally) -> dict[str, Any]:
        ids = {n: _encode_ids(getattr(counted, n)) for n in ("items", "experts", "queries")}
        return {**ids, **{n: getattr(counted, n) for n in (*COLUMNS, *MARKS)}}

    def from_values(self, values: dict[str, Any]) -> Tally:
        ids: dict[str, Any] = {n: _decode_ids(values[n]) for n in ("items", "experts", "queries")}
        marks: dict[str, Any] = {n: bool(values[n]) for n in MARKS}
        return Tally(**ids, **{n: values[n] for n in COLUMNS}, **marks)


@dataclass(frozen=True, eq=False)
class ExpertStatistics:
    """Expert statistics: lists and rows, items that no other expert lists, and items that two share."""

    experts: Ids  # in id order
    queries: int
    lists: I8
    rows: I8
    alone: I8
    shared: I8  # items per pair of experts; the diagonal is `rows`

    @property
    def overlap(self) -> F8:
        """Fraction of the items of either expert that both list."""
        either = self.rows[:, None] + self.rows[None, :] - self.shared
        return np.asarray(self.shared / np.maximum(either, 1), np.float64)

    def to_dict(self) -> dict[Id, dict[str, float]]:
        """One row of statistics per expert."""
        columns = zip(
            self.experts.tolist(), self.lists.tolist(), self.rows.tolist(), self.alone.tolist(), strict=True
        )
        return {
            e: {
                "lists": n,
                "rows": r,
                "mean length": r / max(n, 1),
                "alone": a / max(r, 1),
                "answered": n / self.queries,
            }
            for e, n, r, a in columns
        }


@dataclass(frozen=True)
class ExpertCounter:
    """Lists, rows and shared items of experts."""

    whole: ClassVar[bool] = True

    def count_part(self, preferences: Preferences) -> ExpertStatistics:
        from scipy.sparse import csr_array

        lists, n = preferences.lists, len(preferences.experts)
        expert = lists.expert[lists.list_of_row]
        slots = len(preferences.index.items)
        said = csr_array((np.ones(lists.rows, np.int64), (lists.item, expert)), shape=(slots, n))
        single = np.bincount(lists.item, minlength=slots) == 1
        alone = np.bincount(expert[single[lists.item]], minlength=n)
        rows = np.bincount(expert, minlength=n)
        shared = np.asarray((said.T @ said).todense(), np.int64)
        count = np.bincount(lists.expert, minlength=n)
        return ExpertStatistics(preferences.experts, len(preferences), count, rows, alone, shared)

    def merge_parts(self, a: ExpertStatistics, b: ExpertStatistics) -> ExpertStatistics:
        both = code_ids(a.experts.tolist() + b.experts.tolist(), "expert").with_sorted_ids()
        n, parts = len(both.ids), (both.codes[: len(a.experts)], both.codes[len(a.experts) :])
        sums = {name: np.zeros(n, np.int64) for name in ("lists", "rows", "alone")}
        shared = np.zeros((n, n), np.int64)
        for part, codes in zip((a, b), parts, strict=True):
            for name, total in sums.items():
                total[codes] += getattr(part, name)
            shared[np.ix_(codes, codes)] += part.shared
        return ExpertStatistics(both.ids, a.queries + b.queries, **sums, shared=shared)

    def to_values(self, counted: ExpertStatistics) -> dict[str, Any]:
        arrays = {n: getattr(counted, n) for n in ("lists", "rows", "alone", "shared")}
        return {"experts": _encode_ids(counted.experts), "queries": counted.queries, **arrays}

    def from_values(self, values: dict[str, Any]) -> ExpertStatistics:
        return ExpertStatistics(**(values | {"experts": _decode_ids(values["experts"])}))


class CandidateScore(NamedTuple):
    """A candidate with its mean metric over the labeled queries."""

    method: str
    mean: float
    queries: int


class TrialSums(NamedTuple):
    """Sums of a metric over the labeled queries, in two halves assigned by query id."""

    queries: I8  # per half
    sums: F8  # by candidate and half
    gains: F8  # over the first candidate
    squares: F8  # of the gains


@dataclass(frozen=True)
class TrialCounter:
    """Sums of a metric per method, over the queries that have labels."""

    models: tuple[bytes, ...] = field(
        repr=False
    )  # excluded: the repr is hashed, and equal models may differ in bytes
    names: tuple[str, ...]
    prints: tuple[str, ...]
    metric: str
    labels: str  # a file
    labels_digest: str
    whole: ClassVar[bool] = True

    def count_part(self, preferences: Preferences) -> TrialSums:
        from podium.evaluate.evaluation import evaluate
        from podium.models.model_files import loads

        labels = _read_labels(self.labels, self.labels_digest)
        known = [q for q in preferences.queries.tolist() if labels.index.queries.code_of(q) is not None]
        if not known:
            nothing = np.zeros((len(self.models), 2))
            return TrialSums(np.zeros(2, np.int64), nothing, nothing, nothing)
        part = preferences.select(known)
        methods = map(loads, self.models)
        results = (m.aggregate(add_experts(part, find_weighted_experts(m))) for m in methods)
        values = np.array([evaluate(r, labels, self.metric).values[0] for r in results])
        # split by a hash of the id, so that it does not depend on shards or order
        half = np.array([zlib.crc32(str(q).encode()) & 1 for q in part.queries.tolist()])
        there = [~np.isnan(values[0]) & (half == h) for h in (0, 1)]
        gain = values - values[0]
        # fsum is exact, so that the order of the queries does not matter
        sums, gains, squares = (
            np.array([[math.fsum(row[t].tolist()) for t in there] for row in table])
            for table in (values, gain, gain * gain)
        )
        return TrialSums(np.array([t.sum() for t in there], np.int64), sums, gains, squares)

    def merge_parts(self, a: TrialSums, b: TrialSums) -> TrialSums:
        return TrialSums(a.queries + b.queries, a.sums + b.sums, a.gains + b.gains, a.squares + b.squares)

    def to_values(self, counted: TrialSums) -> dict[str, Any]:
        return counted._asdict()

    def from_values(self, values: dict[str, Any]) -> TrialSums:
        return TrialSums(**values)


@functools.lru_cache(1)
def _read_labels(path: str, _content: str) -> Any:
    """The labels of a file, read once per process; `_content` is its hash: a changed file is read again."""
    from podium import formats

    return formats.read(path).labels


NAME = "counts"  # in the files that hold the counts of a shard


# -- one shard -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountJob:
    """Count a shard and store the counts in `folder`; a shard whose bytes were counted before is skipped."""

    kind: ShardCounter
    folder: str
    rows: int = ROWS

    def __call__(self, shard: Shard) -> ShardRecord:
        """Run the job; unreadable input becomes an error in the record."""
        try:
            about = (LAYOUT, __version__, self.kind, digest_file(shard.path))
            key = hashlib.sha256(repr(about).encode()).hexdigest()
            place = self.counts_path(shard.name)
            if _read_key(place) == key:
                return ShardRecord(shard.name, key, shard.path, fresh=False)
            rows, total = 0, None
            for preferences in self._iterate_preferences(shard):
                rows += preferences.lists.rows + len(preferences.comparisons)
                part = self.kind.count_part(preferences)
                total = part if total is None else self.kind.merge_parts(total, part)
            place.parent.mkdir(parents=True, exist_ok=True)
            values = {} if total is None else self.kind.to_values(total)
            stored = {f"{name}_": value for name, value in values.items()}
            model_files.write_contents(place, NAME, {"key": key}, stored, overwrite=True)
            return ShardRecord(shard.name, key, shard.path, rows)
        except PodiumError as error:
            text = str(error) if shard.path in str(error) else f"{shard.path}: {error}"
            return ShardRecord(shard.name, "", shard.path, error=text)

    def counts_path(self, name: str) -> Path:
        """The file with the counts of a shard."""
        return Path(self.folder, f"{name}.counts")

    def _iterate_preferences(self, shard: Shard) -> Iterator[Preferences]:
        if not is_parquet(shard.path):
            yield read_text(shard.path, None, {})
            return
        schema, batches = read_parquet(shard.path, rows=self.rows)
        together = self.kind.whole or "winner" not in schema.names
        whole = (piece.table for piece in iterate_query_batches(batches, self.rows))
        for table in whole if together else _as_tables(batches):
            if table.num_rows:
                yield build_preferences(table, "unknown", "error", None).preferences


def _as_tables(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    return (pa.Table.from_batches([batch]) for batch in batches)


def _read_key(place: Path) -> str | None:
    try:
        name, parameters, _ = model_files.read_contents(place)
    except ModelFileError:
        return None
    return parameters.get("key") if name == NAME else None


def merge_counts(count: CountJob, names: Sequence[str]) -> Any:
    """The sum over shards, in the order of their names; None if all are empty."""
    parts = []
    for name in sorted(names):
        _, _, kept = model_files.read_contents(count.counts_path(name))
        if kept:
            parts.append(count.kind.from_values({k.removesuffix("_"): v for k, v in kept.items()}))
    while len(parts) > 1:  # pairwise: operands of similar size, and each shard is copied only a few times
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [count.kind.merge_parts(a, b) for a, b in pairs] + parts[len(parts) & ~1 :]
    return parts[0] if parts else None


def _encode_ids(ids: Ids) -> Any:
    """Ids as text in an array: a header with millions of ids would be too long."""
    return np.frombuffer(json.dumps(ids.tolist()).encode(), np.uint8)


def _decode_ids(text: Any) -> Ids:
    return Ids(json.loads(text.tobytes()))


def to_absolute_paths(shards: Sequence[Shard]) -> list[Shard]:
    """The shards with absolute paths, which are valid in other processes."""
    return [Shard(os.path.abspath(s.path), s.name) for s in shards]
