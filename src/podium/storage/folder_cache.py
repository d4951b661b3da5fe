"""Values kept in a folder: each is made once, and found again under a key of everything it depends on.

One file per value, written atomically, with its key inside: a file of another key is replaced.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.storage.array_files import PreparedArrays, read_arrays, write_arrays
from podium.storage.digests import digest_values
from podium.storage.files import write_atomically

CacheOption = bool | str | os.PathLike[str]
T = TypeVar("T")


@dataclass(frozen=True)
class FolderCache(ABC, Generic[T]):
    """A folder of values, or none: then nothing is kept, and every value is made anew."""

    path: Path | None
    persistent: bool = True  # whether the folder outlives this run
    suffix: ClassVar[str]
    remedy: ClassVar[str | None] = None  # where a value cannot be written

    def get_or_make(self, key: Callable[[], str], make: Callable[[], T], name: str | None = None) -> T:
        """The value kept under a key, else the result of `make`, which is then kept.

        `name` names the file (the key does by default): one value per name is kept, that of the last key. The
        key is not computed where nothing is kept.
        """
        if self.path is None:
            return make()
        wanted = key()
        path = self._locate(name or wanted)
        entry = self._read_entry(path)
        if entry is not None and entry[0] == wanted:
            return entry[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        return self._write_entry(path, wanted, make())

    def find(self, name: str) -> T | None:
        """The value in the file of a name, whatever its key; None if there is none, or it is damaged."""
        entry = None if self.path is None else self._read_entry(self._locate(name))
        return None if entry is None else entry[1]

    def _locate(self, name: str) -> Path:
        assert self.path is not None
        return self.path / f"{name}{self.suffix}"

    @abstractmethod
    def _read_entry(self, path: Path) -> tuple[str, T] | None:
        """The key and the value in a file; None if there is no such file, or it is damaged."""

    @abstractmethod
    def _write_entry(self, path: Path, key: str, value: T) -> T:
        """Write a value; returns it as it is read."""


class ResultCache(FolderCache[dict[str, Any]]):
    """Results of long computations as JSON, so that an interrupted run resumes where it stopped."""

    suffix = ".json"

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None) -> ResultCache:
        """The folder, created if missing."""
        if path is None:
            return cls(None)
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot use this as a folder of results: {error.strerror or error}",
                source=os.fspath(path),
                remedy="choose another folder",
            ) from None
        return cls(Path(path))

    def _read_entry(self, path: Path) -> tuple[str, dict[str, Any]] | None:
        if not path.is_file():
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(path.read_text("utf-8"))
            if entry["key"] == path.stem and entry["checksum"] == digest_values(entry["result"]):
                return entry["key"], _restore_nan(entry["result"])
        warnings.warn(f"{path} is damaged; its result is recomputed", PodiumWarning, stacklevel=4)
        return None

    def _write_entry(self, path: Path, key: str, value: dict[str, Any]) -> dict[str, Any]:
        plain = _replace_nan(value)
        text = json.dumps({"key": key, "checksum": digest_values(plain), "result": plain}, indent=1)
        write_atomically([text.encode()], path, overwrite=True)
        return value


class ArrayCache(FolderCache[PreparedArrays]):
    """Prepared shards: arrays and plain values in files that are mapped into memory."""

    suffix = ".safetensors"
    remedy = "prepared shards need disk space: give a folder on another disk (cache), or use cache=False"

    def _read_entry(self, path: Path) -> tuple[str, PreparedArrays] | None:
        values = read_arrays(path)
        key = None if values is None else values.about.pop("key", None)
        return None if values is None or key is None else (key, values)

    def _write_entry(self, path: Path, key: str, value: PreparedArrays) -> PreparedArrays:
        try:
            write_arrays(PreparedArrays(value.about | {"key": key}, value.arrays), path)
        except InputError as error:
            raise InputError(error.problem, source=error.source, remedy=self.remedy) from None
        del value  # its memory is free before the file is mapped
        entry = self._read_entry(path)
        if entry is None:
            raise InputError(
                "the file cannot be read back after writing", source=str(path), remedy="check the disk"
            )
        return entry[1]


@contextlib.contextmanager
def open_array_cache(folder: CacheOption) -> Iterator[ArrayCache]:
    """The requested cache: True is a temporary folder that is always removed afterward, False is no cache."""
    if folder is False:
        yield ArrayCache(None, persistent=False)
    elif folder is True:
        with tempfile.TemporaryDirectory(prefix="podium-shards-", ignore_cleanup_errors=True) as name:
            yield ArrayCache(Path(name), persistent=False)
    elif not isinstance(folder, str | os.PathLike):
        raise ParameterError(f"cache is {folder!r}; accepted: True, False or a folder")
    else:
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"cannot create the cache folder {place} ({error.strerror}); give the name of a folder"
            ) from None
        yield ArrayCache(place)


def _replace_nan(value: Any) -> Any:
    """Replace NaN by None, since JSON has no NaN."""
    if isinstance(value, Mapping):
        return {k: _replace_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _restore_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _restore_nan(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_restore_nan(v) for v in value]
    return math.nan if value is None else value
