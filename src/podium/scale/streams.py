"""Streams of record batches cut between queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.errors import InputError
from podium.scale.arrays import arrow
from podium.scale.columns import decoded, heads, plain, refuse_missing, role_of, settled

if TYPE_CHECKING:
    from podium.kernels.dispatch import I8

__all__ = ["ARROW", "ROWS", "Piece", "whole_queries"]

ROWS = 1 << 20  # rows to work on at a time: enough for compiled kernels, few enough for the caches


ARROW = "give a pyarrow table, a record batch or an iterator of them (Ray: batch_format='pyarrow')"


class Piece(NamedTuple):
    """A table of whole queries, and the rows at which they begin (and the number of rows)."""

    table: Any
    starts: I8


def whole_queries(batches: Iterable[Any], rows: int = ROWS) -> Iterator[Piece]:
    """Tables of about `rows` rows, each column in one piece, cut between queries; a query that comes back is refused.

    Small batches are joined. Of large ones only the query at the seam is copied, and comes as a table of its own.
    Memory is bounded by `rows`, a batch and the largest query, besides one id for every query seen.
    """
    import pyarrow as pa

    held: list[Any] = []  # the last query of which may go on
    kinds: dict[str, Any] = {}
    seen = _Seen()
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise InputError(f"one of the batches is a {type(batch).__name__}", remedy=ARROW)
        part = settled(pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch)
        role_of(part.schema)
        kinds = _same_kinds(part.schema, kinds)
        if not part.num_rows:
            continue
        if held and 2 * part.num_rows >= rows:
            more = _continued(held[-1], part)
            held.append(part.slice(0, more))
            part = part.slice(more)
            if part.num_rows:
                yield seen.checked(_joined(held))
                held = []
        held.append(part)
        if 2 * sum(p.num_rows for p in held) >= rows:
            table = _joined(held)
            cut = _last_run(table.column("query"))
            if cut:
                yield seen.checked(table.slice(0, cut))
            held = [table.slice(cut)]
    if held:
        yield seen.checked(_joined(held))


def _same_kinds(schema: Any, before: dict[str, Any]) -> dict[str, Any]:
    """Columns and their types, which must be those of the batches before."""
    kinds = {field.name: plain(field.type) for field in schema}
    for name in kinds.keys() ^ before.keys() if before else ():
        raise InputError(f"only some of the batches have a column {name!r}", remedy="cast them to one schema")
    for name, kind in kinds.items():
        if before and before[name] != kind:
            raise InputError(
                f"the column {name!r} is of type {before[name]} in one batch and {kind} in another",
                remedy="cast them to one schema",
            )
    return kinds


def _continued(before: Any, part: Any) -> int:
    """How many rows of `part` belong to the last query of `before`."""
    query, last = part.column("query"), before.column("query")[-1].as_py()
    return _first_run(query) if query[0].as_py() == last else 0


def _first_run(column: Any) -> int:
    """How many rows have the value of the first one, found without a look at the others."""
    for size in _windows(len(column)):
        runs = heads(column.slice(0, size))
        if len(runs) > 2:
            return int(runs[1])
    return len(column)


def _last_run(column: Any) -> int:
    """The first of the rows that have the value of the last one."""
    for size in _windows(len(column)):
        runs = heads(column.slice(len(column) - size))
        if len(runs) > 2:
            return len(column) - size + int(runs[-2])
    return 0


def _windows(rows: int) -> Iterator[int]:
    size = 1 << 12
    while size < rows:
        yield size
        size *= 8
    yield rows


def _joined(parts: list[Any]) -> Any:
    """Parts as one table in one piece."""
    import pyarrow as pa

    parts = [p for p in parts if p.num_rows]
    if len(parts) == 1:
        return parts[0].combine_chunks()
    costly = _costly(parts)
    names = parts[0].column_names
    table = pa.concat_tables([_nullable(decoded(p.select(names), costly)) for p in parts])
    return table.unify_dictionaries().combine_chunks()


def _nullable(table: Any) -> Any:
    """The same with all columns declared alike, as some batches may say that nothing is missing and others not."""
    import pyarrow as pa

    return table.cast(pa.schema([f.with_nullable(True).remove_metadata() for f in table.schema]))


def _costly(parts: list[Any]) -> set[str]:
    """Columns whose dictionaries are better undone: they have more texts than the parts have rows, so that making one
    of them would cost more, or are undone in a part already.
    """
    import pyarrow as pa

    found, rows = set(), sum(p.num_rows for p in parts)
    for name in parts[0].column_names:
        there = [p.column(name) for p in parts if name in p.column_names]
        coded = [c for c in there if pa.types.is_dictionary(c.type)]
        texts = sum(len(chunk.dictionary) for c in coded for chunk in c.chunks)
        if texts > rows or 0 < len(coded) < len(there):
            found.add(name)
    return found


class _Seen:
    """Queries whose rows have been handed on."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()

    def checked(self, table: Any) -> Piece:
        """The table, if none of its queries has been there before."""
        refuse_missing(table, "query")
        column = table.column("query")
        starts = heads(column)
        ids = column.take(arrow(starts[:-1])).to_pylist()
        fresh = set(ids)
        if len(fresh) < len(ids) or not fresh.isdisjoint(self._ids):
            again = next(i for k, i in enumerate(ids) if i in self._ids or i in ids[:k])
            raise InputError(
                f"query {again!r} comes back after the rows of other queries",
                remedy="sort or group the rows by query (podium.scale.regroup, --regroup FOLDER)",
            )
        self._ids |= fresh
        return Piece(table, starts)
