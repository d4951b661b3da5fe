"""Tables with roles for their columns as the readers expect them: one row per judgement, known column names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.core.errors import InputError
from podium.studio.import_tables import REVERSED, ROLES, RawTable, is_number


@dataclass(frozen=True)
class NormalizedTable:
    """A table whose columns have the names that the reader knows, as CSV, with its reading options."""

    content: bytes
    options: dict[str, Any]
    lines: list[int]  # of the rows, in the file
    skipped: int = 0  # rows without a value in the column that every row needs
    needed: str = ""  # its role


def normalize_table(
    table: RawTable, roles: Mapping[str, str], use: str, missing: Iterable[str]
) -> NormalizedTable:
    """The table as the reader of CSV expects it."""
    by_role: dict[str, list[str]] = {}
    for name in table.names:
        if reader := ROLES.get(roles.get(name, "ignore"), ""):
            by_role.setdefault(reader, []).append(name)
    marks = {*missing, ""}
    at = {name: k for k, name in enumerate(table.names)}
    kind = "auto"
    if len(by_role.get("item", [])) > 1:
        head, rows = _spread_places(table, by_role, at, marks)
    elif len(values := by_role.get("rank", []) or by_role.get("score", [])) > 1:
        head, rows = _spread_items(table, by_role, at, values, marks)
    elif "winner" in by_role and not {"loser", "item_a"} & by_role.keys() and use == "data":
        head, rows = _spread_choices(table, by_role, at, marks)
    else:
        head = [reader for reader in by_role if reader not in ("feature", "title", "text", "url")]
        places = [at[by_role[reader][0]] for reader in head]
        rows = [(line, [row[k] for k in places]) for line, row in zip(table.lines, table.rows, strict=True)]
        if use == "labels":
            kind = "labels"
            head, rows = _fill_grades(head, rows, marks)
        if use == "data" and "grade" in head and by_role["grade"][0] in roles and "item" in head:
            # an empty grade is no reason to drop the row of an expert
            kind = "lists" if "expert" in head or "rank" in head or "score" in head else "auto"
    if REVERSED in roles.values() and "grade" in head:
        rows = _reverse_grades(rows, head.index("grade"), marks)
    needed = next((r for r in ("winner", "rank", "score", "grade") if len(by_role.get(r, ())) == 1), "")
    skipped = sum(cell in marks for cell in table.column(by_role[needed][0])) if needed else 0
    options = {"format": "csv", "kind": kind, "delimiter": ","}
    lines = [line for line, _ in rows]
    return NormalizedTable(_format_rows(head, rows), options, lines, skipped, needed)


NumberedRows = list[tuple[int, list[str]]]


def _spread_places(
    table: RawTable, by_role: Mapping[str, Sequence[str]], at: Mapping[str, int], marks: set[str]
) -> tuple[list[str], NumberedRows]:
    """One row per place: the columns are places in their order, their cells the items."""
    rows: NumberedRows = []
    for number, (line, row) in enumerate(zip(table.lines, table.rows, strict=True), 1):
        query = row[at[by_role["query"][0]]] if "query" in by_role else "all"
        expert = row[at[by_role["expert"][0]]] if "expert" in by_role else f"row {number}"
        cells = [row[at[name]] for name in by_role["item"]]
        items = [re.sub(r"^(-?\d+)\.0$", r"\1", cell) for cell in cells]
        rows += [(line, [query, expert, i, str(k)]) for k, i in enumerate(items, 1) if i not in marks]
    return ["query", "expert", "item", "rank"], rows


def _spread_items(
    table: RawTable,
    by_role: Mapping[str, Sequence[str]],
    at: Mapping[str, int],
    names: Sequence[str],
    marks: set[str],
) -> tuple[list[str], NumberedRows]:
    """One row per item: the columns are items, their cells the ranks or scores of the row's expert."""
    rows: NumberedRows = []
    for number, (line, row) in enumerate(zip(table.lines, table.rows, strict=True), 1):
        query = row[at[by_role["query"][0]]] if "query" in by_role else "all"
        expert = row[at[by_role["expert"][0]]] if "expert" in by_role else f"row {number}"
        rows += [(line, [query, expert, n, row[at[n]]]) for n in names if row[at[n]] not in marks]
    return ["query", "expert", "item", "rank" if "rank" in by_role else "score"], rows


def _spread_choices(
    table: RawTable, by_role: Mapping[str, Sequence[str]], at: Mapping[str, int], marks: set[str]
) -> tuple[list[str], NumberedRows]:
    """One vote per row: the two answers that occur are the items of every query."""
    answers = [row[at[by_role["winner"][0]]] for row in table.rows]
    values = sorted({a for a in answers if a not in marks})
    if len(values) != 2:
        count = "one answer" if len(values) == 1 else f"{len(values):,} different answers"
        raise InputError(
            f"the column {by_role['winner'][0]!r} has {count}, so the two items of a vote are not known",
            remedy="choose the columns of both items, or of the loser",
        )
    kept = [reader for reader in ("query", "expert", "weight", "seconds") if reader in by_role]
    rows = [
        (line, [*(row[at[by_role[r][0]]] for r in kept), answer, values[values[0] == answer]])
        for line, row, answer in zip(table.lines, table.rows, answers, strict=True)
        if answer not in marks
    ]
    return [*kept, "winner", "loser"], rows


def _fill_grades(head: list[str], rows: NumberedRows, marks: set[str]) -> tuple[list[str], NumberedRows]:
    """Labels without grades: the named item is the right one, grade 1; the other of two answers is wrong, 0."""
    others: dict[str, str] = {}
    if "winner" in head and "item" not in head:
        at = head.index("winner")
        head = ["item" if reader == "winner" else reader for reader in head]
        answers = sorted({row[at] for _, row in rows} - marks)
        if len(answers) == 2 and "grade" not in head:
            others = dict(zip(answers, reversed(answers), strict=True))
    if "grade" in head:
        return head, rows
    filled: NumberedRows = []
    for line, row in rows:
        filled.append((line, [*row, "1"]))
        if others and row[at] in others:
            filled.append((line, [*row[:at], others[row[at]], *row[at + 1 :], "0"]))
    return [*head, "grade"], filled


def _reverse_grades(rows: NumberedRows, at: int, marks: set[str]) -> NumberedRows:
    """Grades of which 1 is best, as grades of which the largest is best."""
    values = [float(row[at]) for _, row in rows if row[at] not in marks and is_number(row[at])]
    top = max(values, default=0.0) + 1.0
    return [
        (line, [*row[:at], f"{top - float(row[at]):g}" if is_number(row[at]) else row[at], *row[at + 1 :]])
        for line, row in rows
    ]


def _format_rows(head: Sequence[str], rows: NumberedRows) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(row for _, row in rows)
    return out.getvalue().encode()


def select_features(table: RawTable, roles: Mapping[str, str]) -> bytes | None:
    """The columns of features beside query and item, as CSV; None if there are none."""
    names = [n for n in table.names if roles.get(n) == "feature"]
    keys = {ROLES[r]: n for n, r in roles.items() if r in ("query", "item")}
    if not names or "item" not in keys:
        return None
    places = [table.names.index(n) for n in (*keys.values(), *names)]
    rows = [(line, [row[k] for k in places]) for line, row in zip(table.lines, table.rows, strict=True)]
    seen: dict[tuple[str, ...], tuple[int, list[str]]] = {}
    for line, row in rows:
        seen.setdefault(tuple(row[: len(keys)]), (line, row))
    return _format_rows([*keys, *names], list(seen.values()))
