"""Rows in any order over any files -> shards of whole queries, in bounded memory.

Every row goes to one of many files by a hash of its query; each file is then read alone, sorted and written again.
The shards depend on the rows only, not on their order or on the files they came from.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.errors import InputError, ParameterError
from podium.formats.files import save
from podium.scale.arrays import arrow
from podium.scale.columns import heads, plain, role_of
from podium.scale.jobs import RECORDS
from podium.scale.layout import encodings, required
from podium.scale.runs import Paths
from podium.scale.shards import Shard, digest, find, is_parquet, read_parquet, read_text

__all__ = ["regroup"]

SHARE = 32 << 20  # bytes of input for each shard
MOST = 500  # files open at once


def regroup(
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    shards: int | None = None,
    format: str | None = None,
    options: dict[str, Any] | None = None,
) -> list[str]:
    """Write all rows into `shards` Parquet files of whole queries, sorted; gives their paths.

    A folder that holds these very rows already is left as it is; one that holds anything else is refused.
    """
    found = find(inputs)
    size = sum(os.path.getsize(s.path) for s in found)
    count = min(shards or 1 + size // SHARE, MOST)
    target = Path(folder)
    about = {"inputs": sorted(digest(s.path) for s in found), "shards": count, "options": options or {}}
    mark = target / RECORDS / "regrouped.json"
    names = [str(target / f"part-{k:05d}.parquet") for k in range(count)]
    if mark.exists() and json.loads(mark.read_bytes()) == about:
        return names
    if target.exists() and any(target.iterdir()):
        raise ParameterError(f"{target} is not empty; give --regroup a new folder, or remove it")
    scratch = target / f".{secrets.token_hex(6)}.tmp"
    scratch.mkdir(parents=True)
    try:
        _deal(found, scratch, count, format, options or {})
        for k, name in enumerate(names):
            _settle(scratch / f"{k}.parquet", Path(name))
    finally:
        shutil.rmtree(scratch)
    mark.parent.mkdir()
    save([json.dumps(about).encode()], mark)
    return names


def _tables(shard: Shard, format: str | None, options: dict[str, Any]) -> Iterator[Any]:
    import pyarrow as pa

    if is_parquet(shard.path):
        import pyarrow.parquet as pq

        keep = pq.read_schema(shard.path).names
        for batch in read_parquet(shard.path, keep)[1]:
            yield pa.Table.from_batches([batch])
        return
    preferences = read_text(shard.path, format, options)
    yield preferences.to_frame() if preferences.lists.rows else preferences.comparisons_frame()


def _deal(
    shards: Sequence[Shard], scratch: Path, count: int, format: str | None, options: dict[str, Any]
) -> None:
    """Every row to the file of its query."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = None
    with contextlib.ExitStack() as stack:
        writers: list[Any] = []
        for shard in shards:
            for table in _tables(shard, format, options):
                role_of(table.schema)
                if schema is None:
                    schema = pa.schema([pa.field(f.name, _written(f.type)) for f in table.schema])
                    writers = [
                        stack.enter_context(
                            pq.ParquetWriter(scratch / f"{k}.parquet", schema, compression="lz4")
                        )
                        for k in range(count)
                    ]
                for k, part in _parts(_as(table, schema, shard), count):
                    writers[k].write_table(part)


def _written(kind: Any) -> Any:
    import pyarrow as pa

    kind = plain(kind)
    return pa.string() if pa.types.is_large_string(kind) else kind


def _as(table: Any, schema: Any, shard: Shard) -> Any:
    import pyarrow as pa

    try:
        return table.select(schema.names).cast(schema)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"its columns do not fit those of the first file: {error}"[:300], source=shard.path,
            remedy="give files with the same columns of the same types",
        ) from None  # fmt: skip


def _parts(table: Any, count: int) -> Iterator[tuple[int, Any]]:

    starts = heads(table.column("query"))
    ids = table.column("query").take(arrow(starts[:-1])).to_pylist()
    bucket = np.array([zlib.crc32(str(i).encode()) % count for i in ids], np.int64)
    of_row = np.repeat(bucket, np.diff(starts))
    order = np.argsort(of_row, kind="stable")
    cuts = np.searchsorted(of_row[order], np.arange(count + 1))
    for k in np.unique(bucket).tolist():
        yield k, table.take(arrow(order[cuts[k] : cuts[k + 1]]))


def _settle(raw: Path, target: Path) -> None:
    """One file sorted as the fast path likes it, and put in its place."""
    import pyarrow.parquet as pq

    table = pq.read_table(raw, use_threads=False)
    names = table.column_names
    keys = ("query", "expert", "rank", *(() if "rank" in names else ("score",)), "item", "winner", "loser")
    order = [(n, "descending" if n == "score" else "ascending") for n in keys if n in names]
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        table = required(table.sort_by(order))
        pq.write_table(table, beside, **encodings(table.schema, "lz4"))
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    raw.unlink()
