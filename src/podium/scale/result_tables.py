"""Results as Arrow tables: query, item, rank, score, tied, and the kept columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.errors import InputError
from podium.core.optional import require_module
from podium.core.params import suggest_names
from podium.scale.arrow_schema import resolve_columns, to_arrow, to_numpy, to_plain_type, to_single_array

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.kernels.dispatch import I8
    from podium.scale.table_preferences import RankedTable, TablePreferences


def derive_result_schema(given: Any, keep: Sequence[str]) -> Any:
    """The schema of the results for batches of a schema."""
    pa = require_module("pyarrow")
    item = "winner" if "winner" in resolve_columns(given) else "item"
    kept = []
    for name in keep:
        if name not in given.names:
            remedy = suggest_names(name, given.names)
            raise InputError(f"the batch has no column {name!r} to keep", remedy=remedy)
        kind = given.field(name).type
        if pa.types.is_nested(kind):
            remedy = "keep columns of plain values"
            raise InputError(f"the column {name!r} to keep has type {kind}", remedy=remedy)
        kept.append(pa.field(name, to_plain_type(kind)))
    return pa.schema([*build_result_schema(given.field("query").type, given.field(item).type), *kept])


def build_result_schema(query: Any, item: Any) -> Any:
    """The schema of results for ids of these types; no column is nullable."""
    pa = require_module("pyarrow")
    kinds = {
        "query": to_plain_type(query),
        "item": to_plain_type(item),
        "rank": pa.int32(),
        "score": pa.float64(),
        "tied": pa.bool_(),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def from_consensus(
    consensus: Consensus,
    read: TablePreferences,
    table: Any,
    schema: Any,
    top: int | None,
    keep: tuple[str, ...],
) -> Any:
    """The first `top` positions of a consensus of preferences that were read from a table."""
    index = consensus.index
    sizes = index.sizes if top is None else np.minimum(index.sizes, top)
    ends = np.cumsum(sizes)
    place = np.arange(int(ends[-1]), dtype=np.int64) - np.repeat(ends - sizes, sizes)
    shown = place + np.repeat(index.starts[:-1], sizes) if top is not None else slice(None)
    slots, kind = consensus.order[shown], schema.field("item").type
    rows = read.query_row
    if read.item_row is None or rows is None:
        frame = consensus.to_frame(top=top)
        query, item = (frame.column(name).cast(schema.field(name).type) for name in ("query", "item"))
        first_row: dict[Any, int] = {}
        for row, value in enumerate(table.column("query").to_pylist() if keep else ()):
            first_row.setdefault(value, row)
        rows = np.array([first_row[q] for q in index.queries.tolist()], np.int64) if keep else sizes
    else:
        query = _repeat_by_query(table.column("query"), rows, sizes, schema.field("query").type)
        integers = index.items.integers
        if integers is None:
            item = _take_rows(table.column("item"), read.item_row[slots], kind)
        else:
            item = to_arrow(integers.astype(kind.to_pandas_dtype(), copy=False)[slots])
    ranks, scores, tied = (place + 1).astype(np.int32), consensus.scores[slots], consensus.tied[shown]
    return _build_table([query, item], (ranks, scores, tied), (rows, sizes), table, schema, keep)


def from_ranked_table(ranked: RankedTable, table: Any, schema: Any, keep: tuple[str, ...]) -> Any:
    """The results computed without preferences."""
    pa = require_module("pyarrow")
    results, rows = ranked
    query = _repeat_by_query(table.column("query"), rows, results.counts, schema.field("query").type)
    item, flat = to_arrow(results.item), to_single_array(table.column("item"))
    if not pa.types.is_integer(flat.type):  # numbers of texts, in the dictionary or by row
        item = (flat.dictionary if pa.types.is_dictionary(flat.type) else flat).take(item)
    ids = [query, item.cast(schema.field("item").type)]
    numbers = (results.rank, results.score, results.tied)
    return _build_table(ids, numbers, (rows, results.counts), table, schema, keep)


def _build_table(
    ids: list[Any],
    numbers: tuple[Any, ...],
    queries: tuple[I8, I8],
    table: Any,
    schema: Any,
    keep: tuple[str, ...],
) -> Any:
    """Results with the kept columns, which have the values of one row per query (`queries`: rows, counts)."""
    pa = require_module("pyarrow")
    pc = require_module("pyarrow.compute")
    kept = []
    for name in keep:
        pairs = pa.table({n: to_single_array(table.column(n)) for n in ("query", name)})
        grouped = pairs.group_by("query").aggregate([(name, "count_distinct", pc.CountOptions(mode="all"))])
        several = pc.greater(grouped.column(f"{name}_count_distinct"), 1)
        if pc.any(several).as_py():
            query = grouped.column("query").filter(several)[0].as_py()
            raise InputError(
                f"query {query!r} has several values of {name!r}",
                remedy="a kept column must have one value per query",
            )
        kept.append(_repeat_by_query(table.column(name), *queries, schema.field(name).type))
    return pa.Table.from_arrays([*ids, *map(to_arrow, numbers), *kept], schema=schema)


def _repeat_by_query(column: Any, rows: I8, counts: I8, kind: Any) -> Any:
    """Values of one row per query, repeated once per result of the query."""
    return _take_rows(_take_rows(column, rows, kind), np.repeat(np.arange(len(rows)), counts), kind)


def _take_rows(column: Any, rows: I8, kind: Any) -> Any:
    """Values of rows, as an array of the given type."""
    pa = require_module("pyarrow")
    flat = to_single_array(column)
    if pa.types.is_integer(flat.type) and not flat.null_count:
        return to_arrow(to_numpy(flat)[rows]).cast(kind)
    taken = flat.take(to_arrow(rows))
    return taken if taken.type == kind else taken.cast(kind)
