"""Selection of the content that a table stores, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError
from podium.data.building.validate import check_choice
from podium.data.ids import CodedColumn, Id
from podium.data.preferences import Preferences
from podium.formats.base import Content, Format
from podium.formats.text_ids import refuse_surrogates
from podium.kernels import text_rows

__all__ = ["CellColumn", "WritableKind", "build_columns", "format_rows", "iterate_lists", "resolve_kind"]

WritableKind = Literal["lists", "votes", "labels"]
CellColumn = CodedColumn | npt.NDArray[Any]  # ids, or numbers
_BLOCK = 50_000  # rows that are formatted at once


def resolve_kind(content: Content, kind: str, format: Format) -> str:
    """The part of the content to write: lists, votes or labels."""
    p = content.preferences
    there = {name: name in content.parts for name in ("lists", "votes", "labels")}
    check_choice("kind", kind, ("auto", *there))
    if kind == "auto":
        kind = next((k for k, has in there.items() if has), "")
    if not kind or not there[kind]:
        raise InputError(f"there are no {kind or 'lists, votes or labels'} to write")
    held = content.labels if kind == "labels" else p
    assert held is not None
    for what, ids in (("query", held.queries), ("item", held.index.items)):
        refuse_surrogates(ids, what, format.name)
    if kind != "labels" and p is not None:
        refuse_surrogates(p.experts, "expert", format.name)
    unranked = 0
    if p is not None and kind == "lists":
        unranked = len(p.index.items) - len(np.unique(p.lists.item))
    others = {k: has for k, has in there.items() if k != kind}
    format.warn_of_omitted(**others, features=content.features, items_nobody_ranks=unranked)
    return kind


def build_columns(content: Content, kind: str) -> dict[str, CellColumn]:
    """The rows of the lists, votes or labels as named columns: coded ids, or numbers."""
    held = content.labels if kind == "labels" else content.preferences
    assert held is not None
    index, p, labels = held.index, content.preferences, content.labels
    if kind == "labels" and labels is not None:
        judged = np.flatnonzero(~np.isnan(labels.grades))
        query = CodedColumn(index.query_of_slot[judged], index.queries)
        return {"query": query, "item": CodedColumn(judged, index.items), "grade": labels.grades[judged]}
    assert p is not None
    if kind == "votes":
        v = p.comparisons
        return {
            "query": CodedColumn(v.query_of_row, index.queries),
            "expert": CodedColumn(v.expert.astype(np.int64), p.experts),
            "winner": CodedColumn(v.winner.astype(np.int64), index.items),
            "loser": CodedColumn(v.loser.astype(np.int64), index.items),
            "tie": v.tie,
            "weight": v.weight,
        }
    t = p.lists
    lists: dict[str, CellColumn] = {
        "query": CodedColumn(t.query_of_list[t.list_of_row], index.queries),
        "expert": CodedColumn(t.expert[t.list_of_row].astype(np.int64), p.experts),
        "item": CodedColumn(t.item.astype(np.int64), index.items),
        "rank": t.rank,
    }
    return lists if t.score is None else {**lists, "score": t.score}


def format_rows(
    columns: Sequence[CellColumn], separator: str, *, nan_is_empty: bool = False
) -> Iterator[bytes]:
    """Lines of cells in blocks: ids, which are in a UTF-8 buffer, integers as digits, floats as `repr` writes them."""
    first = columns[0]
    rows = len(first.codes if isinstance(first, CodedColumn) else first)
    for begin in range(0, rows, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        cells = []
        for column in columns:
            if isinstance(column, CodedColumn):
                ids = column.ids
                assert ids.buffer is not None
                assert ids.offsets is not None
                cells.append(text_rows.TextCells(ids.buffer, ids.offsets, column.codes[block]))
            elif column.dtype.kind == "f":
                cells.append(text_rows.format_floats(column[block], nan_is_empty=nan_is_empty))
            else:
                cells.append(text_rows.format_integers(column[block]))
        yield text_rows.join_cells(cells, separator.encode())


def iterate_lists(p: Preferences) -> Iterator[tuple[Id, Id, list[Id], list[int], list[float] | None]]:
    """Every list as (query, expert, items, ranks, scores or None)."""
    t = p.lists
    queries, experts = p.queries.tolist(), p.experts.tolist()
    for k in range(len(t)):
        a, b = int(t.starts[k]), int(t.starts[k + 1])
        items = p.index.items.take(t.item[a:b]).tolist()
        scores = None if t.score is None or np.isnan(t.score[a:b]).any() else t.score[a:b].tolist()
        yield queries[int(t.query_of_list[k])], experts[int(t.expert[k])], items, t.rank[a:b].tolist(), scores
