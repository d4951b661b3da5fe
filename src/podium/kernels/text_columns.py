"""Whitespace-separated text to columns.

Ids stay in place (a position and a length in the bytes of the file) until the distinct ones of each query are
copied out. Input that a kernel refuses is read by `podium.formats` line by line in plain Python, which names the line.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from podium._core import text_columns as core
from podium._core import text_items as core_items
from podium.kernels import dispatch, segments
from podium.kernels.dispatch import B1, F8, I4, I8, U1, run_in_threads

__all__ = [
    "LAST_COLUMN",
    "ItemSlots",
    "LineShape",
    "RunGroups",
    "TextRows",
    "concat_spans",
    "encode_spans",
    "find_slow_scores",
    "group_runs",
    "index_items",
    "parse_cells",
    "sort_lists",
    "tokenize_lines",
]


LAST_COLUMN = 1_000_000  # of a LETOR line
_COLON = 58
_THREAD_BYTES = 1 << 20  # text per thread below which starting one costs more than it saves


class LineShape(NamedTuple):
    """The number of fields per line and the role of each (-1: none)."""

    fields: int
    query: int
    item: int
    rank: int
    score: int
    expert: int


class TextRows(NamedTuple):
    """Lines as columns; consecutive rows of one query and expert form a run."""

    item_at: I8
    item_len: I4
    rank: I4
    score: F8  # NaN: the number needs a slower parser
    run_rows: I8  # rows of run r: run_rows[r] .. run_rows[r + 1]
    query_at: I8
    query_len: I8
    expert_at: I8
    expert_len: I8


def tokenize_lines(data: U1, shape: LineShape, cuts: I8, lowest_rank: int) -> TextRows | int:
    """Split text into rows, or return the position of the first line that plain Python must handle."""
    # positions that cut the text into about equal parts at line ends
    count = min(dispatch.count_threads(), len(data) // _THREAD_BYTES + 1)
    ends = [0]
    for part in range(1, count):
        # a single line may be longer than a part
        at = max(len(data) * part // count, ends[-1])
        while at < len(data):
            found = np.flatnonzero(data[at : at + 65536] == 10)
            if len(found):
                ends.append(at + int(found[0]) + 1)
                break
            at += 65536
    parts = list(itertools.pairwise([*ends, len(data)]))
    base = segments.offsets(_map_in_threads(lambda p: _count_lines(data, *p), parts))
    n = int(base[-1])
    item_at, item_len = np.empty(n, np.int64), np.empty(n, np.int32)
    rank, score = np.empty(n if shape.rank >= 0 else 0, np.int32), np.empty(n)
    given = (tuple(shape), cuts, lowest_rank, item_at, item_len, rank, score)
    results = _map_in_threads(
        lambda job: core.tokenize_lines(data, *job[0], job[1], *given),
        list(zip(parts, base.tolist(), strict=False)),
    )
    bad = [place for _, place, _ in results if place >= 0]
    if bad:
        return int(bad[0])
    stops = [row for row, _, _ in results]
    runs = np.concatenate([r for _, _, r in results])
    # rows were numbered as if no line were blank
    if any(stop != b for stop, b in zip(stops, base[1:], strict=True)):  # blank lines left gaps
        kept = np.concatenate([np.arange(a, b) for a, b in zip(base, stops, strict=False)])
        item_at, item_len, score = item_at[kept], item_len[kept], score[kept]
        rank = rank[kept] if shape.rank >= 0 else rank
        runs[:, 0] = np.searchsorted(kept, runs[:, 0])
    run_rows = np.append(runs[:, 0], len(item_at))
    return TextRows(
        item_at, item_len, rank, score, run_rows, *(np.ascontiguousarray(runs[:, k]) for k in range(1, 5))
    )


def _map_in_threads(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """The results of all parts, each in a thread of its own; one part stays in the calling thread."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, parts))


def _count_lines(data: U1, begin: int, end: int) -> int:
    step = 1 << 22
    count = sum(int(np.count_nonzero(data[k : min(k + step, end)] == 10)) for k in range(begin, end, step))
    # the last line may lack its line end
    return count + (end > begin and data[end - 1] != 10)


def parse_cells(data: U1, lines: int) -> tuple[I8, I4, F8] | None:
    """Width of each line, columns and values of `column:value` lines; None if plain Python must take over."""
    count = int(np.count_nonzero(data == _COLON))
    widths, column, value = np.zeros(lines, np.int64), np.empty(count, np.int32), np.empty(count)
    if core.parse_cells(data, LAST_COLUMN, widths, column, value) >= 0:
        return None
    return widths, column, value


def encode_spans(data: U1, at: I8, length: I8) -> tuple[I8, I8]:
    """Code of each span by first appearance, and the first span of each code."""
    codes, firsts = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    count = core.intern_spans(data, at, length, codes, firsts)
    return codes, firsts[:count].copy()


def concat_spans(data: U1, at: I8, length: I8) -> tuple[U1, I8]:
    """Spans concatenated, with their offsets."""
    offsets = np.zeros(len(at) + 1, np.int64)
    out = np.empty(int(length.sum()), np.uint8)
    core.copy_spans(data, at, length, offsets, out)
    return out, offsets


def find_slow_scores(data: U1, rows: TextRows, shape: LineShape) -> tuple[I8, U1, I8]:
    """Rows whose score is still NaN, and the text of those scores."""
    which = np.flatnonzero(np.isnan(rows.score))
    at, length = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
    core.find_field_after(data, which, rows.item_at, shape.score - shape.item, at, length)
    return which, *concat_spans(data, at, length)


class RunGroups(NamedTuple):
    """Runs ordered by some code, and where the runs and rows of each code begin."""

    order: I8
    run_starts: I8
    row_starts: I8


def group_runs(codes: I8, count: int, run_rows: I8) -> RunGroups:
    """Runs of each code, in the order of the file."""
    order = np.argsort(codes, kind="stable")
    run_starts = np.searchsorted(codes[order], np.arange(count + 1)).astype(np.int64)
    rows = segments.offsets(np.diff(run_rows)[order])
    return RunGroups(order, run_starts, rows[run_starts])


class ItemSlots(NamedTuple):
    """The distinct items of every query in byte order."""

    slot: I4  # of each row, within its query
    starts: I8
    buffer: U1
    offsets: I8
    arrival: I4


def index_items(data: U1, rows: TextRows, queries: RunGroups) -> ItemSlots:
    """Assign slots to the items of every query."""
    n, q = len(rows.item_at), len(queries.run_starts) - 1
    slot, rep = np.empty(n, np.int32), np.empty(n, np.int32)
    counts, widths = np.zeros(q, np.int64), np.zeros(q, np.int64)
    common = (data, rows.item_at, rows.item_len, rows.run_rows, *queries, slot, rep)
    run_in_threads(core_items.index_items, queries.row_starts, *common, counts, widths)
    starts, text = (segments.offsets(c) for c in (counts, widths))
    buffer, offsets = np.empty(int(text[-1]), np.uint8), np.empty(int(starts[-1]) + 1, np.int64)
    offsets[-1] = text[-1]
    arrival = np.full(int(starts[-1]), -1, np.int32)
    run_in_threads(core_items.write_items, starts, *common, starts, text, buffer, offsets, arrival)
    return ItemSlots(slot, starts, buffer, offsets, arrival)


class SortedLists(NamedTuple):
    """Sorted list rows, the lists whose scores contradict their ranks, and a row that repeats an item."""

    item: I4
    rank: I4
    score: F8
    disagree: B1
    repeat: int | None


def sort_lists(
    rows: TextRows, items: ItemSlots, grouped: RunGroups, query_of_list: I8, by: int
) -> SortedLists:
    """Sort each list's rows; `by` 0: by rank where the scores agree, 1: by rank, 2: by score."""
    n, count = len(rows.item_at), len(query_of_list)
    # a file whose lists are contiguous and in sequence keeps its columns
    in_place = len(rows.rank) == n and not (np.diff(grouped.order) != 1).any()
    item = np.empty(n, np.int32)
    rank, score = (rows.rank, rows.score) if in_place else (np.empty(n, np.int32), np.empty(n))
    disagree, repeat = np.zeros(count, np.bool_), np.full(count, -1, np.int64)
    width = int(np.diff(items.starts).max(initial=0))
    given = (
        grouped.run_starts,
        grouped.order,
        rows.run_rows,
        grouped.row_starts,
        items.starts[:-1][query_of_list],
        items.slot,
    )
    run_in_threads(
        core_items.sort_list_rows,
        grouped.row_starts,
        *given,
        rows.rank,
        rows.score,
        by,
        width,
        in_place,
        item,
        rank,
        score,
        disagree,
        repeat,
    )
    twice = repeat[repeat >= 0]
    return SortedLists(item, rank, score, disagree, int(twice.min()) if len(twice) else None)
