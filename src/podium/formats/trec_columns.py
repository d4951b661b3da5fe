"""TREC files: compiled loops from the raw bytes directly to `Preferences` and `Labels`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.core.errors import ALLOW_REPEATS, InputError, Option
from podium.data.building.validate import warn_if_reversed
from podium.data.ids import CodedColumn, Ids
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.formats.text_lines import (
    QRELS,
    RUN,
    LineLayout,
    build_line_error,
    locate_line,
    parse_line,
    parse_number_or_nan,
)
from podium.kernels import segments, text_columns
from podium.kernels.dispatch import I8, U1
from podium.storage.files import Source

__all__ = ["read_qrels", "read_runs", "refuse_same_run_twice"]


_NEWLINE = 10


class ParsedBytes(NamedTuple):
    """The concatenated bytes of the files, the offset of each, and their rows."""

    data: U1
    bounds: I8
    rows: text_columns.TextRows
    query: CodedColumn  # of runs


def read_runs(sources: Sequence[Source], order: str, names: Ids | None) -> tuple[Preferences, I8] | None:
    """Preferences and the file of each list ranked by score; None if plain Python must read the files.

    `names` are the names of the experts if each file is one expert.
    """
    parsed = _parse_files(sources, RUN, ranks=order != "score", lowest=1 if order == "rank" else 0)
    if parsed is None:
        return None
    data, bounds, rows, query = parsed
    file = np.searchsorted(bounds, rows.query_at, side="right") - 1
    if names is not None:
        experts = CodedColumn(file, names).with_sorted_ids()
    else:
        experts = _code_spans(data, rows.expert_at, rows.expert_len).with_sorted_ids()
    width = len(experts.ids)
    key = query.codes * width + experts.codes
    if len(sources) > 1:
        refuse_same_run_twice(key, file, sources, query.ids, experts.ids)
    index, items = _build_index(parsed)
    heads, first, codes = np.unique(key, return_index=True, return_inverse=True)
    grouped = text_columns.group_runs(codes, len(heads), rows.run_rows)
    filled = text_columns.sort_lists(
        rows, items, grouped, heads // width, {"auto": 0, "rank": 1, "score": 2}[order]
    )
    if filled.repeat is not None:
        where = int(query.codes[np.searchsorted(rows.run_rows, filled.repeat, side="right") - 1])
        item = index.items[int(items.starts[where] + items.slot[filled.repeat])]
        problem = f"item {item!r} appears twice in one list for query {index.queries[where]!r}"
        at = int(rows.item_at[filled.repeat])
        raise build_line_error(problem, sources, bounds, at, ALLOW_REPEATS)
    query_starts = np.searchsorted(heads // width, np.arange(len(index) + 1)).astype(np.int64)
    expert_of = (heads % width).astype(np.int32)
    lists = Lists(query_starts, expert_of, grouped.row_starts, filled.item, filled.rank, filled.score)
    if order == "rank":
        warn_if_reversed(lists)
    made = Preferences(index, experts.ids, lists, Comparisons.empty(len(index)))
    return made, file[first[filled.disagree]]


def read_qrels(sources: Sequence[Source]) -> Labels | None:
    """Labels, or None if plain Python must read the files."""
    parsed = _parse_files(sources, QRELS, ranks=False, lowest=0)
    if parsed is None:
        return None
    index, items = _build_index(parsed)
    if len(index.items) < len(items.slot):
        return None  # a duplicate item: plain Python reports where
    rows = parsed.rows
    grades = np.empty(len(items.slot))
    query_of_row = np.repeat(parsed.query.codes, np.diff(rows.run_rows))
    grades[items.starts[query_of_row] + items.slot] = rows.score
    return Labels(index, grades)


def _parse_files(
    sources: Sequence[Source], layout: LineLayout, *, ranks: bool, lowest: int
) -> ParsedBytes | None:
    ends = [s.view[-1] == _NEWLINE for s in sources]
    sizes = [len(s.view) + (not end) for s, end in zip(sources, ends, strict=True)]
    bounds = segments.offsets(sizes)[:-1].astype(np.int64)
    data = sources[0].view
    if len(sources) > 1:
        data = np.full(sum(sizes), _NEWLINE, np.uint8)
        for source, begin in zip(sources, bounds.tolist(), strict=True):
            data[begin : begin + len(source.view)] = source.view
        data.flags.writeable = False  # like a mapped file, so that one compiled kernel serves both
    shape = layout.shape if ranks else layout.shape._replace(rank=-1)
    rows = text_columns.tokenize_lines(data, shape, bounds, lowest)
    if isinstance(rows, int):
        source, line, bad = locate_line(sources, bounds, rows)
        parse_line(bad, layout, source, line, ranks, lowest)  # raises the error
        return None
    if np.isnan(rows.score).any():
        # numbers that the compiled parser leaves: 20 or more digits, very large or very small, and words
        which, buffer, offsets = text_columns.find_slow_scores(data, rows, layout.shape)
        text = buffer.tobytes()
        tokens = [text[a:b].decode(errors="replace") for a, b in itertools.pairwise(offsets.tolist())]
        values = np.array([parse_number_or_nan(token) for token in tokens])
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            problem = f"the {layout.value} is {tokens[wrong[0]][:80]!r}"
            remedy = f"a {layout.value} is a finite number; omit the row if it is unknown"
            at = int(rows.item_at[which[wrong[0]]])
            raise build_line_error(problem, sources, bounds, at, remedy)
        rows.score[which] = values
    return ParsedBytes(data, bounds, rows, _code_spans(data, rows.query_at, rows.query_len))


def _code_spans(data: U1, at: I8, length: I8) -> CodedColumn:
    codes, firsts = text_columns.encode_spans(data, at, length)
    return CodedColumn(codes, Ids.from_text(*text_columns.concat_spans(data, at[firsts], length[firsts])))


def _build_index(parsed: ParsedBytes) -> tuple[ItemIndex, text_columns.ItemSlots]:
    queries = text_columns.group_runs(parsed.query.codes, len(parsed.query.ids), parsed.rows.run_rows)
    items = text_columns.index_items(parsed.data, parsed.rows, queries)
    ids = Ids.from_text(items.buffer, items.offsets)
    return ItemIndex(parsed.query.ids, items.starts, ids, items.arrival), items


def refuse_same_run_twice(key: I8, file: I8, sources: Sequence[Source], queries: Ids, experts: Ids) -> None:
    """The same (query, expert) list in two files: one run given twice, or two runs with the same tag."""
    order = np.argsort(key, kind="stable")
    k, f = key[order], file[order]
    clash = np.flatnonzero((k[1:] == k[:-1]) & (f[1:] != f[:-1]))
    if len(clash) == 0:
        return
    at = clash[0]
    query, expert = queries[int(k[at]) // len(experts)], experts[int(k[at]) % len(experts)]
    one, two = sources[int(f[at])].name, sources[int(f[at + 1])].name
    if one == two:
        problem = f"the file {one} is given twice"
        raise InputError(problem, remedy="give each run once")
    raise InputError(
        f"{one} and {two} both contain a list tagged {expert!r} for query {query!r}",
        remedy=(
            "if this is the same run, give it once; if two runs share the tag, use ",
            Option("expert", "file"),
        ),
    )
