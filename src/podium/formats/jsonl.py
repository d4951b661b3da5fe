"""JSON lines, or one JSON array: each object is a list, vote, rating or label. Ids keep their type."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from podium.core.errors import InputError, Option, ParameterError
from podium.data.column_roles import WORDS, normalize_name
from podium.formats.base import Content
from podium.formats.file_table import FileTable
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import WritableKind, build_columns, iterate_lists, resolve_kind
from podium.storage.files import Source

__all__ = ["JsonLines", "refuse_surrogates_in"]

_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_HOLDS = 'write {"query": ..., "expert": ..., ...}'


class JsonLines(TableFormat):
    """Objects, one per line or in one array: `{"query", "expert", "items": [...], "scores": [...]}` is one
    list; any other object is one table row, such as a vote `{"model_a", "model_b", "winner", "judge"}`.
    """

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson", ".json")
    summary = "JSON lines, or an array of objects: lists, votes (arena style), ratings, labels"

    def sniff(self, head: bytes) -> float:
        if re.match(rb"\s*\[\s*[{\]]", head):
            return 1.0
        first = next((line for line in head.split(b"\n") if line.strip()), b"")
        try:
            return 1.0 if first.lstrip().startswith(b"{") and isinstance(json.loads(first), dict) else 0.0
        except (ValueError, RecursionError):
            return 0.0

    def read_table(
        self, source: Source, columns: Sequence[str] | None, delimiter: str | None, missing: frozenset[str]
    ) -> FileTable:
        if columns is not None or delimiter is not None:
            raise ParameterError(
                Option("columns"),
                " and ",
                Option("delimiter"),
                " apply to csv; jsonl objects name their own columns",
            )
        array = source.view[:1_000_000].tobytes().lstrip()[:1] == b"["
        rows, lines = [], []
        for line, row in _iterate_elements(source) if array else _iterate_objects(source):
            rows.append(row)
            lines.append(line)
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = {name: [row.get(name) for row in rows] for name in names}
        table = FileTable(source, cells, lines, missing, elements=array)
        return (
            _unfold_lists(table)
            if any(isinstance(row.get(name), list) for row in rows[:1] for name in row)
            else table
        )

    def write(self, content: Content, *, kind: WritableKind | str = "auto") -> Iterator[bytes]:
        kind = resolve_kind(content, kind, self)
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        return (encode(row).encode("utf-8", "strict") + b"\n" for row in _iterate_rows(content, kind))


def _iterate_objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered lines and their objects."""
    for line, text in source.iterate_lines():
        try:
            record = json.loads(text, parse_constant=float)
        except (ValueError, RecursionError) as error:
            raise source.error(f"this is not JSON: {error}", line, "write one JSON object per line") from None
        if not isinstance(record, dict):
            raise source.error(f"a {type(record).__name__} instead of an object", line, _HOLDS)
        refuse_surrogates_in(record, text, functools.partial(_line_error, source, line))
        yield line, record


def _iterate_elements(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered elements of an array, one at a time."""
    text, decoder = source.data.decode(), json.JSONDecoder(parse_constant=float)
    at, element, more = _skip_blanks(text, text.index("[") + 1), 0, True

    def element_error(problem: str, remedy: str) -> InputError:
        return InputError(problem, source=f"{source.name}, element {element}", remedy=remedy)

    if text[at : at + 1] == "]":
        raise source.error("the array is empty", None, _HOLDS)
    while more:
        element += 1
        begin = at
        try:
            record, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as reason:
            raise element_error(
                f"this is not JSON: {reason}", "write an array of objects, or one object per line"
            ) from None
        if not isinstance(record, dict):
            raise element_error(f"a {type(record).__name__} instead of an object", _HOLDS)
        refuse_surrogates_in(record, text[begin:at].encode(), element_error)
        yield element, record
        at = _skip_blanks(text, at)
        more = text[at : at + 1] == ","
        if not more and text[at : at + 1] != "]":
            shown = repr(text[at : at + 20]) if at < len(text) else "the end of the file"
            raise element_error(f"{shown} follows it", "elements are followed by a comma, the last one by ]")
        at = _skip_blanks(text, at + 1)
    if at < len(text):
        raise element_error(
            f"{text[at : at + 20]!r} follows the array", "a file holds one array, or one object per line"
        )


def _line_error(source: Source, line: int, problem: str, remedy: str) -> InputError:
    return source.error(problem, line, remedy)


def refuse_surrogates_in(value: Any, text: bytes, error: Callable[[str, str], InputError]) -> None:
    """Reject JSON with an unpaired surrogate, such as "\\ud800", which is not a character."""
    if _ESCAPE.search(text) is None:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as found:
        half = found.object[found.start]
        problem = f"the text contains {half!r}, an unpaired surrogate, which is not a character"
        raise error(problem, "write the character itself, or both halves") from None


def _skip_blanks(text: str, at: int) -> int:
    """Position of the next character that is not whitespace."""
    blanks = _BLANK.match(text, at)
    return at if blanks is None else blanks.end()


def _unfold_lists(table: FileTable) -> FileTable:
    """Objects with complete lists -> one row per item; other cells are repeated."""
    list_columns = {
        role: n
        for role in ("items", "ranks", "scores")
        for n in table.columns
        if normalize_name(n) in WORDS[role]
    }
    if "items" not in list_columns:
        return table
    parallel = {role[:-1]: list_columns[role] for role in ("ranks", "scores") if role in list_columns}
    made = ["item", *(parallel or ["rank"])]
    others = [name for name in table.columns if name not in list_columns.values()]
    if clash := [name for name in others if name in made]:
        problem = f"{list_columns['items']!r} has complete lists, but {clash[0]!r} has single values"
        raise table.source.error(problem, None, "give complete lists, or one object per item")
    out: dict[str, list[Any]] = {name: [] for name in (*made, *others)}
    lines: list[int] = []
    for row, items in enumerate(table.columns[list_columns["items"]]):
        if not isinstance(items, list):
            raise table.error(row, f"the items are {items!r}"[:120], "give a list of items, best first")
        out["item"] += items
        lines += [table.lines[row]] * len(items)
        for name in others:
            out[name] += [table.columns[name][row]] * len(items)
        for role, name in parallel.items():
            out[role] += _check_list_values(table, row, name, len(items))
        if not parallel:
            out["rank"] += range(1, len(items) + 1)
    return replace(table, columns=out, lines=lines)


def _check_list_values(table: FileTable, row: int, name: str, count: int) -> list[Any]:
    """The ranks or scores of one list; null means that it has none."""
    values = table.columns[name][row]
    values = [None] * count if values is None else values
    if not isinstance(values, list) or len(values) != count:
        raise table.error(row, f"{name} does not match the {count} items", "give one value per item")
    return values


def _iterate_rows(content: Content, kind: str) -> Iterator[dict[str, Any]]:
    """Complete lists, or single votes or labels."""
    if kind == "lists":
        assert content.preferences is not None
        scored = content.preferences.lists.score is not None
        for query, expert, items, ranks, scores in iterate_lists(content.preferences):
            row = {"query": query, "expert": expert, "items": items, "ranks": ranks}
            yield {**row, "scores": scores} if scored else row
        return
    columns = build_columns(content, kind, lambda ids, *_: ids.tolist())
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))
