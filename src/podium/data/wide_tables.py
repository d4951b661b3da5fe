"""Wide tables: one row per item and one column per expert; a missing cell means that the expert did not
judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError
from podium.core.settings import Duplicates, Unlisted
from podium.data.building.validate import check_choice, check_numbers, row_origin
from podium.data.column_roles import assign_roles
from podium.data.ids import CodedColumn, Ids
from podium.data.preferences import Preferences

__all__ = [
    "LIST_CELL_ROLES",
    "CellValues",
    "WideColumns",
    "build_from_list_cells",
    "build_wide",
    "find_wide_columns",
    "looks_like_ranks",
]

CellValues = Literal["scores", "ranks"]
LIST_CELL_ROLES = ("items", "ranks", "scores")
_ROLES_OF_LONG_TABLES = (
    *LIST_CELL_ROLES,
    "expert",
    "rank",
    "score",
    "grade",
    "winner",
    "loser",
    "item_a",
    "item_b",
)


class WideColumns(NamedTuple):
    """The columns of a wide table."""

    query: str | None
    item: str
    experts: tuple[str, ...]


def find_wide_columns(names: Sequence[str], numeric: Mapping[str, bool]) -> WideColumns | None:
    """The columns of a wide table, or None if the names or cells are those of another one.

    The item is the column with such a name, else the first one if its cells are not numbers; two or more
    columns of numbers are the experts.

    >>> find_wide_columns(["model", "mmlu", "gsm8k"], {"model": False, "mmlu": True, "gsm8k": True})
    WideColumns(query=None, item='model', experts=('mmlu', 'gsm8k'))
    """
    try:
        roles = assign_roles(names, {}, "")
    except InputError:  # two columns may have one role
        return None
    if any(role in roles for role in _ROLES_OF_LONG_TABLES):
        return None
    query = roles.get("query")
    first = next((name for name in names if name != query), None)
    item = roles.get("item", first if first is not None and not numeric[first] else None)
    experts = tuple(name for name in names if name not in (query, item))
    if item is None or len(experts) < 2 or not all(numeric[name] for name in experts):
        return None
    return WideColumns(query, item, experts)


def looks_like_ranks(columns: Sequence[Sequence[Any]]) -> bool:
    """Whether the values of every column are 1, 2, ... without repeats, as ranks are and scores hardly ever."""
    return all(sorted(values) == list(range(1, len(values) + 1)) for values in columns) and any(
        map(len, columns)
    )


def build_wide(
    query: CodedColumn,
    item: CodedColumn,
    columns: Mapping[str, npt.NDArray[Any]],
    values: CellValues | None,
    duplicates: Duplicates = "error",
    unlisted: Unlisted = "unknown",
) -> Preferences:
    """The lists of a wide table; NaN and None are no judgements."""
    check_choice("values", values, (None, "scores", "ranks"))  # type: ignore[arg-type]
    numbers = []
    for name, cells in columns.items():
        there = np.array([v is not None and v == v for v in cells.tolist()], np.bool_)
        column = np.full(len(cells), np.nan)
        rows = np.flatnonzero(there)
        column[rows] = check_numbers(cells[rows], f"value of {name}")
        numbers.append(column)
    table = np.array(numbers).reshape(len(columns), -1)
    row, code = np.nonzero(~np.isnan(table).T)
    value = table[code, row]
    lists: dict[tuple[int, int], list[float]] = {}
    for q, e, v in zip(query.codes[row].tolist(), code.tolist(), value.tolist(), strict=True):
        lists.setdefault((q, e), []).append(v)
    if values is None and looks_like_ranks(list(lists.values())):
        remedy = "give values='ranks' or values='scores'"
        raise InputError("the values of every column are 1, 2, ...: ranks or scores?", remedy=remedy)
    return Preferences.from_rows(
        CodedColumn(query.codes[row], query.ids),
        CodedColumn(code, Ids(list(columns))),
        CodedColumn(item.codes[row], item.ids),
        rank=value if values == "ranks" else None,
        score=None if values == "ranks" else value,
        duplicates=duplicates,
        unlisted=unlisted,
        origin=lambda k: row_origin(int(row[k])),
    )


def build_from_list_cells(
    query: CodedColumn,
    expert: CodedColumn,
    cells: Mapping[str, Sequence[Any]],
    duplicates: Duplicates = "error",
    unlisted: Unlisted = "unknown",
) -> Preferences:
    """Lists from rows whose cells are complete lists: items, best first, and their ranks or scores."""
    lengths = []
    for row, items in enumerate(cells["items"]):
        if not isinstance(items, list | tuple | np.ndarray):
            source = row_origin(row)[0]
            raise InputError(
                f"the items are {items!r}"[:120], source=source, remedy="give a list of items, best first"
            )
        lengths.append(len(items))
        for role, lists in cells.items():
            if lists[row] is None or len(lists[row]) != len(items):
                source = row_origin(row)[0]
                raise InputError(
                    f"{role} does not match the {len(items)} items", source=source, remedy="give one per item"
                )
    rows = np.repeat(np.arange(len(lengths)), lengths)
    flat = {role: [value for values in lists for value in values] for role, lists in cells.items()}
    places = [place for length in lengths for place in range(1, length + 1)]
    scores = flat.get("scores")
    return Preferences.from_rows(
        CodedColumn(query.codes[rows], query.ids),
        CodedColumn(expert.codes[rows], expert.ids),
        flat["items"],
        rank=flat.get("ranks", None if scores is not None else places),
        score=scores,
        duplicates=duplicates,
        unlisted=unlisted,
        origin=lambda k: row_origin(int(rows[k])),
    )
