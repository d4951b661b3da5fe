"""CSV, TSV and other delimited tables with named columns."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.optional import is_installed, require_module
from podium.data.column_roles import ROLES, WORDS, normalize_name
from podium.data.ids import CodedColumn, Ids
from podium.formats.arrow_table import ArrowColumns, ArrowTable
from podium.formats.base import Content
from podium.formats.file_table import FileTable
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import CellColumn, WritableKind, build_columns, format_rows, resolve_kind
from podium.formats.text_ids import encode_integers, format_ids
from podium.kernels.dispatch import I8
from podium.storage.files import Source

__all__ = ["Csv"]

_DELIMITERS = (",", "\t", ";", "|")
ARROW_ROWS = 20_000  # the import of Arrow takes as long as its reader saves on this many rows
_NUMBER_CHARACTERS = "+-.0123456789aefin"
_KNOWN_WORDS = {word for words in WORDS.values() for word in words}


class Csv(TableFormat):
    """Delimited tables; ids are strings. `columns` names the columns of a file that has no header line;
    `delimiter` is detected from the first line unless given, and ' ' means any whitespace.
    """

    name = "csv"
    suffixes = (".csv", ".tsv", ".tab")
    summary = "CSV / TSV with named columns: lists, ratings, votes, labels"

    def sniff(self, head: bytes) -> float:
        first = head[:65536].split(b"\n", 1)[0].decode(errors="replace")  # the relevant names come early
        best, delimiter = max((_count_known_names(first, d), d) for d in _DELIMITERS)
        # a line of nothing but known names cannot be data of another format
        sure = best == first.count(delimiter) + 1 >= 2
        return 0.95 if sure else min(0.4 + 0.2 * best, 0.95) if best >= 2 else 0.0

    def fits(self, head: bytes, options: Mapping[str, Any]) -> bool:
        """Whether the options name columns of the first line, or set `columns` or `delimiter`."""
        first = head[:65536].split(b"\n", 1)[0].decode(errors="replace").strip()
        names = {cell.strip() for mark in (*_DELIMITERS, None) for cell in first.split(mark)}
        named = {value for role in ROLES if isinstance(value := options.get(role), str)}
        return "columns" in options or "delimiter" in options or bool(named & names)

    def read_table(
        self, source: Source, columns: Sequence[str] | None, delimiter: str | None, missing: frozenset[str]
    ) -> FileTable:
        text = source.data.lstrip()
        end = text.find(b"\n")
        first = text[: end if end >= 0 else None].decode()
        mark = delimiter
        if mark is None:
            # the delimiter that makes the header valid, else the most frequent one; whitespace if none occurs
            known = {d: _count_known_names(first, d) if columns is None else 0 for d in _DELIMITERS}
            best = max(_DELIMITERS, key=lambda d: (known[d], first.count(d)))
            mark = best if known[best] or first.count(best) else " "
        _check_delimiter(mark)
        rows = _iterate_rows(source, mark)
        names = list(columns) if columns is not None else [n.strip() for n in next(rows)[1]]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise source.error(f"two columns are named {twice!r}", 1, "rename one")
        if source.estimated_rows >= ARROW_ROWS and is_installed("pyarrow"):
            quick = _read_with_arrow(source, mark, names, header=columns is None)
            if quick is not None:
                first_line = 1 if columns is not None else 2
                lines = range(first_line, first_line + quick.num_rows)
                arrow_columns = ArrowColumns(quick)
                return ArrowTable(source, arrow_columns, lines, missing, arrow=arrow_columns)
        numbers, cells = [], []
        for number, row in rows:
            if len(row) != len(names):
                where = "are named" if columns is not None else "are in the header"
                remedy = "check the delimiter and quotes of this line"
                raise source.error(f"{len(row)} columns here, {len(names)} {where}", number, remedy)
            cells.append(row)
            numbers.append(number)
        if not cells:
            raise source.error("there is a header but no rows", 1)
        return FileTable(source, dict(zip(names, zip(*cells, strict=True), strict=True)), numbers, missing)

    def write(
        self, content: Content, *, kind: WritableKind | str = "auto", delimiter: str = ","
    ) -> Iterator[bytes]:
        _check_delimiter(delimiter)
        kind = resolve_kind(content, kind, self)
        columns = build_columns(content, kind)
        header = _quote_row(columns, delimiter).encode()
        held = content.labels if "grade" in columns else content.preferences
        assert held is not None
        texts: dict[int, Ids] = {}  # by the identity of the ids: winners and losers share theirs
        cells: list[CellColumn] = []
        for name, column in columns.items():
            if isinstance(column, CodedColumn):
                if id(column.ids) not in texts:
                    items = column.ids is held.index.items
                    role, group = ("item", held.index.query_of_slot) if items else (name, None)
                    texts[id(column.ids)] = _encode_ids(column.ids, role, group, delimiter)
                cells.append(CodedColumn(column.codes, texts[id(column.ids)]))
            elif name == "tie":
                words = _quote_texts(["false", "true"], delimiter)
                cells.append(CodedColumn(column.astype(np.int64), words))
            elif delimiter in _NUMBER_CHARACTERS:
                numbers = ["" if value != value else repr(value) for value in column.tolist()]
                cells.append(CodedColumn(np.arange(len(numbers)), _quote_texts(numbers, delimiter)))
            else:
                cells.append(column)
        return itertools.chain([header], format_rows(cells, delimiter, nan_is_empty=True))


def _check_delimiter(mark: str) -> None:
    if len(mark) != 1 or mark in '"\r\n':
        raise ParameterError(
            f"delimiter is {mark!r}; accepted: one character such as ',' or ';', a tab, or ' ' (whitespace)"
        )


def _quote_row(cells: Iterable[str], delimiter: str) -> str:
    """One line of cells, with quotes around those that need them."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _quote_texts(texts: Sequence[str], delimiter: str) -> Ids:
    """Cells in one UTF-8 buffer, with quotes around those that need them."""
    special = re.compile(f'[{re.escape(delimiter)}"\r\n]')
    if special.search("".join(texts)):
        texts = [_quote_row([t], delimiter)[:-1] if special.search(t) else t for t in texts]
    text = Ids(texts).as_text
    assert text is not None
    return text


def _count_known_names(line: str, delimiter: str) -> int:
    return sum(normalize_name(name) in _KNOWN_WORDS for name in line.strip().split(delimiter))


def _read_with_arrow(source: Source, delimiter: str, names: list[str], header: bool) -> Any:
    """A table read by Arrow, faster than by the plain reader; None unless every line is one row without quotes."""
    data = source.data
    returns = data.count(b"\r")
    plain = not any(mark in data for mark in (b'"', b"\n\n", b"\n\r\n")) and returns in (
        0,
        data.count(b"\r\n"),
    )
    if not plain or delimiter == " " or len(delimiter.encode()) > 1 or data[:1].isspace():
        return None
    pa, arrow = require_module("pyarrow"), require_module("pyarrow.csv")
    try:
        table = arrow.read_csv(
            pa.BufferReader(data),
            read_options=arrow.ReadOptions(column_names=names, skip_rows=int(header)),
            parse_options=arrow.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None  # the plain reader reports the line
    blank = data.count(b"\n") + (not data.endswith(b"\n")) - int(header) != table.num_rows
    return None if blank or not table.num_rows else table


def _iterate_rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows; a row may span lines inside quotes."""
    if delimiter == " ":
        yield from ((line, text.decode().split()) for line, text in source.iterate_lines())
        return
    if b'"' not in source.data:
        for line, text in source.iterate_lines():
            yield line, text.decode().rstrip("\r").split(delimiter)
        return
    reader = csv.reader(io.StringIO(source.data.decode(), newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield begin, row
            begin = reader.line_num + 1
    except csv.Error as error:
        raise source.error(
            f"invalid quoting: {error}", begin, 'a quote inside a quoted cell is written ""'
        ) from None


def _encode_ids(ids: Ids, what: str, group: I8 | None, delimiter: str) -> Ids:
    """Ids as cells in one UTF-8 buffer."""
    if ids.integers is not None and delimiter not in _NUMBER_CHARACTERS:
        return encode_integers(ids.integers)
    if ids.buffer is not None and ids.offsets is not None and (np.diff(ids.offsets) > 0).all():
        raw = ids.buffer[ids.offsets[0] : ids.offsets[-1]].tobytes()
        if not any(mark in raw for mark in (b"\0", b"\r", b"\n", b'"', delimiter.encode())):
            return ids
    texts = format_ids(ids, what, "csv", group)
    for value in texts:
        if "\0" in value or "\r" in value:
            raise InputError(
                f"the {what} id {value!r} cannot be written as csv", remedy="rename it, or write jsonl"
            )
    return _quote_texts(texts, delimiter)
