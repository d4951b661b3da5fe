"""Packed bodies and files of a bounded size, counted while they are unpacked; work of a bounded size."""

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
    from podium.kernels.dispatch import B1
    from podium.methods.base import Aggregator, Pairwise

__all__ = ["TooLarge", "bounded_decompress", "check_pairs"]

PIECE = 1 << 16
FREE = 1 << 20  # what unpacks to less than this is no bomb, whatever its ratio


class TooLarge(InputError):
    """More than the server takes."""


def check_pairs(limits: Limits, preferences: Preferences, method: Aggregator | None = None) -> None:
    """Refuse what would compare each with each of very many items: a method, or without one whatever does."""
    what = "items" if method is None else method.tags.pairwise
    sizes = preferences.index.sizes
    widest = int(sizes[_find_compared_queries(preferences, what)].max(initial=0))
    if widest > limits.query_items:
        who = "" if method is None else f", and {method.name} may compare each with each"
        raise TooLarge(
            f"a query has {widest:,} items{who}",
            remedy=f"send at most {limits.query_items:,}, or use a method like rrf",
        )


def _find_compared_queries(preferences: Preferences, what: Pairwise) -> B1:
    """The queries in which items are compared each with each."""
    listed = np.diff(preferences.lists.query_starts) > 0
    return np.full(len(listed), what == "items") | (listed & (what == "lists"))


def bounded_decompress(source: bytes | str | os.PathLike[str], limits: Limits) -> bytes:
    """The bytes of gzip data (or of data that are not packed), never more than the limits allow.

    >>> import gzip
    >>> bounded_decompress(gzip.compress(b"a,b"), Limits())
    b'a,b'
    >>> bounded_decompress(gzip.compress(bytes(10**7)), Limits())
    Traceback (most recent call last):
    podium.studio.limits.TooLarge: the data unpack to more than 200 times their size; send them unpacked
    """
    packed = source if isinstance(source, bytes) else Path(source).read_bytes()
    if packed[:2] != b"\x1f\x8b":
        return packed
    found = bytearray()
    for piece in _iterate_unpacked(packed):
        found += piece
        if len(found) > limits.decompressed_bytes:
            raise TooLarge(
                f"the data unpack to more than {limits.decompressed_bytes:,} bytes",
                remedy="send less at a time",
            )
        if len(found) > max(FREE, limits.ratio * len(packed)):
            raise TooLarge(
                f"the data unpack to more than {limits.ratio} times their size", remedy="send them unpacked"
            )
    return bytes(found)


def _iterate_unpacked(packed: bytes) -> Iterator[bytes]:
    """What the members of gzip data hold, in small pieces; padding after the last one is passed over."""
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
                raise InputError("the gzip data are damaged", remedy="pack them again") from None
            if not part and not piece:
                raise InputError("the gzip data are cut short", remedy="send all of them")
            yield piece
        at -= len(machine.unused_data)
