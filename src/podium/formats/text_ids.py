"""Ids as text, for formats that store only text."""

from __future__ import annotations

import re

from podium.core.errors import InputError
from podium.data.ids import Ids
from podium.kernels.dispatch import I8

__all__ = ["format_ids", "format_plain_ids", "refuse_surrogates"]

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
            remedy="rename it, or write csv or jsonl",
        )
    return texts


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
