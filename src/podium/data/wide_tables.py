"""Wide tables: one row per item and one column per expert; a missing cell means that the expert did not
judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from podium.core.errors import InputError
from podium.data.column_roles import assign_roles

__all__ = ["CellValues", "WideColumns", "find_wide_columns", "looks_like_ranks"]

CellValues = Literal["scores", "ranks"]
_ROLES_OF_LONG_TABLES = ("expert", "rank", "score", "grade", "winner", "loser", "item_a", "item_b")


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
