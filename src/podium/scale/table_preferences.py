"""Arrow tables as preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.data.building.grouped import GroupedPreferences, from_grouped
from podium.data.ids import Ids, code_ids
from podium.data.preferences import Preferences, Unlisted
from podium.kernels.dispatch import I8
from podium.scale.arrow_schema import (
    decode_dictionaries,
    find_run_starts,
    refuse_missing,
    resolve_columns,
    to_ids,
)
from podium.scale.list_columns import read_list_columns, take_distinct_queries

if TYPE_CHECKING:
    from podium.methods.base import Aggregator

__all__ = ["TablePreferences", "add_experts", "build_preferences", "find_weighted_experts"]


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
        grouped = _build_grouped(table, unlisted, extra_experts)
        if grouped is not None:
            return grouped
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


def _build_grouped(table: Any, unlisted: Unlisted, extra: Ids | None) -> TablePreferences | None:
    starts = find_run_starts(table.column("query"))
    few = take_distinct_queries(table.column("query"), starts)
    queries = None if few is None else to_ids(few)
    columns = None if queries is None else read_list_columns(table, starts, extra)
    if queries is None or columns is None:
        return None
    grouping: GroupedPreferences | None = from_grouped(queries, *columns, unlisted)
    return (
        None if grouping is None else TablePreferences(grouping.preferences, grouping.first_row, starts[:-1])
    )
