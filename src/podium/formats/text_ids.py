"""Ids as text, for formats that store only text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from podium.core.errors import InputError, Option
from podium.data.ids import Ids
from podium.kernels import text_rows
from podium.kernels.dispatch import I8

__all__ = [
    "encode_integers",
    "encode_plain_ids",
    "format_ids",
    "format_plain_ids",
    "refuse_surrogates",
    "refuse_surrogates_in",
]

_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_LAST_BLANK = 32  # the code of the space; tabs, line ends, NUL and other controls are below it
_SPACE = re.compile(r"[ \t\n\r\v\f]")


def format_ids(ids: Ids, what: str, format: str, group: I8 | None = None) -> list[str]:
    """Ids as non-empty text that UTF-8 can encode.

    Integers are written as digits, unless two ids of a group would become equal.
    """
    values = ids.tolist()
    texts = [v if isinstance(v, str) else str(v) for v in values]
    if "" in texts or not _is_encodable("".join(texts)):
        bad = next(v for v in texts if not v or not _is_encodable(v))
        raise InputError(
            f"the {what} id {bad[:80]!r} cannot be written as {format}", remedy="ids must not be empty"
        )
    if any(type(v) is int for v in values) and any(type(v) is str for v in values):
        keys = texts if group is None else list(zip(group.tolist(), texts, strict=True))
        if len(set(keys)) < len(keys):
            number = next(v for v in values if isinstance(v, int) and str(v) in values)
            raise InputError(
                f"the {what} ids {number} (a number) and '{number}' (text) would be the same in {format}",
                remedy="rename one, or write jsonl, which distinguishes numbers from text",
            )
    return texts


def format_plain_ids(ids: Ids, what: str, format: str, group: I8 | None = None) -> list[str]:
    """Ids as text without whitespace, for formats with whitespace-separated columns."""
    texts = format_ids(ids, what, format, group)
    joined = "\0".join(texts)
    if _SPACE.search(joined) or joined.count("\0") >= max(len(texts), 1):
        bad = next(v for v in texts if _SPACE.search(v) or "\0" in v)
        raise InputError(
            f"the {what} id {bad[:80]!r} cannot be written as {format}: columns are separated by whitespace",
            remedy=(
                "rename it, or choose a format with quoted ids: ",
                Option("format", "csv", "jsonl", of="writing"),
            ),
        )
    return texts


def encode_plain_ids(ids: Ids, what: str, format: str, group: I8 | None = None) -> Ids:
    """The texts of `format_plain_ids` in one UTF-8 buffer."""
    if ids.buffer is not None and ids.offsets is not None:
        used = ids.buffer[ids.offsets[0] : ids.offsets[-1]]
        if (np.diff(ids.offsets) > 0).all() and not (used <= _LAST_BLANK).any():
            return ids
    if ids.integers is not None:
        return encode_integers(ids.integers)
    text = Ids(format_plain_ids(ids, what, format, group)).as_text
    assert text is not None
    return text


def encode_integers(values: I8) -> Ids:
    """Integers as digits, in one buffer."""
    cells = text_rows.format_integers(values)
    return Ids.from_text(cells.data, cells.offsets)


def refuse_surrogates(ids: Ids, what: str, format: str) -> None:
    """Reject ids that UTF-8 cannot encode, for formats that store any other text, and numbers."""
    if ids.is_text or ids.integers is not None:
        return
    texts = [v for v in ids.tolist() if isinstance(v, str)]
    if not _is_encodable("".join(texts)):
        bad = next(v for v in texts if not _is_encodable(v))
        raise InputError(
            f"the {what} id {bad[:80]!r} cannot be written as {format}: an unpaired surrogate is not a character",
            remedy="rename it",
        )


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True


def refuse_surrogates_in(value: Any, text: bytes, error: Callable[[str, str], InputError]) -> None:
    """Reject JSON with an unpaired surrogate, such as "\\ud800", which is not a character."""
    if _ESCAPE.search(text) is None:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as found:
        half = found.object[found.start]
        problem = f"the text contains {half!r}, an unpaired surrogate, which is not a character"
        raise error(problem, "write the character itself, or both halves") from None
