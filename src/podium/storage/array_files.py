"""Arrays and plain values in one file, in the layout of safetensors, mapped into memory for reading.

The arrays are in decreasing order of item size, so that all are aligned.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.storage.files import write_atomically

__all__ = ["PreparedArrays", "read_arrays", "write_arrays"]

LAYOUT = 1  # version of the file layout; files with another version are ignored
KINDS = {"F64": np.float64, "I64": np.int64, "I32": np.int32, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_}
BLOCK = 1 << 24  # bytes written at a time


class PreparedArrays(NamedTuple):
    """Plain values, and arrays by name."""

    about: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def write_arrays(part: PreparedArrays, path: Path) -> None:
    """Write a part atomically."""
    write_atomically(_encode_chunks(part), path, overwrite=True)


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
