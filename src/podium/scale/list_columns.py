"""From Arrow columns directly to results, without preferences, for methods that offer it (`column_ranker`).

Building preferences costs several times the sums of a method such as RRF. Other cases (rows in another order,
another tie rule, errors) take the general path; where both apply, the results are bit-identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core.optional import require_module
from podium.data.building.grouped import GroupedColumns
from podium.scale import arrow_schema
from podium.scale.arrow_arrays import to_single_array

if TYPE_CHECKING:
    from podium.data.ids import Ids
    from podium.kernels.dispatch import I8
    from podium.kernels.positional_rank import RankedItems
    from podium.methods.base import ColumnRanker

__all__ = ["RankedTable", "rank_columns", "read_list_columns", "take_distinct_queries"]


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
    read = arrow_schema.resolve_columns(table.schema)
    if "item" not in read or any(table.column(name).null_count for name in read):
        return None
    if starts is None:
        starts = arrow_schema.find_run_starts(table.column("query"))
        if take_distinct_queries(table.column("query"), starts) is None:
            return None
    columns = read_list_columns(table, starts, named) if _has_distinct_texts(table.column("item")) else None
    results = None if columns is None else ranker(columns, top)
    return None if results is None else RankedTable(results, starts[:-1])


def take_distinct_queries(column: Any, starts: I8) -> Any:
    """The ids at the starts of runs of rows; None if a query has several runs."""
    few = arrow_schema.take_run_values(column, starts)
    return few if len(few.unique()) == len(few) else None


def read_list_columns(table: Any, starts: I8, extra: Ids | None) -> GroupedColumns | None:
    """The lists of a table whose queries start at these rows; None if an id or a rank has no plain number."""
    item, rank = arrow_schema.items_of(table.column("item")), arrow_schema.ranks_of(table)
    if item is None or (rank is None and "rank" in table.column_names):
        return None
    expert = arrow_schema.experts_of(table.column("expert"), starts, extra)
    return GroupedColumns(starts, expert, item, rank, arrow_schema.scores_of(table))


def _has_distinct_texts(column: Any) -> bool:
    """Whether distinct codes mean distinct texts, which dictionaries do not guarantee."""
    pa = require_module("pyarrow")
    if not pa.types.is_dictionary(column.type):
        return True
    texts = to_single_array(column).dictionary
    return len(texts.unique()) == len(texts)
