"""Bounds on decompressed size, checked during decompression, and on the amount of work."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import InputError
from podium.studio.settings import Limits

if TYPE_CHECKING:
    from podium.data.preferences import Preferences
    from podium.methods.base import Aggregator

PIECE = 1 << 16
FREE = 1 << 20  # decompressed sizes below this are safe at any ratio


class TooLarge(InputError):
    """The input exceeds a limit of the server."""


def check_pairs(limits: Limits, preferences: Preferences, method: Aggregator | None = None) -> None:
    """Refuse all-pairs work on too many items: by the given method or, without one, by any analysis."""
    what = "items" if method is None else method.tags.pairwise
    sizes = preferences.index.sizes
    if what != "items":
        sizes = sizes[(np.diff(preferences.lists.query_starts) > 0) & (what == "lists")]
    widest = int(sizes.max(initial=0))
    if widest > limits.query_items:
        who = "" if method is None else f", and {method.name} may compare all pairs"
        raise TooLarge(
            f"a query has {widest:,} items{who}",
            remedy=f"send at most {limits.query_items:,}, or use a method like rrf",
        )


def check_id_lengths(limits: Limits, preferences: Preferences) -> None:
    """Refuse ids that are too long for pages, addresses and logs."""
    index = preferences.index
    for what, ids in (
        ("a query", index.queries),
        ("an item", index.items),
        ("an expert", preferences.experts),
    ):
        # text is measured in bytes first, of which a character has at least one
        if ids.offsets is not None and int(np.diff(ids.offsets).max(initial=0)) <= limits.id_length:
            continue
        longest = max((id_ for id_ in ids.tolist() if isinstance(id_, str)), key=len, default="")
        if len(longest) > limits.id_length:
            raise InputError(
                f"the id of {what} has {len(longest):,} characters (it begins with {longest[:40]!r})",
                remedy=f"use ids of at most {limits.id_length} characters, or check which column is the id",
            )


def bounded_decompress(source: bytes | str | os.PathLike[str], limits: Limits) -> bytes:
    """Decompress gzip data (other data pass unchanged), never beyond the limits.

    >>> import gzip
    >>> bounded_decompress(gzip.compress(b"a,b"), Limits())
    b'a,b'
    >>> bounded_decompress(gzip.compress(bytes(10**7)), Limits())
    Traceback (most recent call last):
    podium.studio.limits.TooLarge: the data decompress to more than 200 times their size; send them uncompressed
    """
    packed = source if isinstance(source, bytes) else Path(source).read_bytes()
    if packed[:2] != b"\x1f\x8b":
        return packed
    content = bytearray()
    for piece in _iterate_unpacked(packed):
        content += piece
        if len(content) > limits.decompressed_bytes:
            raise TooLarge(
                f"the data decompress to more than {limits.decompressed_bytes:,} bytes",
                remedy="send less per request",
            )
        if len(content) > max(FREE, limits.ratio * len(packed)):
            raise TooLarge(
                f"the data decompress to more than {limits.ratio} times their size",
                remedy="send them uncompressed",
            )
    return bytes(content)


def _iterate_unpacked(packed: bytes) -> Iterator[bytes]:
    """The content of all gzip members in small pieces; padding after the last one is ignored."""
    at = 0
    while packed[at : at + 1].strip(b"\0"):
        machine = zlib.decompressobj(31)
        while not machine.eof:
            part = machine.unconsumed_tail
            if not part:
                part = packed[at : at + PIECE]
                at += len(part)
            try:
                piece = machine.decompress(part, PIECE)
            except zlib.error:
                raise InputError("the gzip data are damaged", remedy="compress them again") from None
            if not part and not piece:
                raise InputError("the gzip data are truncated", remedy="send all of them")
            yield piece
        at -= len(machine.unused_data)
