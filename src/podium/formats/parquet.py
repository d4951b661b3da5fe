"""Parquet tables with named columns. Ids keep their type."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

from podium.core.errors import InputError, Option, ParameterError
from podium.core.optional import require_module
from podium.data.frames import comparisons_frame, labels_frame, lists_frame
from podium.formats.arrow_table import ArrowColumns, ArrowTable
from podium.formats.base import Content
from podium.formats.file_table import FileTable
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import WritableKind, resolve_kind
from podium.storage.files import Source

__all__ = ["Parquet", "open_parquet"]


def open_parquet(source: Source) -> Any:
    """The file as pyarrow's `ParquetFile`."""
    pa, pq = require_module("pyarrow"), require_module("pyarrow.parquet")
    if not source.raw:
        raise source.error("the file is empty")
    with _report_damage(source):
        return pq.ParquetFile(pa.BufferReader(source.raw), pre_buffer=False)


@contextlib.contextmanager
def _report_damage(source: Source) -> Iterator[None]:
    pa = require_module("pyarrow")
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:  # a name that is not UTF-8 is a ValueError
        raise source.error(f"this is not a Parquet file: {error}"[:200]) from None


class ParquetColumns(ArrowColumns):
    """The columns of a Parquet file, each read when it is first needed: conversations never are."""

    def __init__(self, source: Source, file: Any) -> None:
        with _report_damage(source):
            super().__init__(file.schema_arrow.empty_table())
        self._source, self._file = source, file
        self._arrow: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        if name not in self._arrow:
            with _report_damage(self._source):
                # no Arrow threads: one that frees these bytes during interpreter shutdown would abort the process
                table = self._file.read(columns=[name], use_threads=False)
                table.validate(full=True)  # text may not be UTF-8, and offsets may point anywhere
                self._arrow[name] = table.column(name)
        return self._arrow[name]


class Parquet(TableFormat):
    """Parquet files with columns of lists, ratings, votes or labels."""

    name = "parquet"
    suffixes = (".parquet", ".pq")
    signature = rb"PAR1"
    summary = "Parquet with named columns: lists, ratings, votes, labels"

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
        file = open_parquet(source)
        columns_read = ParquetColumns(source, file)
        names = list(columns_read)
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise source.error(f"two columns are named {twice!r}", None, "rename one")
        rows = file.metadata.num_rows
        if not rows:
            raise source.error("there are no rows")
        return ArrowTable(source, columns_read, range(1, rows + 1), missing, arrow=columns_read)

    def write(self, content: Content, *, kind: WritableKind | str = "auto") -> Iterator[bytes]:
        pq = require_module("pyarrow.parquet")

        kind = resolve_kind(content, kind, self)
        if kind == "labels":
            assert content.labels is not None
            frame = labels_frame(content.labels, "pyarrow")
        else:
            p = content.preferences
            assert p is not None
            # a Parquet column is text or numbers: a mixture would be read back as text
            for what, ids in (("query", p.queries), ("expert", p.experts), ("item", p.index.items)):
                if not ids.is_text and {type(v) for v in ids.tolist()} == {str, int}:
                    raise InputError(
                        f"some {what} ids are numbers and some are text",
                        remedy="use one type, or write jsonl",
                    )
            frame = (lists_frame if kind == "lists" else comparisons_frame)(p, "pyarrow")
        out = io.BytesIO()
        pq.write_table(frame, out)
        yield out.getvalue()
