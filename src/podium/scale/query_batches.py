"""Streams of record batches, split between queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core.errors import InputError
from podium.core.optional import require_module
from podium.scale.arrow_schema import (
    decode_dictionaries,
    find_run_starts,
    normalize_columns,
    refuse_missing,
    resolve_columns,
    take_run_values,
    to_plain_type,
    to_table,
)

if TYPE_CHECKING:
    from podium.kernels.dispatch import I8

ROWS = 1 << 20  # rows per step: enough to hide the cost of a step, few enough for CPU caches
ARROW = "give a pyarrow table, a record batch or an iterator of them (Ray: batch_format='pyarrow')"


class QueryBatch(NamedTuple):
    """A table of complete queries, and their first rows (followed by the number of rows)."""

    table: Any
    starts: I8


def iterate_query_batches(batches: Iterable[Any], rows: int = ROWS) -> Iterator[QueryBatch]:
    """Tables of about `rows` rows with contiguous columns, split between queries; a query must not reappear.

    Small batches are joined. For large ones only the query at the boundary is copied, as a separate table.
    Memory is bounded by `rows`, one batch and the largest query, plus one id per query seen.
    """
    pa = require_module("pyarrow")
    held: list[Any] = []  # its last query may continue in the next batch
    kinds: dict[str, Any] = {}
    seen: set[Any] = set()
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise InputError(f"one of the batches is a {type(batch).__name__}", remedy=ARROW)
        part = normalize_columns(to_table(batch) if isinstance(batch, pa.RecordBatch) else batch)
        resolve_columns(part.schema)
        before, kinds = kinds, {field.name: to_plain_type(field.type) for field in part.schema}
        remedy = "cast them to one schema"
        for name in kinds.keys() ^ before.keys() if before else ():
            raise InputError(f"only some of the batches have a column {name!r}", remedy=remedy)
        for name, old in before.items():
            if old != kinds[name]:
                text = f"the column {name!r} has type {old} in one batch and {kinds[name]} in another"
                raise InputError(text, remedy=remedy)
        if not part.num_rows:
            continue
        if held and 2 * part.num_rows >= rows:
            more = _count_continued_rows(held[-1], part)
            held.append(part.slice(0, more))
            part = part.slice(more)
            if part.num_rows:
                yield _pass_new_queries(_concat_parts(held), seen)
                held = []
        held.append(part)
        if 2 * sum(p.num_rows for p in held) >= rows:
            table = _concat_parts(held)
            cut = _find_last_run(table.column("query"))
            if cut:
                yield _pass_new_queries(table.slice(0, cut), seen)
            held = [table.slice(cut)]
    if held:
        yield _pass_new_queries(_concat_parts(held), seen)


def _count_continued_rows(before: Any, part: Any) -> int:
    """Number of rows of `part` that belong to the last query of `before`; later rows are not read."""
    column = part.column("query")
    if column[0].as_py() != before.column("query")[-1].as_py():
        return 0
    for size in _iterate_window_sizes(len(column)):
        runs = find_run_starts(column.slice(0, size))
        if len(runs) > 2:
            return int(runs[1])
    return len(column)


def _find_last_run(column: Any) -> int:
    """The first of the trailing rows with the value of the last row."""
    for size in _iterate_window_sizes(len(column)):
        runs = find_run_starts(column.slice(len(column) - size))
        if len(runs) > 2:
            return len(column) - size + int(runs[-2])
    return 0


def _iterate_window_sizes(rows: int) -> Iterator[int]:
    size = 1 << 12
    while size < rows:
        yield size
        size *= 8
    yield rows


def _concat_parts(parts: list[Any]) -> Any:
    """Parts as one contiguous table."""
    pa = require_module("pyarrow")
    parts = [p for p in parts if p.num_rows]
    if len(parts) == 1:
        return parts[0].combine_chunks()
    # dictionaries are decoded if they have more texts than the parts have rows, so that merging them would
    # cost more, or if some part is already decoded
    names, costly, rows = parts[0].column_names, set(), sum(p.num_rows for p in parts)
    for name in names:
        there = [p.column(name) for p in parts if name in p.column_names]
        coded = [c for c in there if pa.types.is_dictionary(c.type)]
        texts = sum(len(chunk.dictionary) for c in coded for chunk in c.chunks)
        if texts > rows or 0 < len(coded) < len(there):
            costly.add(name)
    tables = [decode_dictionaries(p.select(names), costly) for p in parts]
    # some batches may declare a column as not nullable and others not
    kinds = [pa.schema([f.with_nullable(True).remove_metadata() for f in t.schema]) for t in tables]
    table = pa.concat_tables([t.cast(kind) for t, kind in zip(tables, kinds, strict=True)])
    return table.unify_dictionaries().combine_chunks()


def _pass_new_queries(table: Any, seen: set[Any]) -> QueryBatch:
    """The table, if none of its queries has been passed on before; they are added to `seen`."""
    refuse_missing(table, "query")
    starts = find_run_starts(table.column("query"))
    ids = take_run_values(table.column("query"), starts).to_pylist()
    fresh = set(ids)
    if len(fresh) < len(ids) or not fresh.isdisjoint(seen):
        again = next(i for k, i in enumerate(ids) if i in seen or i in ids[:k])
        raise InputError(
            f"query {again!r} reappears after rows of other queries",
            remedy="sort or group the rows by query (podium.scale.regroup, --regroup FOLDER)",
        )
    seen |= fresh
    return QueryBatch(table, starts)
