"""Arrow tables as preferences, or directly to results for methods that offer it (`column_ranker`).

Building preferences costs several times the sums of a method such as RRF. Other cases (rows in another order,
another tie rule, errors) take the general path; where both apply, the results are bit-identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.optional import require_module
from podium.data.building.grouped import GroupedColumns, GroupedPreferences, from_grouped
from podium.data.ids import Ids, code_ids
from podium.data.preferences import Preferences, Unlisted
from podium.kernels.dispatch import I8
from podium.scale.arrow_schema import (
    decode_dictionaries,
    experts_of,
    find_run_starts,
    items_of,
    ranks_of,
    refuse_missing,
    resolve_columns,
    scores_of,
    take_run_values,
    to_ids,
    to_single_array,
)

if TYPE_CHECKING:
    from podium.kernels.positional_rank import RankedItems
    from podium.methods.base import Aggregator, ColumnRanker


class RankedTable(NamedTuple):
    """Results, and for each query one of its rows."""

    results: RankedItems
    query_row: I8


def rank_columns(
    table: Any, starts: I8 | None, ranker: ColumnRanker, named: Ids | None, top: int | None
) -> RankedTable | None:
    """Results of a table of complete queries; None if the general path is needed.

    `starts` are the first rows of the queries, if these are known to be contiguous; `named` are the experts
    with a weight, whether or not they occur in the table.
    """
    read = resolve_columns(table.schema)
    if "item" not in read or any(table.column(name).null_count for name in read):
        return None
    if starts is None:
        starts = find_run_starts(table.column("query"))
        if take_distinct_queries(table.column("query"), starts) is None:
            return None
    item = table.column("item")
    if require_module("pyarrow").types.is_dictionary(item.type):
        texts = to_single_array(item).dictionary
        if len(texts.unique()) < len(texts):  # distinct codes may mean the same text
            return None
    columns = read_list_columns(table, starts, named)
    results = None if columns is None else ranker(columns, top)
    return None if results is None else RankedTable(results, starts[:-1])


def take_distinct_queries(column: Any, starts: I8) -> Any:
    """The ids at the starts of runs of rows; None if a query has several runs."""
    few = take_run_values(column, starts)
    return few if len(few.unique()) == len(few) else None


def read_list_columns(table: Any, starts: I8, extra: Ids | None) -> GroupedColumns | None:
    """The lists of a table whose queries start at these rows; None if an id or a rank has no plain number."""
    item, rank = items_of(table.column("item")), ranks_of(table)
    if item is None or (rank is None and "rank" in table.column_names):
        return None
    expert = experts_of(table.column("expert"), starts, extra)
    return GroupedColumns(starts, expert, item, rank, scores_of(table))


class TablePreferences(NamedTuple):
    """Preferences of a table; for each slot a row with its item, for each query one of its rows."""

    preferences: Preferences
    item_row: I8 | None  # None: rows are unknown, and results are built from ids
    query_row: I8 | None


def build_preferences(
    table: Any, unlisted: Unlisted, duplicates: str, extra_experts: Ids | None
) -> TablePreferences:
    """A table of lists or votes as preferences; rows of one query need not be contiguous."""
    read = resolve_columns(table.schema)
    table = table.select(list(read)).combine_chunks()
    for name in read:
        refuse_missing(table, name)
    if "item" in read:
        starts = find_run_starts(table.column("query"))
        few = take_distinct_queries(table.column("query"), starts)
        queries = None if few is None else to_ids(few)
        columns = None if queries is None else read_list_columns(table, starts, extra_experts)
        if queries is not None and columns is not None:
            grouping: GroupedPreferences | None = from_grouped(queries, *columns, unlisted)
            if grouping is not None:
                return TablePreferences(grouping.preferences, grouping.first_row, starts[:-1])
    sides = {"winner": "winner", "loser": "loser"} if "winner" in read else {"duplicates": duplicates}
    sides |= {name: name for name in ("tie", "weight") if name in read}
    made = Preferences.from_frame(decode_dictionaries(table), unlisted=unlisted, **sides)
    return TablePreferences(add_experts(made, extra_experts), None, None)


def find_weighted_experts(method: Aggregator) -> Ids | None:
    """Experts with a weight given by name: they must exist even in tables in which they have no rows."""
    return Ids(list(method.weights)) if isinstance(method.weights, dict) else None


def add_experts(made: Preferences, more: Ids | None) -> Preferences:
    """The same preferences over more experts, some of which have no rows."""
    if more is None or all(made.experts.code_of(e) is not None for e in more):
        return made
    from dataclasses import replace

    known = made.experts
    both = code_ids(known.tolist() + more.tolist(), "expert").with_sorted_ids()
    new = both.codes[: len(known)].astype(np.int32)
    lists = replace(made.lists, expert=new[made.lists.expert])
    votes = replace(made.comparisons, expert=new[made.comparisons.expert])
    return replace(made, experts=both.ids, lists=lists, comparisons=votes)
