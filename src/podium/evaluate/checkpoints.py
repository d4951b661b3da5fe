"""Results of long computations kept in a folder, so that an interrupted run resumes where it stopped.

One JSON file per result, named by a digest of everything the result depends on, written atomically.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.errors import InputError, PodiumWarning
from podium.data.dataset import Dataset
from podium.data.index import ItemIndex
from podium.storage.files import write_atomically

__all__ = ["ResultFolder", "digest_dataset", "digest_values"]


def digest_values(facts: Any) -> str:
    """Hash of plain values as 32 hex digits."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest_dataset(data: Dataset) -> str:
    """Hash of preferences, labels and features, including ids and row order."""
    digest = hashlib.blake2b(data.preferences.fingerprint.encode(), digest_size=16)
    digest.update(data.preferences.index.arrival.tobytes())
    for part in (data.labels, data.features):
        digest.update(b"\0" if part is None else _encode_index(part.index))
    if data.labels is not None:
        digest.update(data.labels.grades.tobytes())
    if data.features is not None:
        digest.update(repr(data.features.names).encode(errors="surrogatepass"))
        digest.update(np.ascontiguousarray(data.features.values).tobytes())
    return digest.hexdigest()


def _encode_index(index: ItemIndex) -> bytes:
    text = repr((index.queries.tolist(), index.starts.tolist(), index.items.tolist()))
    return text.encode(errors="surrogatepass")


@dataclass(frozen=True)
class ResultFolder:
    """A folder of results, or none, in which case nothing is stored or reused."""

    path: Path | None

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None) -> ResultFolder:
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

    def find_result(self, key: str) -> dict[str, Any] | None:
        """The result stored under a key, or None; a damaged file triggers a warning and counts as None."""
        if self.path is None or not (file := self.path / f"{key}.json").is_file():
            return None
        try:
            kept = json.loads(file.read_text("utf-8"))
            if kept["key"] == key and kept["checksum"] == digest_values(kept["result"]):
                return _restore_nan(kept["result"])  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        warnings.warn(f"{file} is damaged; its result is recomputed", PodiumWarning, stacklevel=3)
        return None

    def save_result(self, key: str, result: Mapping[str, Any]) -> None:
        """Store a result under a key."""
        if self.path is None:
            return
        plain = _replace_nan(result)
        text = json.dumps({"key": key, "checksum": digest_values(plain), "result": plain}, indent=1)
        write_atomically([text.encode()], self.path / f"{key}.json", overwrite=True)


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
