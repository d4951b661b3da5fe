"""Wide tables as files: one row per item and one column per expert."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from podium.core.errors import InputError, Option
from podium.core.text import join_names
from podium.data.building.validate import check_choice
from podium.data.ids import Id
from podium.data.wide_tables import CellValues, WideColumns, find_wide_columns, looks_like_ranks
from podium.formats.base import Content
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import NONE, Recipe, read_query, split_keys, warn_of_guess
from podium.formats.recipes.records import Record
from podium.formats.table_writing import iterate_lists
from podium.formats.text_ids import format_ids

__all__ = ["WideTable"]


class WideTable(Recipe):
    """One row per item, one column per expert; empty cells are no judgements. Cells are scores, larger is
    better, or with `values="ranks"` ranks, 1 for the best. `items` and `query` name those columns, `experts`
    the columns of experts.
    """

    name = "wide"
    summary = "wide table: a row per item, a column per expert"
    suffixes = (".csv", ".tsv", ".parquet")
    containers = frozenset({"table"})
    holds = frozenset({"lists"})

    def matches(self, fields: Mapping[str, Any]) -> bool:
        numeric = {name: _is_number_or_empty(value) for name, value in fields.items()}
        return find_wide_columns(list(fields), numeric) is not None

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        experts: str | None = None,
        values: CellValues | None = None,
    ) -> None:
        check_choice("values", values, (None, "scores", "ranks"))  # type: ignore[arg-type]
        rows = list(records)
        columns = _choose_columns(rows, query, items, experts)
        cells: list[tuple[Record, Id, str, Id, float]] = []
        for record in rows:
            task = read_query(record, columns.query, None)
            item = record.read_id(columns.item, "item")
            for name in columns.experts:
                value = record.get(name)
                if value is None or value == "" or value != value:
                    judgments.drop("empty cell")
                else:
                    cells.append((record, task, name, item, record.parse_number(value, f"value of {name}")))
        by_list: dict[tuple[Id, str], list[float]] = {}
        for _, task, name, _, number in cells:
            by_list.setdefault((task, name), []).append(number)
        if values is None and looks_like_ranks(list(by_list.values())):
            remedy = ("give ", Option("values", "ranks", "scores"))
            raise rows[0].source.error(
                "the values of every column are 1, 2, ...: ranks or scores?", None, remedy
            )
        for record, task, name, item, number in cells:
            if values == "ranks":
                judgments.add_rank(record, task, name, item, number)
            else:
                judgments.add_rating(record, task, name, item, number)
        judgments.note(f"experts are {join_names(columns.experts)}; {values or 'scores'}")
        if experts is None and rows:
            warn_of_guess(
                rows[0],
                f"a row is an item ({columns.item}) and the columns {join_names(columns.experts)} are experts; "
                "if this is not so, name the experts with ",
                Option("experts"),
            )

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError("there are no lists to write", remedy="wide tables store lists")
        self.warn_of_omitted(labels=content.labels, features=content.features, comparisons=len(p.comparisons))
        experts = format_ids(p.experts, "expert", self.name)
        if clash := [name for name in experts if name in ("query", "item") or name != name.strip()]:
            raise InputError(f"an expert is called {clash[0][:80]!r}", remedy="rename it, or write csv")
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for query, expert, items, ranks, scores in iterate_lists(p):
            for item, value in zip(items, scores or ranks, strict=True):
                cells.setdefault((str(query), str(item)), {})[str(expert)] = repr(value)
        if any("\r" in text or "\0" in text for text in (*experts, *(t for key in cells for t in key))):
            raise InputError("an id contains a carriage return or NUL", remedy="rename it, or write jsonl")
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["query", "item", *experts])
        writer.writerows([*key, *(row.get(expert, "") for expert in experts)] for key, row in cells.items())
        yield out.getvalue().encode()


def _choose_columns(
    rows: list[Record], query: str | None, items: str | None, experts: str | None
) -> WideColumns:
    names = list(rows[0].fields)
    numeric = {name: all(_is_number_or_empty(row.fields.get(name)) for row in rows) for name in names}
    known = find_wide_columns(names, numeric)
    chosen = split_keys(experts)
    (item,) = split_keys(items, 1) or (known.item if known else names[0],)
    task = query if query is not None else known.query if known else None
    task = None if task in (NONE, "") else task
    chosen = chosen or tuple(name for name in names if name not in (item, task) and numeric[name])
    for name in (*chosen, item, *((task,) if task else ())):
        if name not in names:
            raise rows[0].error(f"there is no column {name!r}", f"the columns are {join_names(names, 12)}")
    if not chosen:
        raise rows[0].error("no column has numbers only", ("name the experts, ", Option("experts")))
    return WideColumns(task, item, chosen)


def _is_number_or_empty(value: Any) -> bool:
    if value is None or value == "":
        return True
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return value.isascii() and "_" not in value
    return isinstance(value, int | float) and not isinstance(value, bool)
