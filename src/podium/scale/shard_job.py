"""The work on one shard: results are written atomically, with a record of their inputs.

A job has only plain values, so that any engine can send it anywhere. It is idempotent, so that a shard whose
worker died is simply processed again. The record is written last and marks the shard as processed.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, ParameterError, PodiumError
from podium.core.optional import require_module
from podium.core.version import __version__
from podium.scale.arrow_schema import select_column_names, to_numpy
from podium.scale.batch import BatchFunction
from podium.scale.query_batches import ROWS
from podium.scale.result_tables import build_result_schema
from podium.scale.shard_reading import (
    build_writer_options,
    read_features,
    read_parquet,
    read_small_parquet,
    read_text,
    read_unlisted,
)
from podium.scale.shard_records import ShardRecord
from podium.scale.table_preferences import add_experts
from podium.storage.digests import digest_file, digest_values
from podium.storage.shards import Shard, is_parquet
from podium.storage.temporary_files import TemporaryFile

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences

LAYOUT = 2  # version of the result layout; part of each key
MOST_PARTITIONS = 1000  # files per shard
ROW_GROUP = 1 << 18  # results per write
EMPTY = "__HIVE_DEFAULT_PARTITION__"  # the folder of missing values


@dataclass(frozen=True)
class ShardJob:
    """Rank the queries of a shard and write the results to `out`."""

    function: BatchFunction
    out: str
    partition_by: tuple[str, ...] = ()
    rows: int = ROWS
    format: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    compression: str = "lz4"

    def __call__(self, shard: Shard) -> ShardRecord:
        """Run the job unless it is up to date; unreadable input becomes an error in the record."""
        pa = require_module("pyarrow")
        begin = time.perf_counter()
        try:
            data = read_small_parquet(shard.path)
            key = self.compute_key(shard, data)
            old = ShardRecord.load(self.out, shard.name)
            if old is not None and old.key == key and old.has_all_results(self.out):
                return replace(old, fresh=False)
            rows: list[int] = []
            with _ResultFiles(self, shard) as results:
                for table in self._rank_shard(shard, data, rows):
                    results.add_table(table)
                files = results.publish_files()
            for name, _ in old.files if old is not None else ():
                if name not in {n for n, _ in files}:
                    Path(self.out, name).unlink(missing_ok=True)
            counts = sum(rows), results.queries, results.rows
            seconds = round(time.perf_counter() - begin, 3)
            done = ShardRecord(shard.name, key, shard.path, *counts, seconds, files)
        except (PodiumError, pa.ArrowException, OSError) as error:
            return ShardRecord.from_error(shard, error)
        done.save(self.out)
        return done

    def compute_key(self, shard: Shard, data: Any = None) -> str:
        """A hash of everything that the results depend on: shard bytes, method, options, version."""
        options = repr((self.partition_by, self.rows, self.format, sorted(self.options.items())))
        content = digest_file(shard.path, data)
        return digest_values(
            [LAYOUT, __version__, content, self.function.fingerprint, options, self.compression]
        )

    def _rank_shard(self, shard: Shard, data: Any, rows: list[int]) -> Iterator[Any]:
        """Tables of results, at least one; the numbers of rows read are added to `rows`."""

        def count_rows(batch: Any) -> Any:
            rows.append(batch.num_rows)
            return batch

        function = self.function
        if function.by_features or not is_parquet(shard.path):
            yield self._rank_whole(shard, rows)
            return
        names = select_column_names(self.options)
        schema, batches = read_parquet(shard.path, function.keep, self.rows, data, names)
        if function.unlisted is None:
            function = replace(function, unlisted=read_unlisted(schema))
        yield from function.rank_tables(map(count_rows, batches), self.rows)
        if not sum(rows):
            yield function.schema(schema).empty_table()

    def _rank_whole(self, shard: Shard, rows: list[int]) -> Any:
        """The results of a shard of text or of item features, which is read completely."""
        pa = require_module("pyarrow")
        if self.partition_by:
            raise ParameterError("partitions come from columns, which only Parquet shards of lists have")
        given: Preferences | Features | None
        if self.function.by_features:
            given = read_features(shard.path, self.format, self.options)
            rows.append(0 if given is None else len(given.values))
        else:
            unlisted = {} if self.function.unlisted is None else {"unlisted": self.function.unlisted}
            given = read_text(shard.path, self.format, self.options | unlisted)
            rows.append(given.lists.rows + len(given.comparisons))
            given = add_experts(given, self.function.weighted_experts)
        if given is None:
            return build_result_schema(pa.string(), pa.string()).empty_table()
        frame = self.function.rank(given).to_frame(top=self.function.top)
        ids = (frame.schema.field(name).type for name in ("query", "item"))
        plain = (pa.string() if kind == pa.large_string() else kind for kind in ids)
        return frame.cast(build_result_schema(*plain))


class _PartitionFile:
    """A file of results under its temporary name; tables are collected into row groups."""

    def __init__(self, target: Path, schema: Any, compression: str) -> None:
        pq = require_module("pyarrow.parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        self._beside = TemporaryFile(target)
        options = build_writer_options(schema, compression)
        self._writer = pq.ParquetWriter(self._beside.path, schema, **options)
        self.waiting: list[Any] = []

    def write(self) -> None:
        """Write the collected tables as one row group."""
        pa = require_module("pyarrow")
        if self.waiting:
            self._writer.write_table(pa.concat_tables(self.waiting))
            self.waiting.clear()

    def publish(self) -> int:
        """Rename the complete file to its target; returns its size."""
        self.write()
        self._writer.close()
        size = self._beside.path.stat().st_size
        self._beside.publish()
        return size

    def discard(self) -> None:
        """Remove the file."""
        self._writer.close()
        self._beside.discard()


class _ResultFiles:
    """The files of one shard: written under temporary names and renamed when all are complete."""

    def __init__(self, job: ShardJob, shard: Shard) -> None:
        self._job, self._shard = job, shard
        self._open: dict[str, _PartitionFile] = {}
        self._waiting = self.rows = self.queries = 0

    def __enter__(self) -> _ResultFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.discard()

    def add_table(self, table: Any) -> None:
        """Add results of complete queries."""
        self.rows += table.num_rows
        self.queries += sum(int((to_numpy(c) == 1).sum()) for c in table.column("rank").chunks)
        for folder, part in self._split_partitions(table):
            name = f"{folder}{self._shard.name}.parquet"
            if name not in self._open:
                if len(self._open) >= MOST_PARTITIONS:
                    by = ", ".join(self._job.partition_by)
                    raise InputError(
                        f"{by} has more than {MOST_PARTITIONS} values in one shard",
                        remedy="partition by a column with few values",
                    )
                target = Path(self._job.out, name)
                self._open[name] = _PartitionFile(target, part.schema, self._job.compression)
            self._open[name].waiting.append(part)
        self._waiting += table.num_rows
        if self._waiting >= ROW_GROUP:
            for file in self._open.values():
                file.write()
            self._waiting = 0

    def publish_files(self) -> tuple[tuple[str, int], ...]:
        """Rename the files to their targets; returns their names and sizes."""
        done = []
        for name in sorted(self._open):
            done.append((name, self._open[name].publish()))
            del self._open[name]
        return tuple(done)

    def _split_partitions(self, table: Any) -> Iterator[tuple[str, Any]]:
        """The table split by the values of the partition columns, with the folder of each part."""
        by = self._job.partition_by
        if not by:
            yield "", table
            return
        pc = require_module("pyarrow.compute")
        for values in table.select(list(by)).group_by(list(by)).aggregate([]).to_pylist():
            kept = table
            for name in by:
                nan = values[name] != values[name]  # only NaN differs from itself
                same = pc.is_nan(kept[name]) if nan else pc.equal(kept[name], values[name])
                kept = kept.filter(pc.is_null(kept[name]) if values[name] is None else same)
            # Hive's folder naming
            texts = {
                n: EMPTY if v is None else urllib.parse.quote(str(v), safe="") for n, v in values.items()
            }
            yield "".join(f"{n}={texts[n]}/" for n in by), kept.drop_columns(list(by))
