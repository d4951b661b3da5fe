"""The model file: written atomically, and fully validated when read."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import ModelFileError, Option, ParameterError
from podium.core.old_names import replace_old_names
from podium.storage import array_files
from podium.storage.files import write_atomically as write_whole

__all__ = [
    "compute_fingerprint",
    "dumps",
    "load",
    "loads",
    "pack",
    "read_contents",
    "save",
    "write_contents",
]

VERSION = 1
LIMIT = 16 << 20  # bytes of JSON header


def save(aggregator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write an aggregator with its parameters and learned values.

    >>> import tempfile, podium
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(podium.make("rrf(k=10)"), f"{folder}/a.podium")
    ...     load(f"{folder}/a.podium")
    rrf(k=10)
    """
    write_contents(path, *_describe_model(aggregator), overwrite=overwrite)


def write_contents(
    path: str | os.PathLike[str],
    name: str,
    parameters: Mapping[str, Any],
    learned: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Write a file that `read_contents` reads; the names of learned values end in _."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise ModelFileError(
            f"{target} exists; give ", Option("overwrite", True, of="writing"), " to replace it"
        )
    write_whole([pack(name, parameters, learned)], target, overwrite=True)


def dumps(aggregator: Any) -> bytes:
    """The bytes that `save` writes: for sending an aggregator to another process."""
    return pack(*_describe_model(aggregator))


def pack(name: str, parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> bytes:
    """The bytes of a file: arrays as tensors, everything else in one JSON document."""
    document, tensors = _encode_contents(name, parameters, learned)
    metadata = {"checksum": _compute_checksum(document, tensors), "podium": document}
    return b"".join(array_files.encode_arrays(tensors, metadata))


def compute_fingerprint(aggregator: Any) -> str:
    """Equal for equal parameters and learned values, regardless of the recorded training queries."""
    name, parameters, learned = _describe_model(aggregator)
    kept = {k: v for k, v in learned.items() if k not in ("fitted_on_", "validation_", "tuning_")}
    return _compute_checksum(*_encode_contents(name, parameters, kept))


def _describe_model(aggregator: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name, the parameters and the learned values of a model.

    Values that were renamed keep their old names in files, so that earlier versions can read them.
    """
    in_file = {new: old for old, new in getattr(aggregator, "old_names", {}).items()}
    learned = {
        in_file.get(k, k): v for k, v in vars(aggregator).items() if k.endswith("_") and not k.startswith("_")
    }
    parameters = {in_file.get(k, k): v for k, v in aggregator.get_parameters().items()}
    return aggregator.name, parameters, learned


def _encode_contents(
    name: str, parameters: Mapping[str, Any], learned: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    tensors = {k: np.ascontiguousarray(v) for k, v in learned.items() if isinstance(v, np.ndarray)}
    for key, value in tensors.items():
        if value.dtype not in array_files.KINDS.values():
            raise ModelFileError(f"{key}: an array of {value.dtype} cannot be stored in a model file")
    document = {
        "version": VERSION,
        "method": name,
        "parameters": {k: _encode_value(v) for k, v in parameters.items()},
        "learned": {k: _encode_value(v) for k, v in learned.items() if k not in tensors},
    }
    return json.dumps(document, sort_keys=True), tensors


def load(path: str | os.PathLike[str]) -> Any:
    """Load an aggregator; damaged, foreign or newer files are rejected with the reason."""
    return loads(_read_bytes(path), str(path))


def loads(content: bytes, path: str = "model") -> Any:
    """Load from bytes; `path` names them in messages."""
    name, parameters, learned = _parse_contents(content, path)
    try:
        cls = registry.models.get(name)
        made = cls(**replace_old_names(cls, parameters, warn=False))
    except (ParameterError, TypeError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    for key, value in replace_old_names(cls, learned, warn=False).items():
        setattr(made, key, value)
    return made


def read_contents(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name, the parameters and the learned values (all ending in _) in a file."""
    return _parse_contents(_read_bytes(path), str(path))


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from None


def _parse_contents(content: bytes, source: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    foreign = ModelFileError(f"{source}: not a Podium model file, or cut short; save the model again")
    try:
        if struct.unpack("<Q", content[:8])[0] > min(LIMIT, len(content) - 8):
            raise foreign
        metadata, mapped = array_files.decode_arrays(content)
        document, checksum = metadata["podium"], metadata["checksum"]
    except (struct.error, ValueError, KeyError, TypeError):
        raise foreign from None
    tensors = {name: array.copy() for name, array in mapped.items()}  # these can be written to
    if not isinstance(document, str) or _compute_checksum(document, tensors) != checksum:
        raise ModelFileError(
            f"{source}: the checksum does not match, so the file was damaged or edited; save the model again"
        )
    try:
        about = json.loads(document)
        version, name = about["version"], about["method"]
        parameters = {k: _decode_value(v) for k, v in about["parameters"].items()}
        learned = {k: _decode_value(v) for k, v in about["learned"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelFileError(f"{source}: not a model document; save the model again") from None
    if version != VERSION:
        raise ModelFileError(
            f"{source}: written by format version {version!r}, this Podium reads {VERSION}; upgrade Podium"
        )
    for key in learned | tensors:
        if not key.endswith("_") or key.startswith("_"):
            raise ModelFileError(f"{source}: {key!r} is not a learned value")
    return name, parameters, learned | tensors


def _compute_checksum(document: str, tensors: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(document.encode(), digest_size=16)
    for key in sorted(tensors):
        value = tensors[key]
        digest.update(f"{key}:{value.dtype}:{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def _encode_value(value: Any) -> Any:
    """Plain values; mappings as pairs, because JSON would turn integer keys into strings."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"pairs": [[_encode_value(k), _encode_value(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [_encode_value(v) for v in value]
    raise ModelFileError(f"a {type(value).__name__} cannot be stored in a model file")


def _decode_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {_decode_value(k): _decode_value(v) for k, v in value["pairs"]}
    return [_decode_value(v) for v in value] if isinstance(value, list) else value
