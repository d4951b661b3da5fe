"""Tables that Arrow has read: ids and numbers without one Python object per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core.optional import require_module
from podium.data.ids import CodedColumn, Ids
from podium.formats.file_table import FileTable
from podium.kernels.dispatch import F8, I8

__all__ = ["ArrowColumns", "ArrowTable"]


class ArrowColumns(Mapping[str, list[Any]]):
    """The columns of an Arrow table, converted to Python values on demand."""

    def __init__(self, table: Any) -> None:
        self._table, self._columns = table, dict[str, list[Any]]()

    def column(self, name: str) -> Any:
        """The Arrow column of that name."""
        return self._table.column(name)

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._columns:
            self._columns[name] = self.column(name).to_pylist()
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return len(self._table.column_names)

    def read_ids(self, name: str) -> CodedColumn | None:
        """A column of text without empty or missing cells as ids; None for other columns."""
        pa, column = require_module("pyarrow"), self.column(name)
        if column.type != pa.string() or column.null_count or not len(column):
            return None
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):  # text of 2 GB or more stays in chunks
            return None
        values = encoded.dictionary
        _, ends, data = values.buffers()
        offsets: I8 = np.frombuffer(ends, np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
        if (np.diff(offsets) == 0).any():
            return None
        # copies: what Arrow has allocated must not outlive its threads
        text = np.frombuffer(data, np.uint8)[: offsets[-1]].copy()
        return CodedColumn(encoded.indices.to_numpy().astype(np.int64), Ids.from_text(text, offsets))

    def read_numbers(self, name: str) -> F8 | None:
        """A numeric column as an array, NaN for missing values; None for other columns."""
        pa = require_module("pyarrow")

        column, kind = self.column(name), pa.types
        if not (kind.is_integer(column.type) or kind.is_float32(column.type) or kind.is_float64(column.type)):
            return None
        return np.asarray(column.to_numpy(), np.float64)

    def parse_numbers(self, name: str) -> F8 | None:
        """A column of text that consists of finite numbers; None for other columns."""
        pa, column = require_module("pyarrow"), self.column(name)
        if column.type != pa.string() or column.null_count:
            return None
        try:
            numbers: F8 = column.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return None  # what Arrow does not take for a number may still be one, such as +1
        return numbers.copy() if np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class ArrowTable(FileTable):
    """A table of Arrow's typed columns; what they do not hold is read cell by cell."""

    arrow: ArrowColumns | None = None  # of exactly the rows of the table

    def select_rows(self, rows: I8) -> FileTable:
        if self.arrow is None:
            return super().select_rows(rows)
        return replace(self, arrow=None).select_rows(rows)

    def read_ids(self, name: str, role: str) -> CodedColumn:
        ids = None if self.arrow is None else self.arrow.read_ids(name)
        return super().read_ids(name, role) if ids is None else ids

    def read_numbers(self, name: str, role: str) -> F8:
        numbers = None if self.arrow is None else self.arrow.parse_numbers(name)
        return super().read_numbers(name, role) if numbers is None else numbers

    def read_numbers_or_nan(self, name: str, role: str) -> F8:
        numbers = None if self.missing or self.arrow is None else self.arrow.read_numbers(name)
        if numbers is None or np.isinf(numbers).any():
            return super().read_numbers_or_nan(name, role)
        return numbers
