"""The one table of the studio: it is sorted, searched and paged by its address, so that it needs no scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from podium.core.tables import shorten_text
from podium.reporting.blocks import ReportTable
from podium.studio.item_texts import ItemText, name_item

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
    notes: list[tuple[str, ...]]  # the small print below each cell; no tuples where no column has items
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
    def has_all_rows(self) -> bool:
        """Whether an address answers with all rows; those of the tables of a view have numbers for names."""
        return self.name.removeprefix("t").isdecimal()

    @property
    def has_search(self) -> bool:
        """Whether to show the search field."""
        return self.every > SEARCHED or bool(self.find)


class TableRow(NamedTuple):
    """A row as shown: titles in place of the ids of items, the small print below them, the address of its page."""

    cells: tuple[str, ...]
    notes: tuple[str, ...]
    link: str


def build_table_page(
    table: ReportTable,
    name: str,
    parameters: Parameters,
    links: Mapping[str, str] | Sequence[str] | None = None,
    texts: Mapping[str, ItemText] | None = None,
    *,
    whole: bool = False,
) -> TablePage:
    """The page of a table that the parameters NAME.sort, NAME.find and NAME.page select; `whole`: all rows.

    `links` are the addresses of the rows, one for each or by their first cells. The cells of the columns of items
    show the titles in `texts`; a search finds their ids, too.

    >>> from podium.core.tables import Grid
    >>> table = ReportTable(Grid(("item", "score"), (("b", "2.0"), ("a", "10.0"), ("c", ""))))
    >>> [row[0] for row in build_table_page(table, "t", [("t.sort", "-2")]).rows]
    ['a', 'b', 'c']
    """
    grid = table.grid
    own = {k: v for k, v in parameters if k.startswith(f"{name}.")}
    others = [(k, v) for k, v in parameters if not k.startswith(f"{name}.") and k not in ("done", "removed")]
    find = own.get(f"{name}.find", "").strip()[:200]
    rows = _describe_rows(table, links or {}, texts or {})
    if find:
        wanted = find.casefold()
        rows = [row for row in rows if any(wanted in cell.casefold() for cell in row.cells + row.notes)]
    sort = _read_number(own.get(f"{name}.sort", ""), -len(grid.head), len(grid.head), 0)
    if sort:
        rows = sort_rows(rows, lambda row: row.cells[abs(sort) - 1], descending=sort < 0)
    pages = 1 if whole else max(1, -(-len(rows) // PAGE))
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
    hidden = [*others, *([(f"{name}.sort", str(sort))] if sort else [])]
    return TablePage(
        name, grid.title, columns, [tuple(map(shorten_text, row.cells)) for row in shown],
        [row.notes for row in shown], [row.link for row in shown],
        len(rows), len(grid.rows), find, page, pages, hidden,
        address(page=page - 1) if page > 1 else "", address(page=page + 1) if page < pages else "",
    )  # fmt: skip


def _describe_rows(
    table: ReportTable, links: Mapping[str, str] | Sequence[str], texts: Mapping[str, ItemText]
) -> list[TableRow]:
    rows = []
    for number, row in enumerate(table.grid.rows):
        link = links.get(str(row[0]), "") if isinstance(links, Mapping) else links[number]
        cells, notes = [str(cell) for cell in row], [""] * len(row) if table.items and texts else []
        for column in table.items if notes else ():
            cells[column], notes[column] = name_item(cells[column], texts)
        rows.append(TableRow(tuple(cells), tuple(notes), link))
    return rows


def sort_rows(rows: list[Any], key: Callable[[Any], str], *, descending: bool) -> list[Any]:
    """Rows by one of their cells: numbers by value, other texts by letter; empty cells last in either direction.

    >>> sort_rows([("x", "n/a"), ("y", "1,200"), ("z", "+35 %")], lambda row: row[1], descending=True)
    [('y', '1,200'), ('z', '+35 %'), ('x', 'n/a')]
    """
    numbers, words, empty = [], [], []
    for row in rows:
        text = key(row).strip()
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
