"""Parquet tables with named columns. Ids keep their type."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.errors import InputError, Option, ParameterError
from podium.data.frames import comparisons_frame, labels_frame, lists_frame
from podium.formats.base import Content
from podium.formats.file_table import FileTable
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import WritableKind, resolve_kind
from podium.kernels.dispatch import F8
from podium.storage.files import Source

__all__ = ["Parquet"]


class _ArrowColumns(Mapping[str, list[Any]]):
    """The columns of an Arrow table, converted to Python values on demand."""

    def __init__(self, table: Any) -> None:
        self._table, self._made = table, dict[str, list[Any]]()

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._made:
            self._made[name] = self._table.column(name).to_pylist()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return len(self._table.column_names)

    def read_numbers(self, name: str) -> F8 | None:
        """A numeric column as an array, NaN for missing values; None for other columns."""
        import pyarrow as pa

        column, kind = self._table.column(name), pa.types
        if not (kind.is_integer(column.type) or kind.is_float32(column.type) or kind.is_float64(column.type)):
            return None
        return np.asarray(column.to_numpy(), np.float64)


@dataclass(frozen=True)
class _ArrowTable(FileTable):
    """A table with typed columns: feature matrices are read without one Python object per number."""

    arrow: _ArrowColumns | None = None

    def read_numbers_or_nan(self, name: str, role: str) -> F8:
        numbers = None if self.missing or self.arrow is None else self.arrow.read_numbers(name)
        if numbers is None or np.isinf(numbers).any():
            return super().read_numbers_or_nan(name, role)
        return numbers


class Parquet(TableFormat):
    """Parquet files with columns of lists, ratings, votes or labels."""

    name = "parquet"
    suffixes = (".parquet", ".pq")
    summary = "Parquet with named columns: lists, ratings, votes, labels"

    def sniff(self, head: bytes) -> float:
        return 1.0 if head.startswith(b"PAR1") else 0.0

    def read_table(
        self, source: Source, columns: Sequence[str] | None, delimiter: str | None, missing: frozenset[str]
    ) -> FileTable:
        if columns is not None or delimiter is not None:
            raise ParameterError(
                Option("columns"),
                " and ",
                Option("delimiter"),
                " apply to csv; a Parquet file names its own columns",
            )
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not source.raw:
            raise source.error("the file is empty")
        try:
            # no Arrow threads: one that frees these bytes during interpreter shutdown would abort the process
            file = pq.ParquetFile(pa.BufferReader(source.raw), pre_buffer=False)
            table = file.read(use_threads=False)
            table.validate(full=True)  # text may not be UTF-8, and offsets may point anywhere
        except (pa.ArrowException, OSError, ValueError) as error:  # a name that is not UTF-8 is a ValueError
            raise source.error(f"this is not a Parquet file: {error}"[:200]) from None
        names = table.column_names
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise source.error(f"two columns are named {twice!r}", None, "rename one")
        if not table.num_rows:
            raise source.error("there are no rows")
        arrow_columns = _ArrowColumns(table)
        return _ArrowTable(source, arrow_columns, range(1, table.num_rows + 1), missing, arrow=arrow_columns)

    def write(self, content: Content, *, kind: WritableKind | str = "auto") -> Iterator[bytes]:
        import pyarrow.parquet as pq

        kind = resolve_kind(content, kind, self)
        if kind == "labels":
            assert content.labels is not None
            frame = labels_frame(content.labels, "pyarrow")
        else:
            assert content.preferences is not None
            _refuse_mixed_ids(content)
            frame = (lists_frame if kind == "lists" else comparisons_frame)(content.preferences, "pyarrow")
        out = io.BytesIO()
        pq.write_table(frame, out)
        yield out.getvalue()


def _refuse_mixed_ids(content: Content) -> None:
    """Reject mixed ids: a Parquet column is text or numbers, so a mixture would be read back as text."""
    assert content.preferences is not None
    p = content.preferences
    for what, ids in (("query", p.queries), ("expert", p.experts), ("item", p.index.items)):
        if not ids.is_text and {type(v) for v in ids.tolist()} == {str, int}:
            raise InputError(
                f"some {what} ids are numbers and some are text", remedy="use one type, or write jsonl"
            )
