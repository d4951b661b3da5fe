"""Arrays and plain values in one file, in the layout of safetensors, mapped into memory for reading.

The layout: the length of the header in eight bytes, the header in JSON (metadata, and for each array its type,
shape and place), the bytes of the arrays. These are in decreasing order of item size, so that all are aligned.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.storage.files import write_atomically

LAYOUT = 1  # version of the file layout; files with another version are ignored
KINDS = {  # in the order of the arrays in a file, which is that of the package safetensors
    "U64": np.uint64,
    "I64": np.int64,
    "F64": np.float64,
    "C64": np.complex64,
    "F32": np.float32,
    "U32": np.uint32,
    "I32": np.int32,
    "F16": np.float16,
    "U16": np.uint16,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
BLOCK = 1 << 24  # bytes written at a time


class PreparedArrays(NamedTuple):
    """Plain values, and arrays by name."""

    about: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def write_arrays(part: PreparedArrays, path: Path) -> None:
    """Write a part atomically."""
    chunks = encode_arrays(part.arrays, {"about": json.dumps(part.about)})
    write_atomically(chunks, path, overwrite=True)


def encode_arrays(arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of a file, in pieces; they follow from the arguments alone."""
    kinds = {np.dtype(kind): (place, name) for place, (name, kind) in enumerate(KINDS.items())}
    ordered = sorted(arrays.items(), key=lambda named: (kinds[named[1].dtype], named[0]))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in ordered:
        span = [end, end + array.nbytes]
        header[name] = {"dtype": kinds[array.dtype][1], "shape": array.shape, "data_offsets": span}
        end = span[1]
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays start at a multiple of 8
    yield struct.pack("<Q", len(text)) + text
    for _, array in ordered:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for first in range(0, len(flat), BLOCK):
            yield flat[first : first + BLOCK].tobytes()


def decode_arrays(content: bytes | mmap.mmap) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Metadata and arrays, which are views of the content; a ValueError unless they fill it without gaps."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        entries = sorted(header.items(), key=lambda named: tuple(named[1]["data_offsets"]))
        arrays, end = {}, 8 + length
        for name, entry in entries:
            if entry["data_offsets"][0] != end - 8 - length:
                raise ValueError(f"{name} does not begin where the array before it ends")
            kind, shape, span = np.dtype(KINDS[entry["dtype"]]), tuple(entry["shape"]), entry["data_offsets"]
            count = math.prod(shape)
            if min(shape, default=0) < 0 or span[1] - span[0] != count * kind.itemsize:
                raise ValueError(f"an array of shape {shape} does not fill the bytes {span}")
            # an empty array has no bytes to view
            flat = np.frombuffer(content, kind, count, end) if count else np.zeros(0, kind)
            arrays[name] = flat.reshape(shape)
            end = 8 + length + span[1]
    except (KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise ValueError(f"the header is damaged: {error}") from None
    if len(content) != end:
        raise ValueError(f"the file has {len(content)} bytes; its header describes {end}")
    return metadata, arrays


def read_arrays(path: Path) -> PreparedArrays | None:
    """A part, mapped copy-on-write (the file never changes); None if no complete part exists."""
    try:
        with path.open("rb") as file:
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        metadata, arrays = decode_arrays(raw)
        about = json.loads(metadata["about"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if hasattr(mmap, "MADV_WILLNEED"):
        raw.madvise(mmap.MADV_WILLNEED)
    return PreparedArrays(about, arrays)
