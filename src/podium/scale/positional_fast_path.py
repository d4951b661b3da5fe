"""From Arrow columns directly to results, without preferences, for methods that sum points by rank.

Most bulk fusion uses such methods (RRF), and building preferences costs several times the sums. Other cases
(rows in another order, another tie rule, errors) take the general path; where both apply, the results are
bit-identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.kernels.positional_rank import compute_ranks_by_score, rank_by_points
from podium.methods.positional import TABLE_LIMIT, Positional
from podium.scale import arrow_schema
from podium.scale.arrow_arrays import to_arrow, to_single_array

if TYPE_CHECKING:
    from podium.data.building.grouped import ListExperts
    from podium.data.ids import Ids
    from podium.kernels.dispatch import I4, I8
    from podium.kernels.positional_rank import RankedItems

__all__ = ["PositionalResults", "rank_positional"]


class PositionalResults(NamedTuple):
    """Results, and for each query one of its rows."""

    results: RankedItems
    query_row: I8


def rank_positional(
    table: Any, starts: I8 | None, method: Positional, named: Ids | None, top: int | None
) -> PositionalResults | None:
    """Results of a table of complete queries; None if the general path is needed.

    `starts` are the first rows of the queries, if these are known to be contiguous; `named` are the experts
    with a weight, whether or not they occur in the table.
    """
    read = arrow_schema.resolve_columns(table.schema)
    if "item" not in read or any(table.column(name).null_count for name in read):
        return None
    item = arrow_schema.items_of(table.column("item"))
    if starts is None:
        starts = _find_query_starts(table.column("query"))
    if starts is None or item is None or not _has_distinct_texts(table.column("item")):
        return None
    expert = arrow_schema.experts_of(table.column("expert"), starts, named)
    weights, ranks = method.expert_weights_for(expert.ids), _compute_ranks(table, expert.starts)
    if ranks is None or not _is_sorted_by_expert(starts, expert) or not (weights > 0).all():
        return None
    points = method.points(int(ranks.max()))
    if not np.isfinite(points).all():  # an error, which the general path reports
        return None
    found = rank_by_points(starts, expert.starts, item, ranks, points, weights[expert.codes], top)
    return None if found is None else PositionalResults(found, starts[:-1])


def _has_distinct_texts(column: Any) -> bool:
    """Whether distinct codes mean distinct texts, which dictionaries do not guarantee."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return True
    texts = to_single_array(column).dictionary
    return len(texts.unique()) == len(texts)


def _find_query_starts(column: Any) -> I8 | None:
    """The first rows of the queries; None if a query is not contiguous."""
    starts = arrow_schema.find_run_starts(column)
    few = column.take(to_arrow(starts[:-1]))
    return starts if len(few.unique()) == len(few) else None


def _compute_ranks(table: Any, list_starts: I8) -> I4 | None:
    found, score = arrow_schema.ranks_of(table), arrow_schema.scores_of(table)
    if found is None and (score is None or "rank" in table.column_names):
        return None
    if score is not None:
        found = compute_ranks_by_score(list_starts, score, found)
    return None if found is None or found.min() < 1 or found.max() > TABLE_LIMIT else found


def _is_sorted_by_expert(row_starts: I8, expert: ListExperts) -> bool:
    """Whether the lists of each query are ordered by expert id."""
    rising = expert.codes[1:] > expert.codes[:-1]
    # the order restarts at the first list of each query
    rising[np.searchsorted(expert.starts, row_starts[1:-1]) - 1] = True
    return bool(rising.all())
