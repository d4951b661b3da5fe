"""Rows in any order in any number of files -> shards of complete queries, in bounded memory.

Each row goes to one of many files by a hash of its query; each file is then read, sorted and rewritten. The
shards depend only on the rows, not on their order or on the input files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.errors import InputError, Option, ParameterError
from podium.core.optional import require_module
from podium.scale.arrow_schema import (
    find_run_starts,
    normalize_columns,
    resolve_columns,
    select_column_names,
    take_run_values,
    to_arrow,
    to_plain_type,
    to_table,
)
from podium.scale.shard_reading import (
    UNLISTED,
    build_writer_options,
    declare_required,
    read_parquet,
    read_text,
    read_unlisted,
)
from podium.scale.shard_records import RECORDS
from podium.storage.digests import digest_file
from podium.storage.files import read_json, write_json
from podium.storage.shards import Paths, Shard, find_shards, is_parquet
from podium.storage.temporary_files import TemporaryFile, hold_lock, is_locked

SHARE = 32 << 20  # bytes of input per shard
MOST = 500  # files open at once


def regroup(
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    shards: int | None = None,
    format: str | None = None,
    options: dict[str, Any] | None = None,
) -> list[str]:
    """Write all rows to `shards` sorted Parquet files of complete queries; returns their paths.

    A folder that already contains exactly these rows is left unchanged; other content is an error.
    """
    if shards is not None and shards < 1:
        raise ParameterError(f"shards is {shards}; accepted: whole numbers from 1")
    sources = find_shards(inputs)
    size = sum(os.path.getsize(s.path) for s in sources)
    count = min(shards or 1 + size // SHARE, MOST)
    target = Path(folder)
    files = sorted([Path(s.path).name, digest_file(s.path)] for s in sources)
    about = {"inputs": files, "shards": count, "format": format, "options": options or {}}
    mark, begun = (target / RECORDS / f"{name}.json" for name in ("regrouped", "regrouping"))
    names = [str(target / f"part-{k:05d}.parquet") for k in range(count)]
    if read_json(mark) == about:
        return names
    if read_json(begun) == about:  # another run is writing the same rows
        if is_locked(begun):
            raise ParameterError(
                f"another run is regrouping into {target}; wait for it, or give a new folder"
            )
        shutil.rmtree(target)  # the other run was killed
    if target.exists() and any(target.iterdir()):
        raise ParameterError(f"{target} is not empty; give --regroup a new folder, or remove it")
    begun.parent.mkdir(parents=True)
    write_json(about, begun)
    try:
        with hold_lock(begun):
            scratch = target / f".{secrets.token_hex(6)}.tmp"
            scratch.mkdir()
            unlisted = _distribute_rows(sources, scratch, count, format, options or {})
            for k, name in enumerate(names):
                _write_sorted(scratch / f"{k}.parquet", Path(name), unlisted)
            shutil.rmtree(scratch)
            os.replace(begun, mark)
    except BaseException:
        shutil.rmtree(target)
        raise
    return names


def _iterate_tables(
    shard: Shard, format: str | None, options: dict[str, Any]
) -> Iterator[tuple[Any, str | None]]:
    """The rows of a shard, and its interpretation of unlisted items."""
    if is_parquet(shard.path):
        pq = require_module("pyarrow.parquet")
        names = select_column_names(options)
        keep = [n for n in pq.read_schema(shard.path).names if n not in names.values()]
        schema, batches = read_parquet(shard.path, keep, names=names)
        declared = read_unlisted(schema) or "unknown"
        for batch in batches:
            yield normalize_columns(to_table(batch)), declared
        return
    preferences = read_text(shard.path, format, options)
    if preferences.lists.rows:
        yield preferences.to_frame(), preferences.unlisted
    else:
        yield preferences.comparisons_frame(), None


def _distribute_rows(
    shards: Sequence[Shard], scratch: Path, count: int, format: str | None, options: dict[str, Any]
) -> str | None:
    """Write each row to the file of its query; returns the interpretation of unlisted items."""
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    schema, declared = None, None
    with contextlib.ExitStack() as stack:
        writers: list[Any] = []
        for shard in shards:
            for table, unlisted in _iterate_tables(shard, format, options):
                resolve_columns(table.schema)
                if declared is not None and unlisted not in (None, declared):
                    raise InputError(
                        f"unlisted items are {unlisted} in this file but {declared} in earlier files",
                        source=shard.path,
                        remedy=("give files of one kind, or give ", Option("unlisted", "below", "unknown")),
                    )
                declared = declared or unlisted
                if schema is None:
                    plain = [(f.name, to_plain_type(f.type)) for f in table.schema]
                    large = pa.types.is_large_string
                    schema = pa.schema([(name, pa.string() if large(kind) else kind) for name, kind in plain])
                    files = [scratch / f"{k}.parquet" for k in range(count)]
                    writers = [
                        stack.enter_context(pq.ParquetWriter(f, schema, compression="lz4")) for f in files
                    ]
                try:
                    table = table.select(schema.names).cast(schema)
                except (KeyError, ValueError, pa.ArrowException) as error:
                    raise InputError(
                        f"its columns do not match those of the first file: {error}"[:300],
                        source=shard.path,
                        remedy="give files with the same columns of the same types",
                    ) from None
                # the file of a query is a hash of it
                starts = find_run_starts(table.column("query"))
                ids = take_run_values(table.column("query"), starts).to_pylist()
                bucket = np.array([zlib.crc32(str(i).encode()) % count for i in ids], np.int64)
                of_row = np.repeat(bucket, np.diff(starts))
                order = np.argsort(of_row, kind="stable")
                cuts = np.searchsorted(of_row[order], np.arange(count + 1))
                for k in np.unique(bucket).tolist():
                    writers[k].write_table(table.take(to_arrow(order[cuts[k] : cuts[k + 1]])))
    if schema is None:
        raise InputError("none of the files has rows", remedy="give files with rows")
    return declared


def _write_sorted(raw: Path, target: Path, unlisted: str | None) -> None:
    """Sort one file in the order that the fast path needs, and publish it."""
    pq = require_module("pyarrow.parquet")
    table = pq.read_table(raw, use_threads=False)
    names = table.column_names
    keys = ("query", "expert", "rank", *(() if "rank" in names else ("score",)), "item", "winner", "loser")
    order = [(n, "descending" if n == "score" else "ascending") for n in keys if n in names]
    declared = {} if unlisted is None else {UNLISTED: unlisted.encode()}
    table = declare_required(table.sort_by(order).replace_schema_metadata(declared))
    with TemporaryFile(target) as beside:
        pq.write_table(table, beside.path, **build_writer_options(table.schema, "lz4"))
        beside.publish()
    raw.unlink()
