"""CSV, TSV and other delimited tables with named columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podium.core.errors import InputError, ParameterError
from podium.data.column_roles import ROLES, WORDS, normalize_name
from podium.data.ids import Ids
from podium.formats.base import Content
from podium.formats.file_table import FileTable
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import WritableKind, build_columns, resolve_kind
from podium.formats.text_ids import format_ids
from podium.kernels.dispatch import I8, is_large
from podium.storage.files import Source

__all__ = ["Csv"]

_DELIMITERS = (",", "\t", ";", "|")
_ROW_COST = 8  # cost of one table row in numbers, when deciding whether Arrow's reader pays off
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
        best = max(_count_known_names(first, d) for d in _DELIMITERS)
        return min(0.4 + 0.2 * best, 0.95) if best >= 2 else 0.0

    def fits(self, head: bytes, options: Mapping[str, Any]) -> bool:
        """Whether the options name columns of the first line, or set `columns` or `delimiter`."""
        first = head[:65536].split(b"\n", 1)[0].decode(errors="replace").strip()
        names = {cell.strip() for mark in (*_DELIMITERS, None) for cell in first.split(mark)}
        named = {value for role in ROLES if isinstance(value := options.get(role), str)}
        return "columns" in options or "delimiter" in options or bool(named & names)

    def read_table(
        self, source: Source, columns: Sequence[str] | None, delimiter: str | None, missing: frozenset[str]
    ) -> FileTable:
        first = source.data.lstrip().split(b"\n", 1)[0].decode()
        mark = delimiter if delimiter is not None else _detect_delimiter(first, header=columns is None)
        if len(mark) != 1 or mark in '"\r\n':
            raise ParameterError(
                f"delimiter is {mark!r}; accepted: one character such as ',' or ';', a tab, or ' ' (whitespace)"
            )
        rows = _iterate_rows(source, mark)
        names = list(columns) if columns is not None else [n.strip() for n in next(rows)[1]]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise source.error(f"two columns are named {twice!r}", 1, "rename one")
        if is_large(source.estimated_rows * _ROW_COST):
            quick = _read_with_arrow(source, mark, names, header=columns is None)
            if quick is not None:
                first_line = 1 if columns is not None else 2
                return FileTable(source, quick, range(first_line, first_line + len(quick[names[0]])), missing)
        lines, cells = _check_rows(
            rows, names, source, "are named" if columns is not None else "are in the header"
        )
        return FileTable(source, dict(zip(names, zip(*cells, strict=True), strict=True)), lines, missing)

    def write(
        self, content: Content, *, kind: WritableKind | str = "auto", delimiter: str = ","
    ) -> Iterator[bytes]:
        kind = resolve_kind(content, kind, self)
        return _encode_rows(build_columns(content, kind, _format_ids), delimiter)


def _encode_rows(columns: Mapping[str, list[Any]], delimiter: str) -> Iterator[bytes]:
    if "tie" in columns:
        columns = {**columns, "tie": ["true" if tie else "false" for tie in columns["tie"]]}
    if "score" in columns:  # NaN: a list without scores
        columns = {**columns, "score": ["" if score != score else score for score in columns["score"]]}
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(row)
        if out.tell() > 1 << 20:
            yield out.getvalue().encode()
            out.seek(0)
            out.truncate()
    yield out.getvalue().encode()


def _count_known_names(line: str, delimiter: str) -> int:
    return sum(normalize_name(name) in _KNOWN_WORDS for name in line.strip().split(delimiter))


def _detect_delimiter(first: str, header: bool) -> str:
    """The delimiter that makes the header valid, else the most frequent one; whitespace if none occurs."""
    if header:
        best = max(_DELIMITERS, key=lambda d: (_count_known_names(first, d), first.count(d)))
        if _count_known_names(first, best) or first.count(best):
            return best
        return " "
    best = max(_DELIMITERS, key=first.count)
    return best if first.count(best) else " "


def _check_rows(
    rows: Iterator[tuple[int, list[str]]], names: list[str], source: Source, words: str
) -> tuple[list[int], list[list[str]]]:
    """Line numbers and cells of all rows; each row must be as wide as the header."""
    lines, cells = [], []
    for line, row in rows:
        if len(row) != len(names):
            remedy = "check the delimiter and quotes of this line"
            raise source.error(f"{len(row)} columns here, {len(names)} {words}", line, remedy)
        cells.append(row)
        lines.append(line)
    if not cells:
        raise source.error("there is a header but no rows", 1)
    return lines, cells


def _read_with_arrow(
    source: Source, delimiter: str, names: list[str], header: bool
) -> dict[str, list[str]] | None:
    """The columns read by Arrow; None unless every line is one row without quotes."""
    data = source.data
    returns = data.count(b"\r")
    plain = not any(mark in data for mark in (b'"', b"\n\n", b"\n\r\n")) and returns in (
        0,
        data.count(b"\r\n"),
    )
    if not plain or delimiter == " " or len(delimiter.encode()) > 1 or data[:1].isspace():
        return None
    import pyarrow as pa
    from pyarrow import csv as arrow

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
    return None if blank or not table.num_rows else {n: table.column(n).to_pylist() for n in names}


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


def _format_ids(ids: Ids, what: str, group: I8 | None) -> list[str]:
    texts = format_ids(ids, what, "csv", group)
    for value in texts:
        if "\0" in value or "\r" in value:
            raise InputError(
                f"the {what} id {value!r} cannot be written as csv", remedy="rename it, or write jsonl"
            )
    return texts
