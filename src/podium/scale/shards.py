"""Shards: the files a large input consists of, each holding whole queries; how they are found, read and checked."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.errors import InputError, ParameterError
from podium.scale.arrays import arrow
from podium.scale.columns import heads, plain, role_of
from podium.scale.streams import ROWS

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences

__all__ = [
    "Shard",
    "check_apart",
    "digest",
    "find",
    "is_parquet",
    "read_features",
    "read_parquet",
    "read_text",
]

SUFFIXES = (".parquet", ".pq")
LARGE_GROUP = 128 << 20  # bytes
HELD = 64 << 20  # bytes of a shard that a worker may hold
CODED = 4  # bytes for each row of a column of text, below which most are numbers of texts


class Shard(NamedTuple):
    """One input file, and the name its results go by: its path below the common folder, without suffix."""

    path: str
    name: str


def find(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Shard]:
    """The shards of files and folders; a folder stands for all files in it, hidden ones and those under `_` aside."""
    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    files: list[tuple[Path, Path]] = []  # with the folder that names are relative to
    for entry in map(Path, given):
        if entry.is_dir():
            files += [(f, entry) for f in sorted(entry.rglob("*")) if f.is_file() and _is_shard(f, entry)]
        elif entry.exists():
            files.append((entry, entry.parent))
        else:
            raise InputError("there is no such file", source=str(entry), remedy="check the path")
    if not files:
        raise InputError("there are no shards", remedy="give Parquet files, run files, or folders of them")
    return _named(files)


def _is_shard(file: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _named(files: Sequence[tuple[Path, Path]]) -> list[Shard]:
    if len({base.resolve() for _, base in files}) > 1:
        common = Path(os.path.commonpath([f.resolve().parent for f, _ in files]))
        files = [(f, common) for f, _ in files]
    shards: dict[str, Shard] = {}
    for file, base in files:
        inside = file.resolve().relative_to(base.resolve())
        name = inside.as_posix().removesuffix(".gz")
        name = name.removesuffix(Path(name).suffix)
        if name in shards:
            remedy = "rename one of them" if str(file) != shards[name].path else "give it once"
            raise InputError(f"{shards[name].path} and {file} would have results of one name", remedy=remedy)
        shards[name] = Shard(str(file), name)
    return list(shards.values())


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet, by its first bytes; an empty file by its name."""
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror or error}", source=path) from None
    return start == b"PAR1" or (not start and path.endswith(SUFFIXES))


def held(path: str) -> Any:
    """The bytes of a Parquet shard, so that what is hashed is what is read; None if it is too large, or not Parquet."""
    import pyarrow as pa

    if not is_parquet(path) or os.path.getsize(path) > HELD:
        return None
    with _reading(path), pa.OSFile(path) as file:
        return file.read_buffer()


def digest(path: str, data: Any = None) -> str:
    """A hash of the bytes of a file (128 bits of XXH3: it tells changes, not forgeries, at the speed of memory)."""
    import xxhash

    if data is not None:
        return xxhash.xxh3_128(data).hexdigest()
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()


def open_parquet(path: str, keep: Sequence[str] = (), data: Any = None) -> tuple[Any, list[str]]:
    """A Parquet file (its bytes, if they are held), and the columns that are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = path if data is None else pa.BufferReader(data)
    with _reading(path):
        about = pq.read_metadata(source)
    schema = about.schema.to_arrow_schema()
    try:
        names = list(dict.fromkeys((*role_of(schema), *(k for k in keep if k in schema.names))))
    except InputError as error:
        raise InputError(error.problem, source=path, remedy=error.remedy) from None
    text = [n for n in names if pa.types.is_string(plain(schema.field(n).type))]
    coded = [n for n in text if _repeats(about, n)]
    return pq.ParquetFile(source, read_dictionary=coded, pre_buffer=False, buffer_size=_buffer(about)), names


def _repeats(about: Any, name: str) -> bool:
    """Whether a column of text is stored as a dictionary and few bytes for each row; only then is it read as one.

    Where a dictionary grows too large, writers go on with the texts themselves, and it would have to be made here.
    """
    groups = [about.row_group(g) for g in range(about.num_row_groups)]
    at = [g.column(c).path_in_schema for g in groups[:1] for c in range(g.num_columns)]
    size = sum(g.column(at.index(name)).total_uncompressed_size for g in groups)
    return bool(size < CODED * about.num_rows)


def _buffer(about: Any) -> int:
    """Bytes to read at a time, where row groups are too large to be read whole (0); slower, but bounded."""
    groups = (about.row_group(g).total_byte_size for g in range(about.num_row_groups))
    return 1 << 20 if max(groups, default=0) > LARGE_GROUP else 0


def read_parquet(
    path: str, keep: Sequence[str] = (), rows: int = ROWS, data: Any = None
) -> tuple[Any, Iterator[Any]]:
    """The schema of a shard, and its record batches one after the other."""
    file, names = open_parquet(path, keep, data)
    import pyarrow as pa

    schema = pa.schema([file.schema_arrow.field(n) for n in names])
    return schema, _batches(file, path, names, rows)


def _batches(file: Any, path: str, names: list[str], rows: int) -> Iterator[Any]:
    batches = file.iter_batches(batch_size=rows, columns=names, use_threads=False)
    while True:
        with _reading(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What Arrow says of a file that it cannot read, in our words."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"this is not a Parquet file, or it is damaged: {error}"[:300], source=path
        ) from None


def read_text(path: str, format_: str | None, options: dict[str, Any]) -> Preferences:
    """The preferences in a file of any other format, which is read whole."""
    from podium import formats

    found = formats.read(path, format_, **options).preferences
    if found is None:
        raise InputError(
            "there are no lists or comparisons", source=path, remedy="give runs, ratings or votes"
        )
    return found


def read_features(path: str, format_: str | None, options: dict[str, Any]) -> Features | None:
    """The item features in a file of any format, which is read whole; None if it is a table without rows."""
    from podium.aggregators.supervised.shards import Files, is_empty

    content = Files((path,), format_, options).read("features")
    if content.features is None and not is_empty(content):
        remedy = "give a LETOR file, or a table with columns of them"
        raise InputError("there are no item features", source=path, remedy=remedy)
    return content.features


# -- does each query lie in one shard? -------------------------------------------------------------------------------


def check_apart(paths: Sequence[str]) -> None:
    """Refuse Parquet shards that share a query.

    Where the statistics of the files say that their queries lie apart, that is enough; else the query columns are read.
    """
    spans = [(span, path) for path in paths if (span := _span(path)) is not None]
    known = sorted((s for s in spans if s[0] != ()), key=lambda s: s[0][0]) if _sortable(spans) else None
    if known is not None and len(known) == len(spans):
        doubtful = set()
        reach, reached_by = None, ""
        for (low, high), path in known:
            if reach is not None and low <= reach:
                doubtful |= {reached_by, path}
            if reach is None or high > reach:
                reach, reached_by = high, path
        paths = [p for p in paths if p in doubtful]
    else:
        paths = [path for _, path in spans]
    seen: dict[Any, str] = {}
    for path in paths:
        for query in _queries(path):
            if seen.setdefault(query, path) != path:
                raise InputError(
                    f"query {query!r} is in {seen[query]} and in {path}",
                    remedy="a query must lie in one shard: regroup the input (--regroup FOLDER, podium.scale.regroup)",
                )


def _sortable(spans: Sequence[tuple[Any, str]]) -> bool:
    return len({type(s[0][0]) for s in spans if s[0]}) <= 1


def _span(path: str) -> tuple[Any, ...] | None:
    """Smallest and largest query of a file, () if its statistics do not tell, None if it has no rows."""
    import pyarrow.parquet as pq

    with _reading(path):
        about = pq.read_metadata(path)
    if about.num_rows == 0:
        return None
    names = about.schema.to_arrow_schema().names
    if "query" not in names:
        return ()
    at = names.index("query")
    found = [about.row_group(g).column(at).statistics for g in range(about.num_row_groups)]
    if any(s is None or not s.has_min_max for s in found):
        return ()
    return min(s.min for s in found), max(s.max for s in found)


def _queries(path: str) -> set[Any]:
    """The queries of a shard, from its dictionaries where it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = pq.read_metadata(path)
    text = pa.types.is_string(plain(about.schema.to_arrow_schema().field("query").type))
    coded = ["query"] if text and _repeats(about, "query") else None
    found: set[Any] = set()
    file = pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False)
    for batch in file.iter_batches(batch_size=ROWS, columns=["query"], use_threads=False):
        column = batch.column(0)
        found.update(column.take(arrow(heads(column)[:-1])).to_pylist())
    return found


def check_output(out: str, shards: Sequence[Shard]) -> None:
    """Refuse an output folder that is a file, or that holds the input."""
    folder = Path(out).resolve()
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{out} is a file; results of shards go into a folder")
    for shard in shards:
        if folder in Path(shard.path).resolve().parents:
            raise ParameterError(
                f"the input {shard.path} lies in the output folder {out}; choose another folder"
            )
