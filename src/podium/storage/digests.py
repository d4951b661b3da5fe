"""Digests of values, bytes, files and data sets: keys of caches and names of stored files."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.errors import InputError
from podium.core.optional import require_module

if TYPE_CHECKING:
    from podium.data.dataset import Dataset
from podium.data.pair_labels import PairLabels


def digest_values(values: Any) -> str:
    """Digest of plain values as 32 hex digits.

    >>> digest_values({"a": 1, "b": 2}) == digest_values({"b": 2, "a": 1}) != digest_values({"a": "1", "b": 2})
    True
    """
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=16).hexdigest()


def digest_bytes(content: bytes) -> str:
    """Digest of bytes from anywhere as 40 hex digits; nobody can make other bytes with the same digest."""
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def digest_file(path: str | os.PathLike[str], data: Any = None) -> str:
    """Digest of the bytes of a file (128-bit XXH3: fast; it detects changes, not forgeries).

    `data` are these bytes, if they are in memory already.
    """
    xxhash = require_module("xxhash")
    if data is not None:
        return str(xxhash.xxh3_128(data).hexdigest())
    try:
        with open(path, "rb", buffering=0) as file:
            return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", source=os.fspath(path)) from None


def digest_dataset(data: Dataset) -> str:
    """Digest of preferences, labels and features, including ids and row order."""
    digest = hashlib.blake2b(data.preferences.fingerprint.encode(), digest_size=16)
    digest.update(data.preferences.index.arrival.tobytes())
    for part in (data.labels, data.features):
        text = "\0"
        if part is not None:
            index = part.index
            text = repr((index.queries.tolist(), index.starts.tolist(), index.items.tolist()))
        digest.update(text.encode(errors="surrogatepass"))
    if data.labels is not None:
        columns = data.labels.pairs if isinstance(data.labels, PairLabels) else (data.labels.grades,)
        for column in columns:
            digest.update(column.tobytes())
    if data.features is not None:
        digest.update(repr(data.features.names).encode(errors="surrogatepass"))
        digest.update(np.ascontiguousarray(data.features.values).tobytes())
    return digest.hexdigest()
