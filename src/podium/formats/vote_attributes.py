"""Attributes of votes, read from the columns of a table on request.

A name such as `length` is resolved in this order: a pair of columns whose names consist of it and a word for a
side (`length_a` and `length_b`, `model_a_length` and `model_b_length`, `winner_length` and `loser_length`), one
column of that name, and then the same among the keys of nested objects, as in `conv_metadata` of arena files.
`length` and `markdown` also stand for the names that arena files use. `tstamp:month` (or :year, :day) is the
month of a date, `tstamp:seconds` its number of seconds since 1970.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from podium.core.errors import InputError, PodiumWarning
from podium.core.params import suggest_names
from podium.data.ids import CodedColumn, code_ids
from podium.data.vote_outcomes import VoteOutcomes
from podium.data.vote_table import AttributeColumn, SideColumns, VoteAttribute, VoteTable
from podium.formats.file_table import FileTable, parse_all_numbers
from podium.kernels.dispatch import F8
from podium.kernels.grouping import sum_by_group

__all__ = ["POSITION_NAMES", "build_vote_table", "list_attribute_names", "read_attributes"]

POSITION_NAMES = ("order", "position")  # of the covariate that is 1 for the item shown first
_SIDES = {
    "a": 0, "left": 0, "1": 0, "first": 0, "winner": 0, "chosen": 0,
    "b": 1, "right": 1, "2": 1, "second": 1, "loser": 1, "rejected": 1,
}  # fmt: skip
_ITEM_WORDS = {"model", "item", "doc", "answer", "response"}  # before a side: model_a_length
# names in arena files; the columns of an entry are added up
_ALIASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "length": (("sumassistanttokens",), ("tokens",), ("tokencount",), ("numtokens",), ("chars",), ("words",)),
    "markdown": (("headercount", "listcount", "boldcount"),),
}
_DATE_CHARACTERS = {"year": 4, "month": 7, "day": 10}  # of 2026-01-31
_NUMERIC = 0.5  # from this share of numbers on, a cell that is not a number is an error, not a category

Columns = Mapping[str, Sequence[Any]]


def read_attributes(table: FileTable, names: Sequence[str]) -> dict[str, VoteAttribute]:
    """The attributes of all rows; a missing cell is an error at its line.

    A name that ends in a question mark is read if there is such a column; a warning says what is wrong with it.
    """
    columns: Columns = table.columns
    nested: Columns | None = None
    attributes: dict[str, VoteAttribute] = {}
    for wanted in names:
        name = wanted.removesuffix("?")
        if name != wanted:  # read if it is there and complete
            try:
                attributes |= read_attributes(table, [name])
            except InputError as error:
                if not error.problem.startswith("there is no column"):
                    warnings.warn(f"{error}; the column is not used", PodiumWarning, stacklevel=2)
            continue
        column, _, unit = name.rpartition(":")
        if column in columns and unit in _DATE_CHARACTERS:
            dates = [_parse_date(table, column, row, cell) for row, cell in enumerate(table.columns[column])]
            beginnings = [date.date().isoformat()[: _DATE_CHARACTERS[unit]] for date in dates]
            attributes[name] = code_ids(beginnings, column)
            continue
        if unit == "seconds":
            attributes[name] = _read_seconds(table, column)
            continue
        parts = _find_columns(name, columns)
        if parts is None:
            nested = _flatten_objects(table) if nested is None else nested
            parts = _find_columns(name, nested)
        if parts is None:
            if name in POSITION_NAMES:
                continue  # made from the sides, not from a column
            known = [n for n in columns if "." not in n]
            raise InputError(
                f"there is no column {name!r}, nor a pair such as '{name}_a' and '{name}_b'",
                source=table.source.name,
                remedy=suggest_names(name, known),
            )
        holder = columns if all(c in columns for c in itertools.chain.from_iterable(parts)) else nested
        assert holder is not None
        attributes[name] = _read_parts(replace(table, columns=holder), name, parts)
    return attributes


def build_vote_table(
    items: tuple[CodedColumn, CodedColumn],
    outcomes: VoteOutcomes,
    query: CodedColumn,
    expert: CodedColumn,
    weight: F8 | None,
    attributes: dict[str, VoteAttribute],
    *,
    sides_known: bool,
) -> VoteTable:
    """The votes of a table, one per row: the two halves of a soft preference are one row again."""
    both, size = CodedColumn.concat(items, "item").with_sorted_ids(), len(items[0].codes)
    share = np.where(outcomes.tie, 0.5, np.where(outcomes.second, 0.0, 1.0)) * outcomes.share
    outcome = sum_by_group(outcomes.row, share, size)
    return VoteTable(
        both.ids, both.codes[:size], both.codes[size:], outcome, np.ones(size) if weight is None else weight,
        expert, query, attributes, sides_known,
    )  # fmt: skip


Parts = tuple[tuple[str, ...], ...]  # one tuple of columns to add up, or one per side


def _find_columns(name: str, columns: Columns) -> Parts | None:
    """The columns of an attribute: those of both sides, or of the vote."""
    wanted = re.sub(r"[\W_]+", "", name.lower())
    pairs: dict[str, dict[int, str]] = {}
    for column in columns:
        for base, side in _split_sides(column.rsplit(".", 1)[-1]):
            pairs.setdefault(base, {}).setdefault(side, column)
    complete = {base: (sides[0], sides[1]) for base, sides in pairs.items() if len(sides) == 2}
    if wanted in complete:
        return tuple((column,) for column in complete[wanted])
    for column in columns:
        if column == name or re.sub(r"[\W_]+", "", column.rsplit(".", 1)[-1].lower()) == wanted:
            return ((column,),)
    for bases in _ALIASES.get(wanted, ()):
        if all(base in complete for base in bases):
            return tuple(tuple(complete[base][side] for base in bases) for side in (0, 1))
    return None


def list_attribute_names(columns: Sequence[str], used: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The attributes that a table has for each side of a vote, and those of the vote itself.

    `used` are columns with another meaning, such as the items and the winner.

    >>> list_attribute_names(["model_a", "model_b", "winner", "length_a", "length_b", "language"],
    ...                      ["model_a", "model_b", "winner"])
    (['length'], ['language'])
    """
    free = [column for column in columns if column not in used]
    sides: dict[str, set[int]] = {}
    parts: dict[str, set[str]] = {}
    for column in free:
        for base, side in _split_sides(column):
            sides.setdefault(base, set()).add(side)
            parts.setdefault(base, set()).add(column)
    # model_a_length is read as modellength and as length: the shortest name of the same columns counts
    complete = sorted((base for base in sides if len(sides[base]) == 2), key=len)
    named: list[str] = []
    taken: set[str] = set()
    for base in complete:
        if not parts[base] & taken:
            named.append(base)
            taken |= parts[base]
    return named, [column for column in free if column not in taken]


def _split_sides(column: str) -> list[tuple[str, int]]:
    """The name of a column without its word for a side, and the side, for every way to read it."""
    words = [w for w in re.split(r"[\W_]+", column.lower()) if w]
    readings = []
    for at, word in enumerate(words):
        if word in _SIDES:
            before = words[:at]
            readings.append(("".join(before + words[at + 1 :]), _SIDES[word]))
            if before and before[-1] in _ITEM_WORDS:
                readings.append(("".join(before[:-1] + words[at + 1 :]), _SIDES[word]))
    return [(base, side) for base, side in readings if base]


def _flatten_objects(table: FileTable) -> Columns:
    """The keys of nested objects as columns `name.key`; an object of numbers below them counts as their sum."""
    found: dict[str, list[Any]] = {}
    first = getattr(table.columns, "first", {})  # of JSON, whose long texts are not decoded for this
    for name in table.columns:
        if name in first and not isinstance(first[name], dict):
            continue
        cells = table.columns[name]
        if not len(cells) or not isinstance(cells[0], dict):
            continue
        keys = dict.fromkeys(key for cell in cells if isinstance(cell, dict) for key in cell)
        for key in keys:
            values = [cell.get(key) if isinstance(cell, dict) else None for cell in cells]
            found[f"{name}.{key}"] = [
                _add_up(value) if isinstance(value, dict) else value for value in values
            ]
    return found


def _add_up(value: dict[str, Any]) -> Any:
    numbers = [v for v in value.values() if isinstance(v, int | float)]
    return sum(numbers) if len(numbers) == len(value) else None


def _read_parts(table: FileTable, name: str, parts: Parts) -> VoteAttribute:
    sides = [_add_columns(table, name, columns) for columns in parts]
    if len(sides) == 1:
        return sides[0]
    first, second = sides
    if isinstance(first, CodedColumn) != isinstance(second, CodedColumn):
        raise InputError(
            f"of {parts[0][0]!r} and {parts[1][0]!r}, one holds numbers and the other text",
            source=table.source.name,
            remedy="write both in the same way",
        )
    return SideColumns(first, second)


def _add_columns(table: FileTable, name: str, columns: tuple[str, ...]) -> AttributeColumn:
    read = [_read_column(table, column) for column in columns]
    if len(read) == 1:
        return read[0]
    total = np.zeros(len(table))
    for column, values in zip(columns, read, strict=True):
        if isinstance(values, CodedColumn):
            raise InputError(
                f"{name!r} adds up {', '.join(map(repr, columns))}, and {column!r} holds text",
                source=table.source.name,
                remedy="give numbers, or name one column",
            )
        total += values
    return total


def _read_column(table: FileTable, name: str) -> AttributeColumn:
    """Numbers, or categories where most cells are no numbers."""
    cells = table.columns[name]
    quick = parse_all_numbers(cells)
    if quick is not None:
        return quick
    for row, cell in enumerate(cells):
        if cell is None or cell == "" or cell != cell or table.is_missing(cell):
            remedy = "fill it in, or leave the row out of the file: a vote without it cannot be adjusted"
            raise table.error(row, f"the value in column {name!r} is missing", remedy)
    numbers = sum(_is_number(cell) for cell in cells)
    if numbers >= _NUMERIC * len(cells):
        row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
        raise table.error(
            row,
            f"the value in column {name!r} is {cells[row]!r}, and {numbers:,} of {len(cells):,} cells are numbers",
            "write a number, or give all cells names to use them as categories",
        )
    return code_ids([str(cell) for cell in cells], name)


def _read_seconds(table: FileTable, name: str) -> F8:
    """Seconds: numbers as they are, or of dates since 1970; a date without a zone is in UTC."""
    if name not in table.columns:
        known = [n for n in table.columns if "." not in n]
        raise InputError(
            f"there is no column {name!r}", source=table.source.name, remedy=suggest_names(name, known)
        )
    cells = table.columns[name]
    quick = parse_all_numbers(cells)
    if quick is not None:
        return quick
    dates = (_parse_date(table, name, row, cell) for row, cell in enumerate(cells))
    return np.array([(d if d.tzinfo else d.replace(tzinfo=UTC)).timestamp() for d in dates], np.float64)


def _parse_date(table: FileTable, name: str, row: int, cell: Any) -> datetime:
    try:
        if _is_number(cell):
            return datetime.fromtimestamp(float(cell), UTC)
        return datetime.fromisoformat(str(cell).strip())
    except (ValueError, OverflowError, OSError):
        remedy = "write 2026-01-31, with or without a time, or seconds since 1970"
        raise table.error(row, f"the date in column {name!r} is {cell!r}", remedy) from None


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool):
        return False
    try:
        return bool(np.isfinite(float(cell)))
    except (TypeError, ValueError):
        return False
