"""Reading shards: Parquet in batches, files of other formats and item features completely; Parquet settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, ParameterError
from podium.core.optional import require_module
from podium.core.params import suggest_names
from podium.scale.arrow_schema import (
    LISTS,
    VOTES,
    find_run_starts,
    is_text,
    normalize_columns,
    resolve_columns,
    take_run_values,
    to_plain_type,
    to_table,
)
from podium.scale.query_batches import ROWS
from podium.storage.shards import is_parquet

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences

UNLISTED = b"podium:unlisted"  # metadata key for the interpretation of unlisted items
SOON = 1 << 16  # bytes of distinct text above which no dictionary is written: it is slow and saves nothing
LARGE_GROUP = 128 << 20  # bytes
HELD = 64 << 20  # bytes of a shard that a worker may keep in memory
CODED = 4  # bytes per row of a text column below which it is mostly dictionary codes


def read_small_parquet(path: str) -> Any:
    """The bytes of a Parquet shard, so that the hash matches the data; None if too large or not Parquet."""
    pa = require_module("pyarrow")
    if not is_parquet(path) or os.path.getsize(path) > HELD:
        return None
    with translate_arrow_errors(path), pa.OSFile(path) as file:
        return file.read_buffer()


def read_parquet(
    path: str,
    keep: Sequence[str] = (),
    rows: int = ROWS,
    data: Any = None,
    names: Mapping[str, str] | None = None,
) -> tuple[Any, Iterator[Any]]:
    """The schema of a shard, and an iterator over its record batches; `data` are its bytes, if in memory.

    `names` maps roles to other column names, such as {"item": "doc"}; `keep` are further columns.
    """
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    source = path if data is None else pa.BufferReader(data)
    with translate_arrow_errors(path):
        about = pq.read_metadata(source)
    names, given = names or {}, about.schema.to_arrow_schema()
    try:
        for role, column in names.items():
            if column not in given.names:
                remedy = suggest_names(column, given.names)
                raise InputError(f"there is no column {column!r} for {role!r}", remedy=remedy)
        back = {column: role for role, column in names.items()}
        kept = [f for f in given if f.name in back or f.name not in names]
        there = pa.schema([f.with_name(back.get(f.name, f.name)) for f in kept], given.metadata)
        roles = list(dict.fromkeys((*resolve_columns(there), *keep)))
        for name in set(keep) - set(there.names):
            raise InputError(f"there is no column {name!r} to keep", remedy=suggest_names(name, there.names))
    except InputError as error:
        raise InputError(error.problem, source=path, remedy=error.remedies) from None
    columns = {role: names.get(role, role) for role in roles}
    file = _open_file(source, about, columns.values())
    fields = [file.schema_arrow.field(column).with_name(role) for role, column in columns.items()]
    return pa.schema(fields, file.schema_arrow.metadata), _iterate_batches(file, path, columns, rows)


def _open_file(source: Any, about: Any, columns: Iterable[str]) -> Any:
    """A Parquet file, with text columns read as dictionaries where they are mostly stored as codes.

    When a dictionary grows too large, writers fall back to plain text, and it would have to be rebuilt here.
    """
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    schema, groups = about.schema.to_arrow_schema(), [about.row_group(g) for g in range(about.num_row_groups)]
    coded = []
    for column in columns:
        if pa.types.is_string(to_plain_type(schema.field(column).type)):
            size = sum(find_column_chunk(group, column).total_uncompressed_size for group in groups)
            coded += [column] if size < CODED * about.num_rows else []
    # row groups too large for one read: reading in pieces is slower, but memory is bounded
    large = max((group.total_byte_size for group in groups), default=0) > LARGE_GROUP
    return pq.ParquetFile(
        source, read_dictionary=coded, pre_buffer=False, buffer_size=1 << 20 if large else 0
    )


def _iterate_batches(file: Any, path: str, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
    there = list(columns.values())
    batches = file.iter_batches(batch_size=rows, columns=there, use_threads=False)
    while True:
        with translate_arrow_errors(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch.select(there).rename_columns(list(columns))


def iterate_queries(path: str, names: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The queries of the batches of a shard, as arrays without consecutive repeats."""
    pq = require_module("pyarrow.parquet")
    column = (names or {}).get("query", "query")
    with translate_arrow_errors(path):
        about = pq.read_metadata(path)
    there = about.schema.to_arrow_schema().names
    if column not in there:
        raise InputError(f"there is no column {column!r} ({suggest_names(column, there)})", source=path)
    for batch in _iterate_batches(_open_file(path, about, [column]), path, {"query": column}, ROWS):
        queries = normalize_columns(to_table(batch)).column("query")
        yield take_run_values(queries, find_run_starts(queries))


def find_column_chunk(group: Any, name: str) -> Any:
    """The metadata of a column in a row group, by name: nested columns count, unlike in the schema."""
    for at in range(group.num_columns):
        if group.column(at).path_in_schema == name:
            return group.column(at)
    raise KeyError(name)


@contextlib.contextmanager
def translate_arrow_errors(path: str) -> Iterator[None]:
    """Convert Arrow's read errors to InputError."""
    pa = require_module("pyarrow")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"this is not a Parquet file, or it is damaged: {error}"[:300], source=path
        ) from None


def read_text(path: str, format_: str | None, options: dict[str, Any]) -> Preferences:
    """The preferences in a file of any other format, which is read completely."""
    from podium import formats

    preferences = formats.read(path, format_, **options).preferences
    if preferences is None:
        raise InputError(
            "there are no lists or comparisons", source=path, remedy="give runs, ratings or votes"
        )
    return preferences


def read_features(path: str, format_: str | None, options: dict[str, Any]) -> Features | None:
    """The item features in a file of any format, which is read completely; None if the table has no rows."""
    from podium.learning.training_shards import ShardFiles, is_empty

    content = ShardFiles((path,), format_, options).read("features")
    if content.features is None and not is_empty(content):
        remedy = "give a LETOR file, or a table with feature columns"
        raise InputError("there are no item features", source=path, remedy=remedy)
    return content.features


def check_parquet_options(format: str | None, options: Mapping[str, Any]) -> None:
    """Reject options of text formats for Parquet shards instead of ignoring them."""
    if format not in (None, "parquet"):
        raise ParameterError(f"the shards are Parquet, but the given format is {format}; omit it")
    for name in options:
        if name not in (*LISTS, *VOTES, "duplicates"):
            known = sorted({*LISTS, *VOTES, "duplicates"})
            raise ParameterError(f"Parquet shards have no option {name!r}; {suggest_names(name, known)}")


def read_unlisted(schema: Any) -> Any:
    """The interpretation of unlisted items that a shard declares; None if it declares none."""
    declared = (schema.metadata or {}).get(UNLISTED)
    return None if declared is None else declared.decode()


def declare_required(table: Any) -> Any:
    """The table with columns without missing values declared as not nullable.

    Readers then skip the check for missing values, which dominates the cost for integers.
    """
    pa = require_module("pyarrow")
    kinds = [f.with_nullable(bool(c.null_count)) for f, c in zip(table.schema, table.columns, strict=True)]
    return table.cast(pa.schema(kinds, table.schema.metadata))


def build_writer_options(schema: Any, compression: str) -> dict[str, Any]:
    """Options of a Parquet writer: text as dictionaries, other columns plain, compressed where values repeat.

    Scores and numeric ids do not repeat: compressing them would dominate the run time and save little.
    """
    text = [f.name for f in schema if is_text(to_plain_type(f.type))]
    varied = {f.name for f in schema if f.name in ("item", "score") and f.name not in text}
    return {
        "compression": {f.name: "none" if f.name in varied else compression for f in schema},
        "use_dictionary": text,
        "dictionary_pagesize_limit": SOON,
        "write_statistics": ["query"],
    }
