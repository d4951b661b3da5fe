"""The objects of a JSON file as columns. Fields that no role can need are checked but not kept."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from podium.core.errors import InputError
from podium.core.optional import is_installed, require_module
from podium.data.column_roles import normalize_name
from podium.data.ignored_columns import MEANINGFUL_WORDS
from podium.formats.text_ids import refuse_surrogates_in
from podium.kernels.json_elements import find_element_ends
from podium.storage.files import Source

__all__ = ["ArrayElements", "JsonColumns", "ObjectLines"]

_HOLDS = 'write {"query": ..., "expert": ..., ...}'
_BLANKS = re.compile(r"[ \t\r\n]*")
_SPAN = 1 << 22  # bytes of an array that are split at once
_BATCH = 4096  # rows between two moves of cells to their columns
_MOST_FIELDS = 1000  # a decoder for more costs more than it saves

Decode = Callable[[bytes], Any]


class ObjectTexts(Protocol):
    """The numbered texts of a file, each of one object, and how a single one is decoded completely."""

    def iterate(self) -> Iterator[tuple[int, bytes]]: ...

    def decode(self, number: int, text: bytes) -> dict[str, Any]: ...


class ObjectLines:
    """One object per line; numbers are lines."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def iterate(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines that are not blank."""
        first = 1
        for block in self._source.iterate_blocks():
            if first == 1 and b"\n" not in block and b"\r" in block:  # perhaps classic Mac OS line endings
                yield from self._source.iterate_lines()
                return
            lines = block.split(b"\n")
            for number, text in enumerate(lines, first):
                if text and not text.isspace():
                    yield number, text
            first += len(lines) - 1

    def decode(self, number: int, text: bytes) -> dict[str, Any]:
        """The object of one line."""
        source = self._source

        def line_error(problem: str, remedy: str) -> InputError:
            return source.error(problem, number, remedy)

        try:
            record = json.loads(text, parse_constant=float)
        except (ValueError, RecursionError) as error:
            _ = source.view  # a file that is not text gets the error that says so
            raise line_error(f"this is not JSON: {error}", "write one JSON object per line") from None
        return _check_object(record, text, line_error)


class ArrayElements:
    """The elements of one array; numbers are those of the elements, from 1."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._end = 0  # of the element that was read last

    def iterate(self) -> Iterator[tuple[int, bytes]]:
        """Numbered elements, with the whitespace around them."""
        source, text, number = self._source, self._source.text, 0
        begin = int((text[:_SPAN] == ord("[")).argmax()) + 1
        more = True
        while more:
            first = begin
            for end in find_element_ends(text, begin, _SPAN).tolist():
                number += 1
                self._end = end
                yield number, text[begin:end].tobytes()
                begin = end + 1
            source.release_pages(first, begin)
            more = self._show_rest(end, 1) == ","
        if self._show_rest(end, 1) != "]":
            shown = repr(self._show_rest(end)) if end < len(text) else "the end of the file"
            remedy = "elements are followed by a comma, the last one by ]"
            raise self._build_error(number, f"{shown} follows it", remedy)
        if not text[end + 1 :].tobytes().isspace() and end + 1 < len(text):
            rest = text[end + 1 :].tobytes().decode(errors="replace").lstrip(" \t\r\n")
            remedy = "a file holds one array, or one object per line"
            raise self._build_error(number, f"{rest[:20]!r} follows the array", remedy)

    def decode(self, number: int, text: bytes) -> dict[str, Any]:
        """The object of one element."""

        def element_error(problem: str, remedy: str) -> InputError:
            return self._build_error(number, problem, remedy)

        if number == 1 and not text.strip() and self._show_rest(self._end, 1) == "]":
            raise self._source.error("the array is empty", None, _HOLDS)
        decoder = json.JSONDecoder(parse_constant=float)
        try:
            whole = text.decode()
            record, end = decoder.raw_decode(whole, _skip_blanks(whole, 0))
        except (ValueError, RecursionError) as reason:
            _ = self._source.view  # a file that is not text gets the error that says so
            remedy = "write an array of objects, or one object per line"
            raise element_error(f"this is not JSON: {reason}", remedy) from None
        end = _skip_blanks(whole, end)
        if end < len(whole):
            shown = (whole[end:] + self._show_rest(self._end))[:20]
            raise element_error(
                f"{shown!r} follows it", "elements are followed by a comma, the last one by ]"
            )
        return _check_object(record, text, element_error)

    def _show_rest(self, at: int, size: int = 20) -> str:
        """A few characters of the text."""
        return self._source.text[at : at + 4 * size].tobytes().decode(errors="replace")[:size]

    def _build_error(self, number: int, problem: str, remedy: str) -> InputError:
        return InputError(problem, source=f"{self._source.name}, element {number}", remedy=remedy)


class JsonColumns(Mapping[str, Sequence[Any]]):
    """The fields of all objects by name, in the order in which the file names them; None where one is absent.

    Text and nested values are kept only under names that may have a role; the others, such as conversations, are
    decoded from the file when they are first read.
    """

    def __init__(self, texts: ObjectTexts) -> None:
        self._texts = texts
        self._cells: dict[str, list[Any] | None] = {}  # None: not kept
        self.numbers: list[int] = []
        self.first: dict[str, Any] = {}  # the first object
        # every object is decoded once: by a decoder of the names so far, or completely where that fails
        rows: list[tuple[Any, ...]] = []
        failures = _list_failures()
        decode, gather = self._make_decoder()
        for number, text in self._texts.iterate():
            try:
                if not text.isascii():
                    text.decode()  # fields that are skipped must be UTF-8, too
                rows.append(gather(decode(text)))
            except failures:
                record = self._texts.decode(number, text)
                if new := [name for name in record if name not in self._cells]:
                    self._move_cells(rows)
                    self.first = self.first if self.numbers else record
                    for name in new:
                        light = not isinstance(record[name], str | list | dict)
                        kept = light or normalize_name(name) in MEANINGFUL_WORDS
                        self._cells[name] = [None] * len(self.numbers) if kept else None
                    decode, gather = self._make_decoder()
                rows.append(tuple(record.get(name) for name in self._columns_with_roles))
            self.numbers.append(number)
            if len(rows) == _BATCH:
                self._move_cells(rows)
        self._move_cells(rows)

    def __getitem__(self, name: str) -> Sequence[Any]:
        cells = self._cells[name]
        if cells is None:
            cells = []
            decode, failures = _build_decoder({name: True}, only_these=False), _list_failures()
            for number, text in self._texts.iterate():
                try:
                    cells.append(decode(text).f0)
                except failures:
                    cells.append(self._texts.decode(number, text).get(name))
            self._cells[name] = cells
        return cells

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def _columns_with_roles(self) -> dict[str, list[Any]]:
        return {name: cells for name, cells in self._cells.items() if cells is not None}

    def _move_cells(self, rows: list[tuple[Any, ...]]) -> None:
        """Append rows to the columns."""
        for cells, values in zip(self._columns_with_roles.values(), zip(*rows, strict=True), strict=False):
            cells.extend(values)
        rows.clear()

    def _make_decoder(self) -> tuple[Decode, Callable[[Any], tuple[Any, ...]]]:
        """A decoder for objects with no other names, and a function that takes the kept cells of its result."""
        kept = {name: cells is not None for name, cells in self._cells.items()}
        decode = _build_decoder(kept, only_these=True)
        fields = [f"f{k}" for k, keep in enumerate(kept.values()) if keep]
        if len(fields) > 1:
            return decode, operator.attrgetter(*fields)
        return decode, lambda row: tuple(getattr(row, field) for field in fields)


class _NotDecodable(Exception):
    """A text needs the decoder of the standard library."""


def _refuse_all(_: bytes) -> Any:
    raise _NotDecodable


def _load_fast_decoder() -> Any:
    """msgspec, which is slow to import; None where it is not installed: then decoding takes ten times as long."""
    return require_module("msgspec") if is_installed("msgspec") else None


def _list_failures() -> tuple[type[Exception], ...]:
    """What a fast decoder raises for a text that it cannot decode."""
    library = _load_fast_decoder()
    more = () if library is None else (library.DecodeError,)
    return (_NotDecodable, ValueError, RecursionError, *more)


def _build_decoder(kept: Mapping[str, bool], *, only_these: bool) -> Decode:
    """A decoder of objects to attributes f0, f1, ..., of which some are not kept; refuses or ignores other names."""
    library = _load_fast_decoder()
    if library is None or len(kept) > _MOST_FIELDS:
        return _refuse_all
    raw = library.Raw  # the bytes of a value, skipped but not decoded
    fields = [(f"f{k}", Any, None) if keep else (f"f{k}", raw, raw()) for k, keep in enumerate(kept.values())]
    names = {f"f{k}": name for k, name in enumerate(kept)}
    try:
        row = library.defstruct("Row", fields, rename=names, forbid_unknown_fields=only_these, gc=False)
    except ValueError:  # quotes, backslashes and control characters in names
        return _refuse_all
    decode: Decode = library.json.Decoder(row).decode
    return decode


def _check_object(record: Any, text: bytes, error: Callable[[str, str], InputError]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise error(f"a {type(record).__name__} instead of an object", _HOLDS)
    refuse_surrogates_in(record, text, error)
    return record


def _skip_blanks(text: str, at: int) -> int:
    """Position of the next character that is not whitespace."""
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()
