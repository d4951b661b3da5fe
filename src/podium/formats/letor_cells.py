"""The `column:value` cells of LETOR lines, parsed in blocks of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from podium.core.errors import InputError
from podium.formats.text_lines import parse_number, quote_bytes
from podium.kernels import text_columns
from podium.kernels.dispatch import F8, I4, I8

__all__ = ["BLOCK", "LAST_COLUMN", "LetorCells", "parse_cells", "parse_cells_by_line"]

BLOCK = 20_000  # lines
LAST_COLUMN = text_columns.LAST_COLUMN
CellError = Callable[[int, str, str], InputError]  # (line of the block, problem, remedy) -> the error


class LetorCells(NamedTuple):
    """Cells of consecutive lines, concatenated."""

    widths: I8  # cells per line
    column: I4
    value: F8  # NaN: NULL

    @property
    def row(self) -> I8:
        """The line of each cell, within the block."""
        return np.repeat(np.arange(len(self.widths)), self.widths)


def parse_cells(lines: Sequence[bytes], complaint: CellError) -> LetorCells:
    """All cells of a block of lines (without label, qid and comment)."""
    cells = text_columns.parse_cells(np.frombuffer(b"\n".join(lines), np.uint8), len(lines))
    return parse_cells_by_line(lines, complaint) if cells is None else LetorCells(*cells)


def parse_cells_by_line(lines: Sequence[bytes], complaint: CellError) -> LetorCells:
    """The same for cells that the kernel does not read: it raises the error, or parses unusual numbers."""
    widths = np.empty(len(lines), np.int64)
    columns: list[int] = []
    values: list[float] = []
    for k, line in enumerate(lines):
        try:
            column, value = _parse_line(line)
        except ValueError as error:
            raise complaint(k, *error.args) from None
        widths[k] = len(column)
        columns += column
        values += value
    return LetorCells(widths, np.array(columns, np.int32), np.array(values, np.float64))


def _parse_line(line: bytes) -> tuple[list[int], list[float]]:
    columns, values = [], []
    for cell in line.split():
        column, colon, value = cell.partition(b":")
        if not colon:
            raise ValueError(f"{quote_bytes(cell)} is not column:value", "values look like 12:0.5 or 12:NULL")
        if not column.isdigit() or len(column) > 20 or not 0 < int(column) <= LAST_COLUMN:
            raise ValueError(
                f"the column is {quote_bytes(column)}", f"columns are numbers from 1 to {LAST_COLUMN}"
            )
        columns.append(int(column))
        try:
            values.append(float("nan") if value == b"NULL" else parse_number(value.decode()))
        except ValueError:
            raise ValueError(
                f"the value is {quote_bytes(value)}", "values are finite numbers or NULL"
            ) from None
    if len(set(columns)) < len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise ValueError(f"column {twice} is given twice", "keep one of them")
    return columns, values
