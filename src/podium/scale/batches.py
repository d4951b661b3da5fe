"""The one function that all engines carry around: Arrow batches of preferences in, Arrow batches of results out.

Rows of one query stay together: a table holds whole queries, and in a stream a query may go on in the next batch but
not come back later. Nothing but bytes and plain values travels to other processes, so the function can be sent
anywhere that Podium is installed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.vocabulary import Ids
from podium.errors import InputError, ParameterError
from podium.scale.columns import heads, plain, preferences_of, role_of

if TYPE_CHECKING:
    from podium.aggregators.base import Aggregator
    from podium.data.build import Duplicates
    from podium.data.consensus import Consensus, TieRule
    from podium.data.preferences import Preferences, Unlisted
    from podium.kernels.dispatch import I8
    from podium.scale.columns import Read

__all__ = ["ROWS", "BatchFunction", "batch_function"]

ROWS = 1 << 19  # rows to work on at a time: enough for compiled kernels, few enough for the caches


@dataclass(frozen=True)
class BatchFunction:
    """Ranks the queries of a batch; made by `batch_function`.

    Call it with a `pyarrow.Table` or `RecordBatch` of whole queries, or with an iterator of record batches in which
    the rows of a query follow each other; it gives back the same kind.
    """

    model: bytes  # as `podium.models` writes it
    top: int | None = None
    ties: TieRule = "item"
    unlisted: Unlisted = "unknown"
    duplicates: Duplicates = "error"
    keep: tuple[str, ...] = ()

    @functools.cached_property
    def aggregator(self) -> Aggregator:
        """The method, read from its bytes where it is needed."""
        from podium.models.files import loads

        loaded: Aggregator = loads(self.model)
        return loaded

    @property
    def __name__(self) -> str:
        """What engines call it; some ask a function for its name."""
        return f"podium {self.aggregator.name}"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "aggregator"}

    @property
    def fingerprint(self) -> str:
        """What results depend on besides the rows: method, learned values, options."""
        from podium.models.files import fingerprint

        options = (self.top, self.ties, self.unlisted, self.duplicates, self.keep)
        return f"{fingerprint(self.aggregator)} {options!r}"

    def __call__(self, *batches: Any) -> Any:
        """A table gives a table, a record batch a record batch, an iterator of them an iterator.

        It takes one argument; Spark counts those that have names, `self` among them, and would give a key as well.
        """
        import pyarrow as pa

        (batch,) = batches
        if isinstance(batch, pa.Table):
            return self._answer(batch)
        if isinstance(batch, pa.RecordBatch):
            whole = self._answer(pa.Table.from_batches([batch])).combine_chunks()
            return pa.RecordBatch.from_arrays([_one(c) for c in whole.columns], schema=whole.schema)
        if isinstance(batch, Iterable):
            return self.over(batch)
        raise InputError(
            f"the batch is a {type(batch).__name__}",
            remedy="give a pyarrow table, a record batch or an iterator",
        )

    def over(self, batches: Iterable[Any], rows: int = ROWS) -> Iterator[Any]:
        """Record batches of results for a stream of record batches, about `rows` rows at a time."""
        for table in self.tables(batches, rows):
            yield from table.combine_chunks().to_batches()

    def tables(self, batches: Iterable[Any], rows: int = ROWS) -> Iterator[Any]:
        """The same as tables."""
        for whole in whole_queries(batches, rows):
            yield self._answer(whole)

    def schema(self, given: Any) -> Any:
        """The schema of the results for batches of a schema."""
        import pyarrow as pa

        read = role_of(given)
        item = plain(given.field("winner" if "winner" in read else "item").type)
        kept = [pa.field(name, plain(_field(given, name).type)) for name in self.keep]
        return pa.schema(
            [
                pa.field("query", plain(given.field("query").type)),
                pa.field("item", item),
                pa.field("rank", pa.int32()),
                pa.field("score", pa.float64()),
                pa.field("tied", pa.bool_()),
                *kept,
            ]
        )

    def rank(self, preferences: Preferences) -> Consensus:
        """The consensus on preferences that are in memory."""
        return self.aggregator.aggregate(preferences, ties=self.ties)

    @functools.cached_property
    def _named(self) -> Ids | None:
        """Experts that have a weight by name: a batch in which one of them is silent must know of them."""
        weights = self.aggregator.weights
        return Ids(list(weights)) if isinstance(weights, dict) else None

    def _answer(self, table: Any) -> Any:
        schema = self.schema(table.schema)
        if not table.num_rows:
            return schema.empty_table()
        read = preferences_of(table, self.unlisted, self.duplicates, self._named)
        consensus = self.rank(read.preferences)
        return _results(consensus, read, table, schema, self.top, self.keep)


def batch_function(
    aggregator: Aggregator | str,
    *,
    top: int | None = None,
    ties: TieRule = "item",
    unlisted: Unlisted = "unknown",
    duplicates: Duplicates = "error",
    keep: Iterable[str] = (),
) -> BatchFunction:
    """A function from Arrow batches (query, expert, item, rank and/or score) to (query, item, rank, score, tied).

    `aggregator` is a method, its name or printed form, or the path of a saved model (`*.podium`). `keep` names
    columns that are the same for all rows of a query and are passed on. The function can be pickled.

    >>> import pyarrow as pa
    >>> rrf = batch_function("rrf(k=1)")
    >>> batch = pa.table({"query": [7] * 4, "expert": ["a", "a", "b", "b"], "item": [1, 2, 2, 3], "rank": [1, 2, 1, 2]})
    >>> rrf(batch).select(["query", "item", "rank"]).to_pylist()[:2]
    [{'query': 7, 'item': 2, 'rank': 1}, {'query': 7, 'item': 1, 'rank': 2}]
    """
    from podium import models
    from podium.aggregators.base import Aggregator, make
    from podium.models.files import dumps

    given: Any = aggregator
    method = models.load(given) if isinstance(given, str) and given.endswith(".podium") else given
    if not isinstance(method, Aggregator) and not isinstance(method, str):
        raise ParameterError(
            f"{getattr(method, 'name', type(method).__name__)} does not rank lists; give a method such as 'rrf'"
        )
    method = make(method)
    _check(method, top)
    return BatchFunction(dumps(method), top, ties, unlisted, duplicates, tuple(keep))


def _check(method: Aggregator, top: int | None) -> None:
    if not method.tags.per_query:
        raise ParameterError(
            f"the answer of {method.name} to a query depends on the other queries, so batches cannot be ranked alone; "
            "use it in memory, or fit on a sample and apply what was learned"
        )
    if method.weights is not None and not isinstance(method.weights, dict):
        raise ParameterError(
            f"{method.name}: weights in order do not fit batches that lack an expert; give them by name"
        )
    if top is not None and top < 1:
        raise ParameterError(f"top is {top}; accepted: whole numbers from 1")


# -- streams ---------------------------------------------------------------------------------------------------------


def whole_queries(batches: Iterable[Any], rows: int = ROWS) -> Iterator[Any]:
    """Tables of at least `rows` rows (the last: fewer) cut between queries; a query that comes back is refused.

    Memory is bounded by `rows`, a batch and the largest query, besides one id for every query seen.
    """
    import pyarrow as pa

    held: list[Any] = []
    count, seen = 0, _Seen()
    for batch in batches:
        part = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        role_of(part.schema)
        held.append(part)
        count += part.num_rows
        if count < rows:
            continue
        table = _joined(held)
        starts = heads(table.column("query"))
        cut = int(starts[-2]) if len(starts) > 1 else 0
        if cut:
            seen.add(table.column("query"), starts[:-2])
            yield table.slice(0, cut)
        held, count = [table.slice(cut)], table.num_rows - cut
    if held:
        table = _joined(held)
        starts = heads(table.column("query"))
        seen.add(table.column("query"), starts[:-1])
        yield table


def _joined(parts: list[Any]) -> Any:
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    try:
        table = pa.concat_tables(parts)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"the batches differ in their columns: {error}"[:300], remedy="cast them to one schema"
        ) from None
    if any(pa.types.is_dictionary(f.type) for f in table.schema):
        table = table.unify_dictionaries()
    return table.combine_chunks()


class _Seen:
    """Queries whose rows have been handed on."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()

    def add(self, column: Any, firsts: I8) -> None:
        import pyarrow as pa

        ids = column.take(pa.array(firsts)).to_pylist()
        fresh = set(ids)
        if len(fresh) < len(ids) or not fresh.isdisjoint(self._ids):
            again = next(i for k, i in enumerate(ids) if i in self._ids or i in ids[:k])
            raise InputError(
                f"query {again!r} comes back after the rows of other queries",
                remedy="sort or group the rows by query (podium.scale.regroup, --regroup FOLDER)",
            )
        self._ids |= fresh


# -- results ---------------------------------------------------------------------------------------------------------


def _results(
    consensus: Consensus, read: Read, table: Any, schema: Any, top: int | None, keep: tuple[str, ...]
) -> Any:
    import pyarrow as pa

    index = consensus.index
    sizes = index.sizes if top is None else np.minimum(index.sizes, top)
    ends = np.cumsum(sizes)
    place = np.arange(int(ends[-1]), dtype=np.int64) - np.repeat(ends - sizes, sizes)
    shown = place + np.repeat(index.starts[:-1], sizes) if top is not None else slice(None)
    slots = consensus.order[shown]
    if read.item_row is None or read.query_row is None:
        frame = consensus.to_frame(top=top)
        query, item = (frame.column(name).cast(schema.field(name).type) for name in ("query", "item"))
        rows = _query_rows(table.column("query"), index.queries) if keep else None
    else:
        rows = read.query_row
        item = _of_ids(index.items, slots, schema.field("item").type)
        query = _of_ids(index.queries, np.repeat(np.arange(len(index)), sizes), schema.field("query").type)
        if item is None:
            item = _taken(table.column("item"), read.item_row[slots], schema.field("item").type)
        if query is None:
            query = _taken(table.column("query"), np.repeat(rows, sizes), schema.field("query").type)
    columns = [
        query,
        item,
        (place + 1).astype(np.int32),
        consensus.scores[slots],
        pa.array(consensus.tied[shown]),
    ]
    for name in keep:
        assert rows is not None
        _check_constant(table, name)
        columns.append(_taken(table.column(name), np.repeat(rows, sizes), schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


def _of_ids(ids: Ids, codes: Any, kind: Any) -> Any:
    """Ids that are held as integers, as an array of the type asked for; None for others."""
    import pyarrow as pa

    if ids.integers is None:
        return None
    return pa.array(ids.integers.astype(kind.to_pandas_dtype(), copy=False)[codes])


def _taken(column: Any, rows: I8, kind: Any) -> Any:
    """Values of rows, as an array of the type asked for."""
    import pyarrow as pa

    flat = _one(column)
    if pa.types.is_integer(flat.type) and not flat.null_count:
        return pa.array(np.asarray(flat)[rows], kind)
    taken = flat.take(pa.array(rows))
    return taken if taken.type == kind else taken.cast(kind)


def _one(column: Any) -> Any:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _query_rows(column: Any, queries: Ids) -> I8:
    """A row of every query."""
    ids = column.to_pylist()
    where = {value: row for row, value in zip(range(len(ids) - 1, -1, -1), reversed(ids), strict=True)}
    return np.array([where[q] for q in queries.tolist()], np.int64)


def _field(schema: Any, name: str) -> Any:
    from podium.params import suggest

    if name not in schema.names:
        raise InputError(f"the batch has no column {name!r} to keep", remedy=suggest(name, schema.names))
    return schema.field(name)


def _check_constant(table: Any, name: str) -> None:
    """A column that is kept has one value for each query."""
    import pyarrow.compute as pc

    pairs = table.select(["query", name]).combine_chunks()
    grouped = pairs.group_by("query").aggregate([(name, "count_distinct", pc.CountOptions(mode="all"))])
    several = pc.greater(grouped.column(f"{name}_count_distinct"), 1)
    if pc.any(several).as_py():
        query = grouped.column("query").filter(several)[0].as_py()
        raise InputError(
            f"query {query!r} has several values of {name!r}",
            remedy="a column that is kept has one for each query",
        )
