"""Shards: the files of a large input, each with complete queries, and how they are found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import InputError
from podium.core.optional import require_module

SUFFIXES = (".parquet", ".pq")
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Shard(NamedTuple):
    """One input file, and the name of its results: its path below the common folder, without suffix."""

    path: str
    name: str


def find_shards(inputs: Paths) -> list[Shard]:
    """The shards in files and folders; a folder means its files except hidden ones and those under `_`."""
    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    files: list[tuple[Path, Path]] = []  # each with the folder that its name is relative to
    for entry in map(Path, given):
        if entry.is_dir():
            below = sorted(f for f in entry.rglob("*") if f.is_file())
            hidden = [any(p.startswith((".", "_")) for p in f.relative_to(entry).parts) for f in below]
            files += [(f, entry) for f, skipped in zip(below, hidden, strict=True) if not skipped]
        elif entry.exists():
            files.append((entry, entry.parent))
        else:
            raise InputError("there is no such file", source=str(entry), remedy="check the path")
    if not files:
        raise InputError("there are no shards", remedy="give Parquet files, run files, or folders of them")
    if len({os.path.abspath(base) for _, base in files}) > 1:
        common = Path(os.path.commonpath([Path(os.path.abspath(f)).parent for f, _ in files]))
        files = [(f, common) for f, _ in files]
    shards: dict[str, Shard] = {}
    for file, base in files:
        inside = Path(os.path.abspath(file)).relative_to(os.path.abspath(base))
        name = inside.as_posix().removesuffix(".gz")
        name = name.removesuffix(Path(name).suffix)
        if name in shards:
            remedy = "rename one of them" if str(file) != shards[name].path else "give it once"
            raise InputError(f"results of {shards[name].path} and {file} would share a name", remedy=remedy)
        shards[name] = Shard(str(file), name)
    return list(shards.values())


def to_absolute_paths(shards: Sequence[Shard]) -> list[Shard]:
    """The shards with absolute paths, which are valid in other processes."""
    return [Shard(os.path.abspath(s.path), s.name) for s in shards]


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its first bytes; an empty file by its name."""
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputError(
            f"the file cannot be read: {error.strerror or error}", source=os.fspath(path)
        ) from None
    return start == b"PAR1" or (not start and os.fspath(path).endswith(SUFFIXES))


def has_no_rows(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet without rows, such as engines write for an empty partition."""
    if not os.fspath(path).endswith(SUFFIXES):
        return False
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    try:
        return bool(pq.read_metadata(path).num_rows == 0)
    except (pa.ArrowException, OSError):
        return False  # reading it reports the problem
