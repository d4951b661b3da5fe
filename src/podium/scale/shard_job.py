"""The work on one shard: results are written atomically, with a record of their inputs.

A job has only plain values, so that any engine can send it anywhere. It is idempotent, so that a shard whose
worker died is simply processed again. The record is written last and marks the shard as processed.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from podium.core.errors import InputError, ParameterError, PodiumError
from podium.core.version import __version__
from podium.scale.arrow_arrays import to_numpy
from podium.scale.arrow_schema import LISTS, VOTES
from podium.scale.batch import BatchFunction
from podium.scale.parquet_options import build_writer_options, read_unlisted
from podium.scale.query_batches import ROWS
from podium.scale.result_tables import build_result_schema
from podium.scale.shard_reading import read_features, read_parquet, read_small_parquet, read_text
from podium.scale.table_preferences import add_experts
from podium.storage.digests import digest_file, digest_values
from podium.storage.files import read_json, write_json
from podium.storage.shards import Shard, is_parquet
from podium.storage.temporary_files import TemporaryFile

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences

__all__ = [
    "RECORDS",
    "ShardJob",
    "ShardRecord",
    "load_record",
    "load_records",
    "raise_shard_errors",
    "remove_results",
    "save_record",
]

RECORDS = "_podium"  # readers of Hive-style folders skip names that begin with _
LAYOUT = 2  # version of the result layout; part of each key
MOST_PARTITIONS = 1000  # files per shard
ROW_GROUP = 1 << 18  # results per write


@dataclass(frozen=True)
class ShardRecord:
    """The outcome of a shard; `files` are its results below the output folder, with their sizes."""

    name: str
    key: str
    source: str
    rows: int = 0
    queries: int = 0
    results: int = 0
    seconds: float = 0.0
    files: tuple[tuple[str, int], ...] = ()
    fresh: bool = True  # computed in this run, not already up to date
    error: str | None = None

    @classmethod
    def from_error(cls, shard: Shard, error: Exception) -> ShardRecord:
        """The record of a shard that cannot be processed."""
        text = str(error) if shard.path in str(error) else f"{shard.path}: {error}"
        return cls(shard.name, "", shard.path, error=text[:1000])


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

    @property
    def names(self) -> dict[str, str]:
        """Columns of Parquet shards with custom names."""
        return {k: v for k, v in self.options.items() if k in (*LISTS, *VOTES)}

    def __call__(self, shard: Shard) -> ShardRecord:
        """Run the job unless it is up to date; unreadable input becomes an error in the record."""
        import pyarrow as pa

        begin = time.perf_counter()
        try:
            data = read_small_parquet(shard.path)
            key = self.compute_key(shard, data)
            old = load_record(self.out, shard.name)
            if old is not None and old.key == key and _has_all_results(self.out, old):
                return replace(old, fresh=False)
            done = replace(
                self._write_results(shard, data, key, old), seconds=round(time.perf_counter() - begin, 3)
            )
        except (PodiumError, pa.ArrowException, OSError) as error:
            return ShardRecord.from_error(shard, error)
        save_record(self.out, done)
        return done

    def compute_key(self, shard: Shard, data: Any = None) -> str:
        """A hash of everything that the results depend on: shard bytes, method, options, version."""
        options = repr((self.partition_by, self.rows, self.format, sorted(self.options.items())))
        content = digest_file(shard.path, data)
        return digest_values(
            [LAYOUT, __version__, content, self.function.fingerprint, options, self.compression]
        )

    def _write_results(self, shard: Shard, data: Any, key: str, old: ShardRecord | None) -> ShardRecord:
        with _ResultFiles(self, shard) as results:
            rows = 0
            for read, table in self._rank_batches(shard, data):
                rows += read
                results.add_table(table)
            files = results.publish_files()
        for name, _ in old.files if old is not None else ():
            if name not in {n for n, _ in files}:
                Path(self.out, name).unlink(missing_ok=True)
        return ShardRecord(shard.name, key, shard.path, rows, results.queries, results.rows, files=files)

    def _rank_batches(self, shard: Shard, data: Any) -> Iterator[tuple[int, Any]]:
        """Pairs of rows read and a table of results; at least one table."""
        if self.function.by_features or not is_parquet(shard.path):
            yield self._rank_whole(shard)
            return
        schema, batches = read_parquet(shard.path, self.function.keep, self.rows, data, self.names)
        count = _RowCounter(batches)
        some = False
        for table in self._function_for(schema).rank_tables(count, self.rows):
            some = True
            yield count.take_count(), table
        if not some:
            yield 0, self.function.schema(schema).empty_table()

    def _function_for(self, schema: Any) -> BatchFunction:
        """The function, with the shard's interpretation of unlisted items unless one was given."""
        declared = read_unlisted(schema)
        if self.function.unlisted is not None or declared is None:
            return self.function
        return replace(self.function, unlisted=declared)

    def _rank_whole(self, shard: Shard) -> tuple[int, Any]:
        """The same for a shard of text or of item features, which is read completely."""
        import pyarrow as pa

        if self.partition_by:
            raise ParameterError("partitions come from columns, which only Parquet shards of lists have")
        given: Preferences | Features | None
        if self.function.by_features:
            given = read_features(shard.path, self.format, self.options)
            rows = 0 if given is None else len(given.values)
        else:
            said = {} if self.function.unlisted is None else {"unlisted": self.function.unlisted}
            given = read_text(shard.path, self.format, self.options | said)
            rows = given.lists.rows + len(given.comparisons)
            given = add_experts(given, self.function.weighted_experts)
        if given is None:
            return 0, build_result_schema(pa.string(), pa.string()).empty_table()
        frame = self.function.rank(given).to_frame(top=self.function.top)
        return rows, frame.cast(_text_schema(frame.schema))


def _text_schema(given: Any) -> Any:
    """Results from files that are read completely: ids unchanged, in the standard result types."""
    import pyarrow as pa

    ids = (given.field(name).type for name in ("query", "item"))
    return build_result_schema(*(pa.string() if kind == pa.large_string() else kind for kind in ids))


class _RowCounter:
    """Counts the rows of batches as they pass through."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches, self._rows = batches, 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self._rows += batch.num_rows
            yield batch

    def take_count(self) -> int:
        """Rows since the last call."""
        rows, self._rows = self._rows, 0
        return rows


class _PartitionFile(NamedTuple):
    """A file being written, and its buffered tables."""

    beside: TemporaryFile
    stream: BinaryIO
    writer: Any
    waiting: list[Any]

    def write(self) -> None:
        """Write the buffered tables as one row group."""
        import pyarrow as pa

        if self.waiting:
            self.writer.write_table(pa.concat_tables(self.waiting))
            self.waiting.clear()

    def close(self) -> None:
        """Flush and close the file."""
        self.writer.close()
        self.stream.close()


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
            file.close()
            file.beside.discard()

    def add_table(self, table: Any) -> None:
        """Add results of complete queries."""
        self.rows += table.num_rows
        self.queries += sum(int((to_numpy(c) == 1).sum()) for c in table.column("rank").chunks)
        for folder, part in self._split_partitions(table):
            name = f"{folder}{self._shard.name}.parquet"
            if name not in self._open:
                self._open[name] = self._open_file(name, part.schema)
            self._open[name].waiting.append(part)
        self._waiting += table.num_rows
        if self._waiting >= ROW_GROUP:
            for file in self._open.values():
                file.write()
            self._waiting = 0

    def publish_files(self) -> tuple[tuple[str, int], ...]:
        """Rename the files to their targets."""
        done = []
        for name, file in sorted(self._open.items()):
            file.write()
            file.close()
            size = file.beside.path.stat().st_size
            file.beside.publish()
            done.append((name, size))
        self._open = {}
        return tuple(done)

    def _open_file(self, name: str, schema: Any) -> _PartitionFile:
        import pyarrow.parquet as pq

        if len(self._open) >= MOST_PARTITIONS:
            raise InputError(
                f"{', '.join(self._job.partition_by)} has more than {MOST_PARTITIONS} values in one shard",
                remedy="partition by a column with few values",
            )
        target = Path(self._job.out, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = TemporaryFile(target)
        stream = beside.open()
        writer = pq.ParquetWriter(stream, schema, **build_writer_options(schema, self._job.compression))
        return _PartitionFile(beside, stream, writer, [])

    def _split_partitions(self, table: Any) -> Iterator[tuple[str, Any]]:
        """The table split by the values of the partition columns, with the folder of each part."""
        by = self._job.partition_by
        if not by:
            yield "", table
            return
        import pyarrow.compute as pc

        for values in table.select(list(by)).group_by(list(by)).aggregate([]).to_pylist():
            kept = table
            for name in by:
                nan = values[name] != values[name]  # only NaN differs from itself
                same = pc.is_nan(kept[name]) if nan else pc.equal(kept[name], values[name])
                kept = kept.filter(pc.is_null(kept[name]) if values[name] is None else same)
            yield "".join(f"{n}={_format_partition(values[n])}/" for n in by), kept.drop_columns(list(by))


def _format_partition(value: Any) -> str:
    """A value in Hive's folder naming."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None else urllib.parse.quote(str(value), safe="")


# -- records -------------------------------------------------------------------------------------------------


def _record_path(out: str, name: str) -> Path:
    return Path(out, RECORDS, "shards", f"{name}.json")


def remove_results(out: str, record: ShardRecord) -> None:
    """Remove the record of a shard, then its results."""
    _record_path(out, record.name).unlink(missing_ok=True)
    for name, _ in record.files:
        Path(out, name).unlink(missing_ok=True)


def load_record(out: str, name: str) -> ShardRecord | None:
    """The record of a shard; None if there is none or it cannot be read."""
    found = read_json(_record_path(out, name))
    try:
        return ShardRecord(**(found | {"files": tuple((n, size) for n, size in found["files"])}))
    except (ValueError, TypeError, KeyError):
        return None


def save_record(out: str, record: ShardRecord) -> None:
    """Write a record atomically."""
    place = _record_path(out, record.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(asdict(record), place)


def load_records(out: str) -> list[ShardRecord]:
    """The records of all finished shards in a folder, by name."""
    base = Path(out, RECORDS, "shards")
    names = (p.relative_to(base).as_posix().removesuffix(".json") for p in sorted(base.rglob("*.json")))
    return [r for name in names if (r := load_record(out, name)) is not None]


def _has_all_results(out: str, record: ShardRecord) -> bool:
    """Whether all result files of a record exist with the recorded sizes."""
    try:
        return all(Path(out, name).stat().st_size == size for name, size in record.files)
    except OSError:
        return False


def raise_shard_errors(done: Sequence[ShardRecord]) -> None:
    """Raise the errors of failed shards after all others are processed."""
    failed = sorted({r.error for r in done if r.error is not None})
    if failed:
        rest = sum(r.error is None for r in done)
        raise InputError(
            "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else ""),
            remedy=f"the other {rest} shards are processed and will not be repeated" if rest else None,
        )
