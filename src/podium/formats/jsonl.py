"""JSON lines, or one JSON array: each object is a list, vote, rating or label. Ids keep their type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from podium.core.errors import Option, ParameterError
from podium.data.column_roles import WORDS, normalize_name
from podium.data.ids import CodedColumn
from podium.formats.base import Content
from podium.formats.file_table import FileTable, SelectedColumns
from podium.formats.table_format import TableFormat
from podium.formats.table_writing import WritableKind, build_columns, iterate_lists, resolve_kind
from podium.storage.files import Source

__all__ = ["JsonLines"]

_LONG_LINE = 1 << 19  # bytes; such a line may have been cut, so that only its beginning is examined


class JsonLines(TableFormat):
    """Objects, one per line or in one array: `{"query", "expert", "items": [...], "scores": [...]}` is one
    list; any other object is one table row, such as a vote `{"model_a", "model_b", "winner", "judge"}`.
    """

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson", ".json")
    summary = "JSON lines, or an array of objects: lists, votes (arena style), ratings, labels"

    def sniff(self, head: bytes) -> float:
        # below the confidence of formats that have a signature, which may be JSON too
        if re.match(rb"\s*\[\s*[{\]]", head):
            return 0.85
        first = next((line for line in head.split(b"\n") if line.strip()), b"")
        if len(first) >= _LONG_LINE:
            return 0.85 if re.match(rb'\s*\{\s*"', first) else 0.0
        try:
            return 0.85 if first.lstrip().startswith(b"{") and isinstance(json.loads(first), dict) else 0.0
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
        from podium.formats.json_objects import ArrayElements, JsonColumns, ObjectLines

        array = source.text[:1_000_000].tobytes().lstrip()[:1] == b"["
        columns_read = JsonColumns(ArrayElements(source) if array else ObjectLines(source))
        table = FileTable(source, columns_read, columns_read.numbers, missing, elements=array)
        has_lists = any(isinstance(value, list) for value in columns_read.first.values())
        return _unfold_lists(table) if has_lists else table

    def write(self, content: Content, *, kind: WritableKind | str = "auto") -> Iterator[bytes]:
        kind = resolve_kind(content, kind, self)
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        return (encode(row).encode("utf-8", "strict") + b"\n" for row in _iterate_rows(content, kind))


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
    out: dict[str, list[Any]] = {name: [] for name in made}
    rows: list[int] = []
    for row, items in enumerate(table.columns[list_columns["items"]]):
        if not isinstance(items, list):
            raise table.error(row, f"the items are {items!r}"[:120], "give a list of items, best first")
        out["item"] += items
        rows += [row] * len(items)
        for role, name in parallel.items():
            values = table.columns[name][row]
            values = [None] * len(items) if values is None else values  # null: the list has none
            if not isinstance(values, list) or len(values) != len(items):
                problem = f"{name} does not match the {len(items)} items"
                raise table.error(row, problem, "give one value per item")
            out[role] += values
        if not parallel:
            out["rank"] += range(1, len(items) + 1)
    columns = SelectedColumns(table.columns, others, rows, out)
    return replace(table, columns=columns, lines=[table.lines[row] for row in rows])


def _iterate_rows(content: Content, kind: str) -> Iterator[dict[str, Any]]:
    """Complete lists, or single votes or labels."""
    if kind == "lists":
        assert content.preferences is not None
        scored = content.preferences.lists.score is not None
        for query, expert, items, ranks, scores in iterate_lists(content.preferences):
            row = {"query": query, "expert": expert, "items": items, "ranks": ranks}
            yield {**row, "scores": scores} if scored else row
        return
    columns = build_columns(content, kind)
    cells: list[list[Any]] = []
    for column in columns.values():
        if isinstance(column, CodedColumn):
            ids = column.ids.tolist()
            cells.append([ids[code] for code in column.codes.tolist()])
        else:
            cells.append(column.tolist())
    for values in zip(*cells, strict=True):
        yield dict(zip(columns, values, strict=True))
