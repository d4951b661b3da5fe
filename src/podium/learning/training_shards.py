"""Shards of training data: files, data in memory, or a function that returns either."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium import formats
from podium.core.errors import InputError, ParameterError
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.ids import Ids
from podium.data.labels import Labels
from podium.formats import Content
from podium.storage.digests import digest_file
from podium.storage.shards import has_no_rows

__all__ = ["ShardFiles", "SharedLabels", "TrainingShard", "check_shards", "is_empty", "read_shard"]

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class SharedLabels:
    """A file of labels shared by many shards, read once; each shard gets the labels of its queries."""

    path: Place

    @functools.cached_property
    def labels(self) -> Labels:
        """All labels of the file."""
        labels = formats.read(self.path).labels
        if labels is None:
            raise InputError("it contains no labels", source=os.fspath(self.path), remedy="give qrels")
        return labels

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the file."""
        return digest_file(self.path)

    def select_queries(self, queries: Ids) -> Labels:
        """The labels of some queries."""
        codes = self.labels.queries.codes_of(queries)
        return self.labels.select_codes(codes[codes >= 0])


@dataclass(frozen=True)
class ShardFiles:
    """Files that form one shard, how they are read, and where their labels are if elsewhere."""

    paths: tuple[Place, ...]
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    labels: SharedLabels | Place | None = None

    def read(self, kind: str | None = None) -> Content:
        """Contents of the files; `kind` applies to tables. A table without rows holds no queries."""
        if all(map(has_no_rows, self.paths)):
            return Content()
        content, paths = None, list(self.paths)
        if kind is not None and "kind" not in self.options:
            with contextlib.suppress(ParameterError):  # a format that holds one kind only
                content = formats.read(paths, self.format, kind=kind, **self.options)
        if content is None:
            content = formats.read(paths, self.format, **self.options)
        by_features = kind == "features" or content.preferences is None
        holder = content.features if by_features else content.preferences
        if self.label_source is None or holder is None:
            return content
        return dataclasses.replace(content, labels=self.label_source.select_queries(holder.index.queries))

    @property
    def label_source(self) -> SharedLabels | None:
        """Where the labels are, if not in the files; a path used by this shard alone is not cached."""
        shared = self.labels is None or isinstance(self.labels, SharedLabels)
        return self.labels if shared else SharedLabels(self.labels)  # type: ignore[return-value, arg-type]

    @property
    def stamp(self) -> object:
        """Modification times and sizes of the files."""
        paths = [*self.paths, *([] if self.label_source is None else [self.label_source.path])]
        stamps = []
        for path in paths:
            with contextlib.suppress(OSError):  # reading the file reports the problem
                stat = os.stat(path)
                stamps.append((stat.st_mtime_ns, stat.st_size))
        return stamps

    @property
    def digest(self) -> str:
        """A hash of everything that is read; names count, as experts may be named after their files."""
        named = [(Path(path).name, digest_file(path)) for path in self.paths]
        labels = None if self.label_source is None else self.label_source.digest
        return repr((named, self.format, sorted(self.options.items()), labels))


TrainingShard = (
    Place | Sequence[Place] | ShardFiles | tuple[Features, Labels] | Dataset | Content | Callable[[], Any]
)


def check_shards(shards: Sequence[TrainingShard], what: str = "shards") -> list[TrainingShard]:
    """The shards as a list; they may be read several times, so iterators are not accepted."""
    if isinstance(shards, str | os.PathLike) or not isinstance(shards, Sequence):
        raise ParameterError(
            f"{what} is a {type(shards).__name__}; give a list of files, data sets, or functions that return one"
        )
    if not shards:
        raise ParameterError(f"{what} is empty; give at least one")
    return [_to_shard_files(shard) or shard for shard in shards]


def _to_shard_files(source: Any) -> ShardFiles | None:
    if isinstance(source, ShardFiles):
        return source
    if isinstance(source, str | os.PathLike):
        return ShardFiles((source,))
    several = (
        isinstance(source, Sequence) and len(source) and all(isinstance(f, str | os.PathLike) for f in source)
    )
    return ShardFiles(tuple(source)) if several else None


def read_shard(shard: TrainingShard, kind: str | None = None) -> Content:
    """Contents of a shard; `kind` applies to files."""
    source: Any = shard() if callable(shard) else shard
    files = _to_shard_files(source)
    if files is not None:
        return files.read(kind)
    if isinstance(source, Content):
        return source
    if isinstance(source, Dataset):
        return Content(source.preferences, source.labels, source.features)
    if isinstance(source, tuple) and list(map(type, source)) == [Features, Labels]:
        return Content(features=source[0], labels=source[1])
    raise ParameterError(
        f"a shard is a {type(source).__name__}; accepted: a file, several files, (features, labels), a Dataset, or a "
        "function that returns one of these"
    )


def is_empty(content: Content) -> bool:
    """Whether a shard is empty."""
    return content.preferences is None and content.features is None and content.labels is None
