"""Rows of text cells, from columns of ids and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium._core import text_rows as core
from podium.kernels.dispatch import F8, I8, U1

__all__ = ["TextCells", "format_floats", "format_integers", "join_cells"]

_MOST_CHARACTERS = 24  # of a double or a 64-bit integer


class TextCells(NamedTuple):
    """A column of UTF-8 texts: the cell of row i is `data[offsets[c] : offsets[c + 1]]` with c = `codes[i]`."""

    data: U1
    offsets: I8
    codes: I8


def format_floats(values: F8, *, nan_is_empty: bool = False) -> TextCells:
    """The text of `repr` of each number; NaN becomes the empty text if `nan_is_empty`."""
    room, offsets = np.empty(_MOST_CHARACTERS * len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    core.format_floats(np.ascontiguousarray(values, np.float64), nan_is_empty, room, offsets)
    return TextCells(room[: offsets[-1]], offsets, np.arange(len(values)))


def format_integers(values: I8) -> TextCells:
    """The decimal digits of each number."""
    room, offsets = np.empty(_MOST_CHARACTERS * len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    core.format_integers(np.ascontiguousarray(values, np.int64), room, offsets)
    return TextCells(room[: offsets[-1]], offsets, np.arange(len(values)))


def join_cells(columns: Sequence[TextCells], separator: bytes) -> bytes:
    """One line per row: its cells with separators between them."""
    lines = core.join_cells(list(columns), np.frombuffer(separator, np.uint8))
    return bytes(lines.data)
