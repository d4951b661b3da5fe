"""The named columns of one table file, read as ids, numbers and marks with errors at the line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core.errors import InputError, MessageText, Option
from podium.data.ids import CodedColumn, code_ids
from podium.formats.text_lines import parse_number
from podium.kernels.dispatch import B1, F8, I8
from podium.storage.files import Source

__all__ = ["FileTable", "SelectedColumns", "parse_all_numbers"]

TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


class SelectedColumns(Mapping[str, Sequence[Any]]):
    """The same rows of several columns, each selected when it is first read, after columns that are complete."""

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        names: Iterable[str],
        rows: Sequence[int],
        complete: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._columns, self._rows = columns, rows
        self._read = dict(complete or {})
        self._names = (*self._read, *names)

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self._read:
            cells = self._columns[name]
            self._read[name] = [cells[row] for row in self._rows]
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class FileTable:
    """Named columns of one file, and the source line of each row."""

    source: Source
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int]
    missing: frozenset[str]
    expert_name: str = ""  # the name of the expert if the file has no expert column
    elements: bool = False  # whether `lines` are element numbers of an array, whose elements may share a line

    def __len__(self) -> int:
        return len(self.lines)

    def error(self, row: int, problem: str, remedy: MessageText) -> InputError:
        """An error at a row."""
        source, line = self.origin(row)
        return InputError(problem, source=source, line=line, remedy=remedy)

    def origin(self, row: int) -> tuple[str, int | None]:
        """File and line of a row, or file and element."""
        if self.elements:
            return f"{self.source.name}, element {self.lines[row]}", None
        return self.source.name, self.lines[row]

    def is_missing(self, value: Any) -> bool:
        """Whether a cell marks a missing value."""
        return value is None or (bool(self.missing) and str(value) in self.missing)

    def read_ids(self, name: str, role: str) -> CodedColumn:
        """A column of ids."""
        cells = self.columns[name]
        if not set(map(type, cells)) <= {str, int} or "" in cells:
            for row, value in enumerate(cells):
                if value is None or value == "" or type(value) not in (str, int):
                    shown = "missing" if value is None or value == "" else repr(value)
                    remedy = "every row needs one; ids are strings or integers"
                    raise self.error(row, f"the {role} is {shown}", remedy)
        return code_ids(cells, role)

    def read_numbers(self, name: str, role: str) -> F8:
        """A column of finite numbers."""
        cells = self.columns[name]
        quick = parse_all_numbers(cells)
        if quick is not None:
            return quick
        numbers = np.empty(len(cells))
        for row, value in enumerate(cells):
            text = value if isinstance(value, str) else repr(value) if type(value) in (int, float) else ""
            try:
                numbers[row] = parse_number(text)
            except ValueError:
                shown = "missing" if value is None or value == "" else repr(value)[:80]
                remedy = (
                    f"a {role} is a finite number; ",
                    Option("missing", text),
                    " skips the rows with this cell",
                )
                raise self.error(row, f"the {role} is {shown}", remedy) from None
        return numbers

    def select_rows(self, rows: I8) -> FileTable:
        """Some of the rows."""
        where = rows.tolist()
        columns = SelectedColumns(self.columns, self.columns, where)
        return replace(self, columns=columns, lines=[self.lines[k] for k in where])

    def read_numbers_or_nan(self, name: str, role: str) -> F8:
        """A column of finite numbers; empty cells and missing marks become NaN."""
        given = np.flatnonzero([v != "" and not self.is_missing(v) and v == v for v in self.columns[name]])
        numbers = np.full(len(self), np.nan)
        numbers[given] = self.select_rows(given).read_numbers(name, role)
        return numbers

    def read_marks(self, name: str) -> B1:
        """A column of tie marks."""
        marks = np.zeros(len(self), np.bool_)
        for row, value in enumerate(self.columns[name]):
            word = "" if value is None else str(value).strip().lower()
            if word not in TRUTH:
                accepted = "accepted: true, false, yes, no, 1, 0 or empty"
                raise self.error(row, f"the tie mark is {value!r}", accepted)
            marks[row] = TRUTH[word]
        return marks

    def drop_missing(self, name: str) -> FileTable:
        """The table without the rows whose cell in a column is a missing mark."""
        if not self.missing:
            return self
        return self.select_rows(np.flatnonzero([not self.is_missing(v) for v in self.columns[name]]))


def parse_all_numbers(cells: Sequence[Any]) -> F8 | None:
    """The whole column converted at once, or None if cells must be checked one by one."""
    kinds = set(map(type, cells))
    try:
        if kinds == {str}:
            joined = "".join(cells)
            if not joined.isascii() or "_" in joined:
                return None
            numbers = np.array(cells).astype(np.float64)
        elif kinds <= {int, float}:
            numbers = np.array(cells, np.float64)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None
