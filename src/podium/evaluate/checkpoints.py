"""Results of long work kept in a folder, so that a run that was interrupted goes on where it stopped.

One JSON file per result, named by a digest of everything the result depends on, written whole or not at all.
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
    """Thirty-two hex digits of a hash of plain values."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest_dataset(data: Dataset) -> str:
    """The same of preferences, labels and features, ids and order of arrival included."""
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
    """A folder of results, or none: then nothing is found and nothing is kept."""

    path: Path | None

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None) -> ResultFolder:
        """The folder, made if it is not there."""
        if path is None:
            return cls(None)
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"this cannot be a folder of results: {error.strerror or error}",
                source=os.fspath(path),
                remedy="give another",
            ) from None
        return cls(Path(path))

    def find_result(self, key: str) -> dict[str, Any] | None:
        """What was kept under a key, or None; a damaged file is warned of and counts as none."""
        if self.path is None or not (file := self.path / f"{key}.json").is_file():
            return None
        try:
            kept = json.loads(file.read_text("utf-8"))
            if kept["key"] == key and kept["checksum"] == digest_values(kept["result"]):
                return _restore_nan(kept["result"])  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        warnings.warn(f"{file} is damaged; its result is computed again", PodiumWarning, stacklevel=3)
        return None

    def save_result(self, key: str, result: Mapping[str, Any]) -> None:
        """Write a result under a key."""
        if self.path is None:
            return
        plain = _replace_nan(result)
        text = json.dumps({"key": key, "checksum": digest_values(plain), "result": plain}, indent=1)
        write_atomically([text.encode()], self.path / f"{key}.json", overwrite=True)


def _replace_nan(value: Any) -> Any:
    """JSON has no NaN; None stands for it."""
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
