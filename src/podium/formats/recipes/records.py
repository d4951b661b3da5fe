"""The records of a file, whatever contains them: JSON lines, a JSON array or document, a table, Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from podium.core.errors import InputError, MessageText
from podium.core.optional import is_installed, require_module
from podium.data.ids import Id
from podium.formats.csv_format import Csv
from podium.formats.json_objects import ArrayElements, ObjectLines
from podium.formats.parquet import open_parquet
from podium.formats.text_ids import refuse_surrogates_in
from podium.storage.files import Source

__all__ = [
    "Container",
    "FirstRecord",
    "Record",
    "find_first_record",
    "find_value",
    "iterate_records",
    "to_id",
]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{},]')
_DELIMITER = re.compile(rb"[,\t;|]")
_PARQUET = b"PAR1"

Container = Literal["json", "table"]  # tables are CSV and Parquet


@dataclass(frozen=True)
class Record:
    """One record and its place: the line of a text file, or the number of an element."""

    source: Source
    line: int | None
    element: int | None
    fields: Mapping[str, Any]

    def get(self, key: str) -> Any:
        """The value at a key, or at a path of keys joined by dots; None where there is none."""
        return find_value(self.fields, key)

    def read_id(self, key: str, role: str, remedy: MessageText = "every record needs one") -> Id:
        """The id at a key."""
        value = to_id(self.get(key))
        if value is None:
            raise self.error(f"the {role} ({key}) is missing", remedy)
        return value

    def read_number(self, key: str, role: str) -> float:
        """The finite number at a key."""
        return self.parse_number(self.get(key), role)

    def parse_number(self, value: Any, role: str) -> float:
        """A number, or the text of one."""
        try:
            number = float("nan" if isinstance(value, bool) else value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if number - number != 0:  # neither NaN nor infinite
            raise self.error(f"the {role} is {value!r}"[:120], f"a {role} is a finite number")
        return number

    def error(self, problem: str, remedy: MessageText) -> InputError:
        """An error at this record."""
        name, line = self.origin
        return InputError(problem, source=name, line=line, remedy=remedy)

    @property
    def origin(self) -> tuple[str, int | None]:
        """File and line, or file and element."""
        place = self.source.name if self.element is None else f"{self.source.name}, element {self.element}"
        return place, self.line


def find_value(fields: Any, key: str) -> Any:
    """The value at a key, or at a path of keys and positions joined by dots; None where there is none.

    >>> find_value({"a.b": 1, "judge": ["gpt", {"turn": 2}]}, "a.b"), find_value({"judge": ["x"]}, "judge.0")
    (1, 'x')
    """
    if isinstance(fields, Mapping) and key in fields:
        return fields[key]
    if isinstance(fields, list) and key.isdecimal():
        return fields[int(key)] if int(key) < len(fields) else None
    # a key may contain dots itself: the longest beginning that is a key is tried first
    ends = [at for at, mark in enumerate(key) if mark == "."]
    for end in reversed(ends):
        inner = find_value(fields, key[:end]) if end else None
        if inner is not None and (value := find_value(inner, key[end + 1 :])) is not None:
            return value
    return None


def to_id(value: Any) -> Id | None:
    """A value as an id: text and whole numbers as they are, conversations and other nested values as JSON;
    None for nothing.

    >>> to_id("a"), to_id(3), to_id([{"role": "user"}]), to_id(""), to_id(float("nan"))
    ('a', 3, '[{"role": "user"}]', None, None)
    """
    if isinstance(value, str):
        return value or None
    if type(value) is int:
        return value
    if value is None or value != value:  # NaN stands for a missing value
        return None
    return json.dumps(value, ensure_ascii=False, default=str)


def iterate_records(source: Source) -> Iterator[Record]:
    """All records of a file."""
    if source.raw[:4] == _PARQUET:
        number = 0
        for batch in open_parquet(source).iter_batches(1024, use_threads=False):
            for fields in batch.to_pylist():
                number += 1
                yield Record(source, None, number, fields)
        return
    start = source.text[:1_000_000].tobytes().lstrip()
    if start[:1] == b"[" or (start[:1] == b"{" and not _is_document(start)):
        array = start[:1] == b"["
        texts = ArrayElements(source) if array else ObjectLines(source)
        quick = require_module("msgspec").json.Decoder() if is_installed("msgspec") else None
        for number, text in texts.iterate():
            try:
                fields = quick.decode(text) if quick is not None else None
            except ValueError:  # the decoder of the standard library says why
                fields = None
            if not isinstance(fields, dict):
                fields = texts.decode(number, text)
            yield Record(source, None if array else number, number if array else None, fields)
    elif start[:1] == b"{":
        try:
            document = json.loads(source.data, parse_constant=float)
        except (ValueError, RecursionError) as error:
            remedy = "write one JSON document, or one per line"
            raise source.error(f"this is not JSON: {error}", None, remedy) from None
        refuse_surrogates_in(document, source.data, lambda text, remedy: source.error(text, None, remedy))
        yield Record(source, None, None, document)
    else:
        table = Csv().read_table(source, None, None, frozenset())
        for row, line in enumerate(table.lines):
            yield Record(source, line, None, {name: cells[row] for name, cells in table.columns.items()})


def _is_document(start: bytes) -> bool:
    """Whether an object extends over several lines, so that it is the whole file."""
    first = start.partition(b"\n")[0]
    if len(first) == len(start):
        return False
    try:
        return not isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return True


# -- detection ---------------------------------------------------------------------------------------------


class FirstRecord(NamedTuple):
    """The first record of a file, perhaps cut, and what contains it; of Parquet, a record that it might hold."""

    fields: Mapping[str, Any]
    container: Container


def find_first_record(source: Source, head: bytes) -> FirstRecord | None:
    """The first record as far as the beginning of the file holds it; None if there are no records."""
    if source.raw[:4] == _PARQUET:
        if not is_installed("pyarrow"):
            return None
        try:
            schema = open_parquet(source).schema_arrow
            return FirstRecord({field.name: _make_example(field.type) for field in schema}, "table")
        except (InputError, ValueError):  # the reader says why
            return None
    text = head.lstrip()
    if text[:1] in (b"{", b"["):
        fields = _decode_beginning(text)
        return FirstRecord(fields, "json") if isinstance(fields, dict) else None
    if not text or not _DELIMITER.search(text.partition(b"\n")[0]):
        return None
    # the header and the first row; a row with quotes may extend over lines
    lines, end = text.split(b"\n"), 2
    while end < len(lines) and b"\n".join(lines[:end]).count(b'"') % 2:
        end += 1
    beginning = Source(source.name, b"\n".join(lines[:end]))
    try:
        table = Csv().read_table(beginning, None, None, frozenset())
    except InputError:
        return None
    return FirstRecord({name: cells[0] for name, cells in table.columns.items()}, "table")


def _make_example(kind: Any) -> Any:
    """A value of an Arrow type: no column is read, because it may hold conversations."""
    types = require_module("pyarrow").types
    if types.is_struct(kind):
        return {field.name: _make_example(field.type) for field in kind}
    if types.is_list(kind) or types.is_large_list(kind):
        return [_make_example(kind.value_type)]
    if types.is_integer(kind):
        return 1
    return 0.5 if types.is_floating(kind) or types.is_decimal(kind) else "text"


def _decode_beginning(text: bytes) -> Any:
    """The first object of a JSON text; if the text ends within it, as much of it as is complete."""
    at = text.find(b"{")
    if at < 0 or text[:at].strip() not in (b"", b"["):
        return None
    try:
        return json.JSONDecoder(parse_constant=float).raw_decode(text[at:].decode())[0]
    except (ValueError, RecursionError):
        pass
    closers: list[bytes] = []
    cut, needed = 0, b""
    for token in _TOKEN.finditer(text, at):
        mark = token[0]
        if mark in (b"{", b"["):
            closers.append(b"}" if mark == b"{" else b"]")
        elif mark in (b"}", b"]"):
            if not closers or closers.pop() != mark:
                return None
        elif mark == b",":
            cut, needed = token.start(), b"".join(reversed(closers))
    try:
        return json.loads(text[at:cut] + needed, parse_constant=float)
    except (ValueError, RecursionError):
        return None
