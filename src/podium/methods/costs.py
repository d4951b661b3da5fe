"""Resources that a method needs for an input, estimated from the input's shape before anything is allocated.

A method that compares items with each other returns its `Cost` from `Aggregator._estimate_costs`. Inputs
beyond a limit are rejected with the estimate, the limit and an alternative. Only costs that grow faster than
the rows of the input count, and operations only for the most expensive query: no input is rejected for its
size alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.core.errors import InputError, MessageText, ParameterError
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import I8

__all__ = ["Cost", "check_costs", "check_table_size", "table_cost"]

MEMORY = 2.0  # gigabytes (10^9 bytes)
OPERATIONS = 1e11  # one or two minutes on one core
LARGEST_TABLE = 1 << 32  # bytes of features beyond which a table by expert is impractical
NO_PAIRS = "keep the top of the lists, or use a method that needs no pairs, such as rrf or mc2"
NO_TABLE = (
    "keep fewer items per query, or use a method that needs no table of pairs, such as bradley_terry or mc2"
)


class Cost(NamedTuple):
    """An estimate for one query, or for the whole input where `query` is None."""

    number: float  # how many of `what`
    what: str  # in the plural: "pairs of items"
    memory: float = 0.0  # bytes
    operations: float = 0.0
    query: int | None = None  # code of the query
    remedy: str = NO_PAIRS


def _read_limit(variable: str, default: float) -> float:
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise ParameterError(f"{variable} is {text!r}; give a number from 0, such as {default:g}")
    return value


def check_costs(name: str, queries: Sequence[Id], costs: Iterable[Cost]) -> None:
    """Reject costs above the limits; PODIUM_MEMORY (gigabytes) and PODIUM_OPERATIONS change these."""
    for cost in costs:
        memory = _read_limit("PODIUM_MEMORY", MEMORY) * 1e9
        operations = _read_limit("PODIUM_OPERATIONS", OPERATIONS)
        if cost.memory > memory:
            needs = f"about {_format_gigabytes(cost.memory)} GB of memory"
            limit = f"{_format_gigabytes(memory)} GB (PODIUM_MEMORY sets it)"
        elif cost.operations > operations:
            needs = f"about {_format_count(cost.operations)} operations"
            limit = f"{_format_count(operations)} (PODIUM_OPERATIONS sets it)"
        else:
            continue
        where = "" if cost.query is None else f" of query {queries[cost.query]!r}"
        raise InputError(
            f"{name} needs {needs} for {cost.number:,.0f} {cost.what}{where}, and the limit is {limit}",
            remedy=cost.remedy,
        )


def check_table_size(preferences: Preferences, columns: int, remedy: MessageText) -> None:
    """Reject a table of features that would not fit in memory."""
    items = len(preferences.index.items)
    if items * columns * 8 > LARGEST_TABLE:
        raise InputError(
            f"{len(preferences.experts):,} experts and {items:,} items make the table of features too large",
            remedy=remedy,
        )


def _format_gigabytes(size: float) -> str:
    return f"{size / 1e9:,.0f}" if size >= 1e10 else f"{size / 1e9:.2g}"


def _format_count(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}".replace("e+", "e")


def table_cost(
    sizes: I8, cell: float = 0.0, *, square: float = 0.0, cube: float = 0.0, remedy: str = NO_TABLE
) -> list[Cost]:
    """Cost of the largest query: bytes per cell of the pair tables, operations per cell and cubed item."""
    if not len(sizes):
        return []
    worst = int(sizes.argmax())
    size = float(sizes[worst])
    operations = square * size**2 + cube * size**3
    return [Cost(size * (size - 1) / 2, "pairs of items", cell * size**2, operations, worst, remedy)]
