"""Leaderboards and expert statistics of many shards: additive counts, cached so that only new shards are counted.

The counts of a shard are stored with a hash of its bytes. They are integers or sums rounded once per shard,
and they are added in the order of shard names: any engine and number of workers gives the same bits.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ModelFileError, PodiumError
from podium.core.version import __version__
from podium.data.ids import Id, Ids, code_ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.sparse_rows import SparseRows
from podium.scale.arrow_schema import to_table
from podium.scale.engines import find_engine
from podium.scale.query_batches import ROWS, iterate_query_batches
from podium.scale.query_overlap import check_query_overlap
from podium.scale.shard_reading import read_parquet, read_text
from podium.scale.shard_records import ShardRecord, raise_shard_errors
from podium.scale.table_preferences import build_preferences
from podium.storage.array_files import PreparedArrays
from podium.storage.digests import digest_file, digest_values
from podium.storage.folder_cache import ArrayCache
from podium.storage.shards import Paths, Shard, find_shards, is_parquet, to_absolute_paths

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard

LAYOUT = 4


class ShardCounter(Protocol):
    """A kind of count: computed from preferences; a dataclass of ids, arrays and plain values that is added."""

    counts: ClassVar[type]
    whole: ClassVar[bool]  # whether each query must be in one shard

    def count_part(self, preferences: Preferences) -> Any:
        """The counts of these preferences."""


@dataclass(frozen=True)
class VoteCounter:
    """Wins of each side of each pair, by expert: sufficient for Bradley-Terry and related models."""

    by_query: bool = False  # count per query, for intervals over queries
    counts: ClassVar[type] = Tally
    whole: ClassVar[bool] = False  # votes on one query may be in any shard

    def count_part(self, preferences: Preferences) -> Tally:
        tally = Tally.from_preferences(preferences)
        return tally if self.by_query else tally.pool_queries()


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
        columns = (self.experts.tolist(), self.lists.tolist(), self.rows.tolist(), self.alone.tolist())
        return {
            e: {"lists": n, "rows": r, "mean length": r / max(n, 1), "alone": a / max(r, 1),
                "answered": n / self.queries}
            for e, n, r, a in zip(*columns, strict=True)
        }  # fmt: skip

    def __add__(self, other: ExpertStatistics) -> ExpertStatistics:
        both = code_ids(self.experts.tolist() + other.experts.tolist(), "expert").with_sorted_ids()
        n, own = len(both.ids), len(self.experts)
        sums = {name: np.zeros(n, np.int64) for name in ("lists", "rows", "alone")}
        shared = np.zeros((n, n), np.int64)
        for part, codes in ((self, both.codes[:own]), (other, both.codes[own:])):
            for name, total in sums.items():
                total[codes] += getattr(part, name)
            shared[np.ix_(codes, codes)] += part.shared
        return ExpertStatistics(both.ids, self.queries + other.queries, **sums, shared=shared)


@dataclass(frozen=True)
class ExpertCounter:
    """Lists, rows and shared items of experts."""

    counts: ClassVar[type] = ExpertStatistics
    whole: ClassVar[bool] = True

    def count_part(self, preferences: Preferences) -> ExpertStatistics:
        lists, n = preferences.lists, len(preferences.experts)
        expert = lists.expert[lists.list_of_row]
        slots = len(preferences.index.items)
        answers = SparseRows.from_entries(np.ones(lists.rows), lists.item, expert, (slots, n))
        single = np.bincount(lists.item, minlength=slots) == 1
        alone = np.bincount(expert[single[lists.item]], minlength=n)
        rows = np.bincount(expert, minlength=n)
        shared = answers.multiply_columns().astype(np.int64)
        count = np.bincount(lists.expert, minlength=n)
        return ExpertStatistics(preferences.experts, len(preferences), count, rows, alone, shared)


# -- one shard -----------------------------------------------------------------------------------------------


class CountCache(ArrayCache):
    """The counts of each shard, in a file named after the shard."""

    suffix = ".counts"
    remedy = "give a folder on another disk"


@dataclass(frozen=True)
class CountJob:
    """Count a shard and store the counts in `folder`; a shard whose bytes were counted before is skipped."""

    kind: ShardCounter
    folder: str
    rows: int = ROWS

    def __call__(self, shard: Shard) -> ShardRecord:
        """Run the job; unreadable input becomes an error in the record."""
        try:
            key = digest_values([LAYOUT, __version__, repr(self.kind), digest_file(shard.path)])
            self.cache.get_or_make(lambda: key, lambda: self._count_shard(shard), shard.name)
        except PodiumError as error:
            return ShardRecord.from_error(shard, error)
        return ShardRecord(shard.name, key, shard.path)

    @property
    def cache(self) -> CountCache:
        """The counts of all shards."""
        return CountCache(Path(self.folder))

    def _count_shard(self, shard: Shard) -> PreparedArrays:
        parts: Iterable[Preferences]
        if is_parquet(shard.path):
            schema, batches = read_parquet(shard.path, rows=self.rows)
            together = self.kind.whole or "winner" not in schema.names
            whole = (piece.table for piece in iterate_query_batches(batches, self.rows))
            tables = (t for t in (whole if together else map(to_table, batches)) if t.num_rows)
            parts = (build_preferences(t, "unknown", "error", None).preferences for t in tables)
        else:
            parts = [read_text(shard.path, None, {})]
        total = None
        for preferences in parts:
            part = self.kind.count_part(preferences)
            total = part if total is None else total + part
        about: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in (field.name for field in fields(total)) if total is not None else ():
            value = getattr(total, name)
            if isinstance(value, Ids):
                # text in an array: a header with millions of ids would be too long
                arrays[f"ids {name}"] = np.frombuffer(json.dumps(value.tolist()).encode(), np.uint8)
            elif isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                about[name] = value.item() if isinstance(value, np.generic) else value
        return PreparedArrays(about, arrays)


def merge_counts(count: CountJob, names: Sequence[str]) -> Any:
    """The sum over shards, in the order of their names; None if all are empty."""
    parts = []
    for name in sorted(names):
        kept = count.cache.find(name)
        if kept is None:
            raise InputError("the counts of a shard were lost", source=name, remedy="run it again")
        if kept.arrays:
            values: dict[str, Any] = dict(kept.about)
            for field_name, array in kept.arrays.items():
                # copied, because the system limits how many files can be mapped at once
                is_ids = field_name.startswith("ids ")
                value = Ids(json.loads(array.tobytes())) if is_ids else array.copy()
                values[field_name.removeprefix("ids ")] = value
            parts.append(count.kind.counts(**values))
    while len(parts) > 1:  # pairwise: operands of similar size, and each shard is copied only a few times
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [a + b for a, b in pairs] + parts[len(parts) & ~1 :]
    return parts[0] if parts else None


def votes(inputs: Paths, folder: str | os.PathLike[str], *, by_query: bool = False, **how: Any) -> Tally:
    """All votes in the shards combined; `folder` caches the counts, so that only new shards are counted.

    `how`: engine, address, workers.
    """
    tally: Tally | None = _count_shards(VoteCounter(by_query), inputs, folder, **how)
    if tally is None:
        raise InputError("no shard has votes", remedy="a leaderboard needs lists or comparisons")
    return tally


def leaderboard(
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Leaderboard:
    """The leaderboard of all votes in the shards (`settings`: see `podium.analysis.leaderboard.leaderboard`).

    If shards were added since the last run, only those are counted, and the fit starts from the last scores.
    """
    from podium.analysis import leaderboard as boards
    from podium.analysis.leaderboard import board_file

    by_query = settings.get("over") == "queries"
    tally = votes(inputs, folder, by_query=by_query, engine=engine, address=address, workers=workers)
    kept = os.path.join(os.fspath(folder), "board.podium")
    start = None
    with contextlib.suppress(ModelFileError, OSError):  # missing or damaged: the fit starts from scratch
        old, scores, _ = board_file.read(kept)
        start = dict(zip(old.items.tolist(), scores, strict=True))
    board = boards.leaderboard(tally, start=start, **settings)
    boards.save(board, kept, overwrite=True)
    return board


def experts(inputs: Paths, folder: str | os.PathLike[str], **how: Any) -> ExpertStatistics:
    """Items that experts list, that only one expert lists, and that two share, counted over all shards."""
    statistics: ExpertStatistics | None = _count_shards(ExpertCounter(), inputs, folder, **how)
    if statistics is None:
        raise InputError("no shard has lists", remedy="give shards of lists")
    return statistics


def _count_shards(
    kind: ShardCounter,
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
) -> Any:
    """The sum over all shards; None if all are empty."""
    work = find_engine(engine)
    shards = to_absolute_paths(find_shards(inputs))
    if kind.whole:
        check_query_overlap([s.path for s in shards if is_parquet(s.path)])
    count = CountJob(kind, os.path.abspath(os.fspath(folder)))
    raise_shard_errors(list(work(count, shards, workers=workers, address=address)))
    return merge_counts(count, [s.name for s in shards])
