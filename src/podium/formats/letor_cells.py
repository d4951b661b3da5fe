"""The `column:value` cells of LETOR lines, a block of lines at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from podium.errors import InputError
from podium.formats.lines import number, shown
from podium.kernels import text_columns
from podium.kernels.dispatch import F8, I4, I8, is_large

__all__ = ["BLOCK", "LAST_COLUMN", "Cells", "parse_cells", "worth_compiling"]

BLOCK = 20_000  # lines
LAST_COLUMN = text_columns.LAST_COLUMN
Complaint = Callable[[int, str, str], InputError]  # (line of the block, problem, remedy) -> the error


class Cells(NamedTuple):
    """Cells of some lines, one after the other."""

    widths: I8  # of each line
    column: I4
    value: F8  # NaN: NULL

    @property
    def row(self) -> I8:
        """The line of each cell, within the block."""
        return np.repeat(np.arange(len(self.widths)), self.widths)


def worth_compiling(size: int) -> bool:
    """Whether that many bytes of lines hold enough cells to load the compiled parser."""
    return is_large(size // 8)


def parse_cells(lines: Sequence[bytes], complaint: Complaint, *, compiled: bool) -> Cells:
    """All cells of a block of lines (each without label, qid and comment)."""
    if compiled:
        found = text_columns.parse_cells(np.frombuffer(b"\n".join(lines), np.uint8), len(lines))
        if found is not None:
            return Cells(*found)
    widths = np.empty(len(lines), np.int64)
    columns: list[int] = []
    values: list[float] = []
    for k, line in enumerate(lines):
        try:
            column, value = _plain(line)
        except ValueError as error:
            raise complaint(k, *error.args) from None
        widths[k] = len(column)
        columns += column
        values += value
    return Cells(widths, np.array(columns, np.int32), np.array(values, np.float64))


def _plain(line: bytes) -> tuple[list[int], list[float]]:
    columns, values = [], []
    for cell in line.split():
        column, colon, value = cell.partition(b":")
        if not colon:
            raise ValueError(f"{shown(cell)} is not column:value", "values look like 12:0.5 or 12:NULL")
        if not column.isdigit() or len(column) > 20 or not 0 < int(column) <= LAST_COLUMN:
            raise ValueError(f"the column is {shown(column)}", f"columns are numbers from 1 to {LAST_COLUMN}")
        columns.append(int(column))
        try:
            values.append(float("nan") if value == b"NULL" else number(value.decode()))
        except ValueError:
            raise ValueError(f"the value is {shown(value)}", "values are finite numbers or NULL") from None
    if len(set(columns)) < len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise ValueError(f"column {twice} is given twice", "keep one of them")
    return columns, values
