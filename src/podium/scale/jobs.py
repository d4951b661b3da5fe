"""What is done with one shard: results written whole, with a record of what they were made from.

A job is plain values, so every engine can send it anywhere; running it twice gives the same files, so a shard whose
worker died is simply done again. The record is written last and is what makes a shard count as done.
"""

from __future__ import annotations

import hashlib
import json
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import podium
from podium.errors import InputError, ParameterError, PodiumError
from podium.formats.files import write_atomically
from podium.formats.temporary import TemporaryFile
from podium.scale.arrays import numbers
from podium.scale.batches import BatchFunction
from podium.scale.columns import LISTS, VOTES
from podium.scale.layout import UNLISTED, encodings
from podium.scale.reading import with_experts
from podium.scale.results import schema
from podium.scale.shards import Shard, digest, held, is_parquet, read_features, read_parquet, read_text
from podium.scale.streams import ROWS

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences

__all__ = ["RECORDS", "Job", "Record", "forget", "load", "records", "store"]

RECORDS = "_podium"  # readers of Hive-style folders pass over names that begin with _
LAYOUT = 2  # of results; part of every key
MOST_PARTITIONS = 1000  # files that one shard may be spread over
ROW_GROUP = 1 << 18  # results that are written at a time


@dataclass(frozen=True)
class Record:
    """What became of a shard; `files` are its results below the output folder, with their sizes."""

    name: str
    key: str
    source: str
    rows: int = 0
    queries: int = 0
    results: int = 0
    seconds: float = 0.0
    files: tuple[tuple[str, int], ...] = ()
    fresh: bool = True  # computed now, not found finished
    error: str | None = None


@dataclass(frozen=True)
class Job:
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
        """Columns of Parquet shards that have names other than ours."""
        return {k: v for k, v in self.options.items() if k in (*LISTS, *VOTES)}

    def __call__(self, shard: Shard) -> Record:
        """Do it, unless it is done; input that cannot be read is an error in the record, as trying again is no use."""
        import pyarrow as pa

        begin = time.perf_counter()
        try:
            data = held(shard.path)
            key = self.key(shard, data)
            old = load(self.out, shard.name)
            if old is not None and old.key == key and _there(self.out, old):
                return replace(old, fresh=False)
            done = replace(self._run(shard, data, key, old), seconds=round(time.perf_counter() - begin, 3))
        except (PodiumError, pa.ArrowException, OSError) as error:
            text = str(error) if shard.path in str(error) else f"{shard.path}: {error}"
            return Record(shard.name, "", shard.path, error=text[:1000])
        store(self.out, done)
        return done

    def key(self, shard: Shard, data: Any = None) -> str:
        """A hash of all that the results depend on: the bytes of the shard, the method, the options, the version."""
        about = (
            LAYOUT, podium.__version__, digest(shard.path, data), self.function.fingerprint, self.partition_by,
            self.rows, self.format, sorted(self.options.items()), self.compression,
        )  # fmt: skip
        return hashlib.sha256(repr(about).encode()).hexdigest()

    def _run(self, shard: Shard, data: Any, key: str, old: Record | None) -> Record:
        with _Results(self, shard) as results:
            rows = 0
            for read, table in self._answers(shard, data):
                rows += read
                results.add(table)
            files = results.finish()
        for name, _ in old.files if old is not None else ():
            if name not in {n for n, _ in files}:
                Path(self.out, name).unlink(missing_ok=True)
        return Record(shard.name, key, shard.path, rows, results.queries, results.rows, files=files)

    def _answers(self, shard: Shard, data: Any) -> Iterator[tuple[int, Any]]:
        """Rows read and a table of results, piece by piece; at least one table."""
        if self.function.by_features or not is_parquet(shard.path):
            yield self._answer_whole(shard)
            return
        schema, batches = read_parquet(shard.path, self.function.keep, self.rows, data, self.names)
        count = _Counted(batches)
        some = False
        for table in self._function_for(schema).tables(count, self.rows):
            some = True
            yield count.taken(), table
        if not some:
            yield 0, self.function.schema(schema).empty_table()

    def _function_for(self, schema: Any) -> BatchFunction:
        """The function, with what the shard says of unlisted items if nothing else was said."""
        said = (schema.metadata or {}).get(UNLISTED)
        if self.function.unlisted is not None or said is None:
            return self.function
        return replace(self.function, unlisted=said.decode())

    def _answer_whole(self, shard: Shard) -> tuple[int, Any]:
        """The same for a shard of text or of item features, which is read whole."""
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
            given = with_experts(given, self.function.named)
        if given is None:
            return 0, schema(pa.string(), pa.string()).empty_table()
        frame = self.function.rank(given).to_frame(top=self.function.top)
        return rows, frame.cast(_text_schema(frame.schema))


def _text_schema(given: Any) -> Any:
    """Results from files that are read whole: ids as they are, in the types used everywhere here."""
    import pyarrow as pa

    ids = (given.field(name).type for name in ("query", "item"))
    return schema(*(pa.string() if kind == pa.large_string() else kind for kind in ids))


class _Counted:
    """Batches that are counted as they go by."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches, self._rows = batches, 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self._rows += batch.num_rows
            yield batch

    def taken(self) -> int:
        """Rows since the last time."""
        rows, self._rows = self._rows, 0
        return rows


class _File(NamedTuple):
    """A file that is being written, and what waits to be written to it."""

    beside: TemporaryFile
    stream: BinaryIO
    writer: Any
    waiting: list[Any]

    def write(self) -> None:
        """What waits, as one row group."""
        import pyarrow as pa

        if self.waiting:
            self.writer.write_table(pa.concat_tables(self.waiting))
            self.waiting.clear()

    def close(self) -> None:
        """Nothing more is written."""
        self.writer.close()
        self.stream.close()


class _Results:
    """The files of one shard: written under other names, and given their own when all are complete."""

    def __init__(self, job: Job, shard: Shard) -> None:
        self._job, self._shard = job, shard
        self._open: dict[str, _File] = {}
        self._waiting = self.rows = self.queries = 0

    def __enter__(self) -> _Results:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
            file.beside.discard()

    def add(self, table: Any) -> None:
        """Results of whole queries."""
        self.rows += table.num_rows
        self.queries += sum(int((numbers(c) == 1).sum()) for c in table.column("rank").chunks)
        for folder, part in self._parts(table):
            name = f"{folder}{self._shard.name}.parquet"
            if name not in self._open:
                self._open[name] = self._begin(name, part.schema)
            self._open[name].waiting.append(part)
        self._waiting += table.num_rows
        if self._waiting >= ROW_GROUP:
            for file in self._open.values():
                file.write()
            self._waiting = 0

    def finish(self) -> tuple[tuple[str, int], ...]:
        """Put the files in their places."""
        done = []
        for name, file in sorted(self._open.items()):
            file.write()
            file.close()
            size = file.beside.path.stat().st_size
            file.beside.publish()
            done.append((name, size))
        self._open = {}
        return tuple(done)

    def _begin(self, name: str, schema: Any) -> _File:
        import pyarrow.parquet as pq

        if len(self._open) >= MOST_PARTITIONS:
            raise InputError(
                f"{', '.join(self._job.partition_by)} has more than {MOST_PARTITIONS} values in one shard",
                remedy="partition by a column of few values",
            )
        target = Path(self._job.out, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = TemporaryFile(target)
        stream = beside.open()
        writer = pq.ParquetWriter(stream, schema, **encodings(schema, self._job.compression))
        return _File(beside, stream, writer, [])

    def _parts(self, table: Any) -> Iterator[tuple[str, Any]]:
        """The table cut by the values of the partition columns, with the folder of each part."""
        by = self._job.partition_by
        if not by:
            yield "", table
            return
        import pyarrow.compute as pc

        for values in table.select(list(by)).group_by(list(by)).aggregate([]).to_pylist():
            kept = table
            for name in by:
                nan = values[name] != values[name]  # what differs from itself
                same = pc.is_nan(kept[name]) if nan else pc.equal(kept[name], values[name])
                kept = kept.filter(pc.is_null(kept[name]) if values[name] is None else same)
            yield "".join(f"{n}={_folder(values[n])}/" for n in by), kept.drop_columns(list(by))


def _folder(value: Any) -> str:
    """A value as Hive names its folder."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None else urllib.parse.quote(str(value), safe="")


# -- records ---------------------------------------------------------------------------------------------------------


def _place(out: str, name: str) -> Path:
    return Path(out, RECORDS, "shards", f"{name}.json")


def forget(out: str, record: Record) -> None:
    """Remove the record of a shard, then its results."""
    _place(out, record.name).unlink(missing_ok=True)
    for name, _ in record.files:
        Path(out, name).unlink(missing_ok=True)


def load(out: str, name: str) -> Record | None:
    """The record of a shard, or None; one that cannot be read counts for nothing."""
    try:
        found = json.loads(_place(out, name).read_bytes())
        return Record(**(found | {"files": tuple((n, size) for n, size in found["files"])}))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def store(out: str, record: Record) -> None:
    """Write a record, whole or not at all."""
    place = _place(out, record.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically([json.dumps(asdict(record)).encode()], place, overwrite=True)


def records(out: str) -> list[Record]:
    """The records of all finished shards in a folder, by name."""
    base = Path(out, RECORDS, "shards")
    names = (p.relative_to(base).as_posix().removesuffix(".json") for p in sorted(base.rglob("*.json")))
    return [r for name in names if (r := load(out, name)) is not None]


def _there(out: str, record: Record) -> bool:
    """Whether all results of a record exist in their full size."""
    try:
        return all(Path(out, name).stat().st_size == size for name, size in record.files)
    except OSError:
        return False
