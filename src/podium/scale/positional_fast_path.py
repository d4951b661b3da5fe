"""From Arrow columns to results without preferences in between, for methods that sum points by rank.

Most of what is fused in bulk is fused so (RRF), and making preferences costs several times the sums. What is out of
the ordinary (rows in another order, another tie rule, errors) is left to the general way; where both can
go, both give the same bits.
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
    """Results, and for every query one of its rows."""

    results: RankedItems
    query_row: I8


def rank_positional(
    table: Any, starts: I8 | None, method: Positional, named: Ids | None, top: int | None
) -> PositionalResults | None:
    """Results of a table of whole queries; None where the general way is needed.

    `starts` are the rows at which queries begin, if it is known that none comes back; `named` the experts that have a
    weight, whether they speak here or not.
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
    if not np.isfinite(points).all():  # an error, which the general way words
        return None
    found = rank_by_points(starts, expert.starts, item, ranks, points, weights[expert.codes], top)
    return None if found is None else PositionalResults(found, starts[:-1])


def _has_distinct_texts(column: Any) -> bool:
    """Whether different codes are different texts, which dictionaries need not heed."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return True
    texts = to_single_array(column).dictionary
    return len(texts.unique()) == len(texts)


def _find_query_starts(column: Any) -> I8 | None:
    """The rows at which queries begin; None if one comes back."""
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
    """Whether the lists of every query come in the order of the ids of their experts."""
    rising = expert.codes[1:] > expert.codes[:-1]
    rising[np.searchsorted(expert.starts, row_starts[1:-1]) - 1] = True
    return bool(rising.all())
