"""The one table of the studio: it is sorted, searched and paged by its address, so that it needs no scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from podium.core.tables import Grid, shorten_text

PAGE = 50  # rows on a page
SEARCHED = 12  # rows from which a search field pays
NUMBER = re.compile(r"[<>≤≥~]?\s*([-+−]?(?:\d[\d,]*)?\.?\d+(?:[eE][-+]?\d+)?)")

Parameters = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TableColumn:
    """A heading: the address that sorts by it, and its present direction."""

    text: str
    side: str
    href: str
    order: str  # "ascending", "descending", or empty


@dataclass(frozen=True)
class TablePage:
    """The rows of a table that a page shows, with the addresses of its controls."""

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: list[tuple[str, ...]]
    links: list[str]
    total: int  # rows that match the search
    every: int  # rows of the table
    find: str
    page: int
    pages: int
    hidden: list[tuple[str, str]]  # parameters that the search form keeps
    before: str
    after: str

    @property
    def has_search(self) -> bool:
        """Whether to show the search field."""
        return self.every > SEARCHED or bool(self.find)


def build_table_page(
    grid: Grid,
    name: str,
    parameters: Parameters,
    links: Mapping[str, str] | None = None,
    *,
    whole: bool = False,
) -> TablePage:
    """The page of a table that the parameters NAME.sort, NAME.find and NAME.page select; `whole`: all rows.

    >>> grid = Grid(("item", "score"), (("b", "2.0"), ("a", "10.0"), ("c", "")))
    >>> [row[0] for row in build_table_page(grid, "t", [("t.sort", "-2")]).rows]
    ['a', 'b', 'c']
    """
    own = {k: v for k, v in parameters if k.startswith(f"{name}.")}
    others = [(k, v) for k, v in parameters if not k.startswith(f"{name}.") and k not in ("done", "removed")]
    find = own.get(f"{name}.find", "").strip()[:200]
    rows = list(grid.rows)
    if find:
        wanted = find.casefold()
        rows = [row for row in rows if any(wanted in str(cell).casefold() for cell in row)]
    sort = _read_number(own.get(f"{name}.sort", ""), -len(grid.head), len(grid.head), 0)
    if sort:
        rows = sort_rows(rows, abs(sort) - 1, descending=sort < 0)
    pages = max(1, -(-len(rows) // PAGE))
    page = _read_number(own.get(f"{name}.page", ""), 1, pages, 1)
    shown = rows if whole else rows[(page - 1) * PAGE : page * PAGE]

    def address(**changes: Any) -> str:
        state = {"find": find, "sort": sort or "", "page": page} | changes
        kept = [(f"{name}.{k}", v) for k, v in state.items() if v and not (k == "page" and v == 1)]
        return f"?{urlencode([*others, *kept])}#{name}"

    def build_column(number: int, text: str) -> TableColumn:
        # numbers are first sorted from the largest on, names from A on
        first = -number if number > grid.left else number
        target = -sort if abs(sort) == number else first
        order = "" if abs(sort) != number else "ascending" if sort > 0 else "descending"
        side = "left" if number <= grid.left else "right"
        return TableColumn(text, side, address(sort=target, page=1), order)

    columns = tuple(build_column(n, str(text)) for n, text in enumerate(grid.head, 1))
    leads = [(links or {}).get(str(row[0]), "") for row in shown]
    hidden = [*others, *([(f"{name}.sort", str(sort))] if sort else [])]
    return TablePage(
        name, grid.title, columns, [tuple(shorten_text(str(cell)) for cell in row) for row in shown], leads,
        len(rows), len(grid.rows), find, page, pages, hidden,
        address(page=page - 1) if page > 1 else "", address(page=page + 1) if page < pages else "",
    )  # fmt: skip


def sort_rows(rows: list[Any], column: int, *, descending: bool) -> list[Any]:
    """Rows by one column: numbers by value, other texts by letter; empty cells last in either direction.

    >>> sort_rows([("x", "n/a"), ("y", "1,200"), ("z", "+35 %")], 1, descending=True)
    [('y', '1,200'), ('z', '+35 %'), ('x', 'n/a')]
    """
    numbers, words, empty = [], [], []
    for row in rows:
        text = str(row[column]).strip()
        match = NUMBER.match(text)
        if match is not None:
            numbers.append((float(match[1].replace(",", "").replace("−", "-")), row))
        elif text in ("", "-", "–", "·"):
            empty.append(row)
        else:
            words.append((text.casefold(), row))
    numbers.sort(key=lambda pair: pair[0], reverse=descending)
    words.sort(key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in numbers] + [row for _, row in words] + empty


def _read_number(text: str, low: int, high: int, default: int) -> int:
    """A whole number of the address, or the default where it is none."""
    plain = text.strip()
    if not plain.removeprefix("-").isdecimal() or len(plain) > 9:
        return default
    return min(max(int(plain), low), high)
