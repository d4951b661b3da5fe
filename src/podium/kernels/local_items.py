"""Numbering of every query's items, and lists over them, from columns grouped by query.

`Preferences.from_rows` builds the same from rows in any order, and is what these are tested against.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium._core import local_items as core
from podium.kernels import segments, text_columns
from podium.kernels.dispatch import F8, I4, I8, U1, run_in_threads

__all__ = ["ItemNumbers", "ListColumns", "TextColumn", "fill_lists", "find_list_starts", "number_items"]


class TextColumn(NamedTuple):
    """A text column: the text number of each row, and the texts in one UTF-8 buffer."""

    codes: I4 | None  # None: every row has its own text
    buffer: U1
    offsets: I8


class ItemNumbers(NamedTuple):
    """The distinct items of every query in order."""

    starts: I8
    slot: I4  # of each row, within its query
    first_row: I8  # of each slot
    arrival: I4
    text: tuple[U1, I8] | None  # ids of the slots, where they are text


class ListColumns(NamedTuple):
    """The columns of `podium.data.lists.Lists`."""

    query_starts: I8
    expert: I4
    starts: I8
    item: I4
    rank: I4


def number_items(row_starts: I8, item: npt.NDArray[Any] | TextColumn) -> ItemNumbers:
    """Slots of items whose ids are integers or text."""
    value, ordered = (item, True) if isinstance(item, np.ndarray) else (item.codes, False)
    if value is None:
        return _number_by_text(row_starts, row_starts, None, np.arange(row_starts[-1]), *item)
    n, queries = len(value), len(row_starts) - 1
    slot, came, rep = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    counts = np.zeros(queries, np.int64)
    columns = (slot, rep, came, counts)
    run_in_threads(core.number_items, row_starts, row_starts, value, ordered, *columns)
    starts = segments.offsets(counts)
    # codes of texts are numbered in the order of the file; slots follow the order of the texts
    if not ordered:
        at = np.repeat(row_starts[:-1] - starts[:-1], counts) + np.arange(int(starts[-1]))
        return _number_by_text(row_starts, starts, slot, rep[at], *item)
    first_row, arrival = np.empty(int(starts[-1]), np.int64), np.empty(int(starts[-1]), np.int32)
    run_in_threads(core.gather_items, starts, row_starts, starts, rep, came, first_row, arrival)
    return ItemNumbers(starts, slot, first_row, arrival, None)


def _number_by_text(
    row_starts: I8, starts: I8, slot: I4 | None, rows: I8, codes: I4 | None, buffer: U1, offsets: I8
) -> ItemNumbers:
    """Texts (those of `rows`, from starts[q] on for query q) in byte order, which is the order of ids.

    `slot` numbers them by first appearance, for every row; None if `rows` are all rows.
    """
    queries = np.arange(len(starts))
    code = rows if codes is None else codes[rows]
    at, length = offsets[code], (offsets[code + 1] - offsets[code]).astype(np.int32)
    none = np.zeros(0, np.int64)
    entries = text_columns.TextRows(
        at, length, none.astype(np.int32), np.zeros(0), starts, none, none, none, none
    )
    found = text_columns.index_items(buffer, entries, text_columns.RunGroups(queries[:-1], queries, starts))
    if slot is None:
        slot = found.slot
    else:
        run_in_threads(core.relabel_slots, row_starts, row_starts, starts, found.slot, slot)
    first_row = np.empty(int(found.starts[-1]), np.int64)
    query = np.repeat(queries[:-1], np.diff(starts))
    first_row[found.starts[query] + found.slot] = rows
    return ItemNumbers(found.starts, slot, first_row, found.arrival, (found.buffer, found.offsets))


def fill_lists(
    row_starts: I8, items: ItemNumbers, list_starts: I8, expert: I4, rank: I4 | None, score: F8 | None
) -> ListColumns | None:
    """Lists (rows list_starts[l] .. list_starts[l + 1], by expert code) if in order (see the kernel)."""
    n, queries = len(items.slot), len(row_starts) - 1
    query_lists = np.searchsorted(list_starts, row_starts).astype(np.int64)
    item, bad = np.empty(n, np.int32), np.zeros(queries, np.bool_)
    ranks = rank.copy() if rank is not None else np.empty(n, np.int32)  # never return the caller's own array
    given = (items.starts, query_lists, list_starts, expert, items.slot, ranks)
    scores = score if score is not None else np.zeros(0)
    run_in_threads(core.fill_lists, row_starts, *given, scores, rank is not None, item, bad)
    return None if bad.any() else ListColumns(query_lists, expert, list_starts, item, ranks)


def find_list_starts(row_starts: I8, expert: npt.NDArray[np.integer[Any]]) -> I8:
    """The rows at which the query or the expert changes, and the number of rows."""
    code = expert if expert.dtype == np.int32 else expert.astype(np.int64)
    starts = np.empty(len(code) + 1, np.int64)
    return starts[: core.find_list_starts(row_starts, code, starts)].copy()
