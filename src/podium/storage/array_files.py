"""Prepared shards on disk: computed once, then memory-mapped.

A part is one file in the layout of safetensors, with arrays in decreasing order of item size so that all are
aligned. It is written under a temporary name, renamed when complete, and mapped into memory for reading.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.storage.files import write_atomically

__all__ = ["CacheFolder", "CacheOption", "PreparedArrays", "open_cache_folder", "read_arrays", "write_arrays"]

LAYOUT = 1  # version of the file layout; files with another version are ignored
KINDS = {"F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_}
BLOCK = 1 << 24  # bytes written at a time

CacheOption = bool | str | os.PathLike[str]


class PreparedArrays(NamedTuple):
    """A prepared shard: plain values, and arrays by name."""

    about: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


class CacheFolder(NamedTuple):
    """Where parts are stored (None: nowhere), and whether they are kept after training."""

    folder: Path | None
    stays: bool = False


@contextlib.contextmanager
def open_cache_folder(folder: CacheOption) -> Iterator[CacheFolder]:
    """The requested cache: True is a temporary folder that is always removed afterward, False is no cache."""
    if folder is False:
        yield CacheFolder(None)
    elif folder is True:
        with tempfile.TemporaryDirectory(prefix="podium-shards-", ignore_cleanup_errors=True) as name:
            yield CacheFolder(Path(name))
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
        yield CacheFolder(place, stays=True)


def write_arrays(part: PreparedArrays, path: Path) -> None:
    """Write a part atomically."""
    try:
        write_atomically(_encode_chunks(part), path, overwrite=True)
    except InputError as error:
        remedy = "prepared shards need disk space: give a folder on another disk (cache), or use cache=False"
        raise InputError(error.problem, source=error.source, remedy=remedy) from None


def _encode_chunks(part: PreparedArrays) -> Iterator[bytes]:
    names = {np.dtype(kind): name for name, kind in KINDS.items()}
    arrays = sorted(part.arrays.items(), key=lambda named: -named[1].dtype.itemsize)
    header: dict[str, Any] = {"__metadata__": {"about": json.dumps(part.about)}}
    end = 0
    for name, array in arrays:
        span = [end, end + array.nbytes]
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": span}
        end = span[1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for _, array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for first in range(0, len(flat), BLOCK):
            yield flat[first : first + BLOCK].tobytes()


def read_arrays(path: Path) -> PreparedArrays | None:
    """A part, mapped copy-on-write (the file never changes); None if no complete part exists."""
    try:
        with path.open("rb") as file:
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        about = json.loads(header.pop("__metadata__")["about"])
        arrays = {name: _map_array(raw, 8 + length, entry) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None
    if len(raw) != 8 + length + sum(a.nbytes for a in arrays.values()):
        return None
    if hasattr(mmap, "MADV_WILLNEED"):
        raw.madvise(mmap.MADV_WILLNEED)
    return PreparedArrays(about, arrays)


def _map_array(raw: mmap.mmap, begin: int, entry: dict[str, Any]) -> npt.NDArray[Any]:
    kind, shape = KINDS[entry["dtype"]], tuple(entry["shape"])
    count = math.prod(shape)
    if not count:
        return np.zeros(shape, kind)
    return np.frombuffer(raw, kind, count, begin + entry["data_offsets"][0]).reshape(shape)
