"""The only module that knows dataframe libraries: pandas, polars, pyarrow, anything narwhals speaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from podium.data.build import Duplicates
from podium.data.vocabulary import LAST_INTEGER, Coded, Ids, code_ids
from podium.errors import InputError, ParameterError
from podium.kernels.dispatch import I8
from podium.params import suggest

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences, Unlisted

__all__ = [
    "Frame",
    "comparisons_frame",
    "consensus_frame",
    "labels_frame",
    "lists_frame",
    "read_labels",
    "read_preferences",
    "records_frame",
    "values_frame",
]

Frame = Literal["pyarrow", "pandas", "polars"]


def read_preferences(
    frame: Any,
    *,
    query: str | None = "query",
    expert: str | None = "expert",
    item: str = "item",
    rank: str | None = None,
    score: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    tie: str | None = None,
    weight: str | None = None,
    duplicates: Duplicates = "error",
    unlisted: Unlisted = "unknown",
) -> Preferences:
    """Lists (item with rank and/or score) or, when `winner` is given, comparisons.

    `query=None` or `expert=None` mean one query or one expert for all rows.

    >>> import pyarrow as pa
    >>> table = pa.table({"query": [1, 1], "expert": ["e", "e"], "item": ["a", "b"], "score": [1.0, 2.0]})
    >>> read_preferences(table, score="score").lists.item.tolist()
    [1, 0]
    """
    from podium.data.preferences import Preferences

    table = _narwhal(frame)
    if winner is None and rank is None and score is None:
        rank = "rank" if "rank" in table.columns else None
        score = "score" if "score" in table.columns else None
    n = len(table)
    common = (_ids(table, query, "query", n), _ids(table, expert, "expert", n))
    if winner is not None:
        if loser is None:
            raise ParameterError("winner= names a column but loser= does not; comparisons need both")
        sides = (_ids(table, winner, "winner", n), _ids(table, loser, "loser", n))
        ties = None if tie is None else _column(table, tie)
        return Preferences.from_comparisons(*common, *sides, tie=ties, weight=_optional(table, weight))
    return Preferences.from_rows(
        *common,
        _ids(table, item, "item", n),
        rank=_optional(table, rank),
        score=_optional(table, score),
        duplicates=duplicates,
        unlisted=unlisted,
    )


def read_labels(
    frame: Any, *, query: str | None = "query", item: str = "item", grade: str = "grade"
) -> Labels:
    """Labels from a dataframe."""
    from podium.data.labels import Labels

    table = _narwhal(frame)
    n = len(table)
    return Labels.from_rows(
        _ids(table, query, "query", n), _ids(table, item, "item", n), _column(table, grade)
    )


def _narwhal(frame: Any) -> Any:
    import narwhals.stable.v2 as nw

    try:
        table = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"cannot read a {type(frame).__name__} as a dataframe", remedy="give pandas, polars or pyarrow"
        ) from error
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def _column(table: Any, name: str) -> npt.NDArray[Any]:
    if name not in table.columns:
        raise InputError(f"the table has no column {name!r}", remedy=suggest(name, table.columns))
    return np.asarray(table[name].to_numpy())


def _optional(table: Any, name: str | None) -> npt.NDArray[Any] | None:
    return None if name is None else _column(table, name)


def _ids(table: Any, name: str | None, what: str, n: int) -> Coded:
    """A column of ids; coded by Arrow where it holds strings, since that is where the time goes."""
    if name is None:
        return Coded(np.zeros(n, np.int64), Ids([what] if n else []))
    if name not in table.columns:
        raise InputError(f"the table has no column {name!r}", remedy=suggest(name, table.columns))
    column = table[name]
    if column.null_count():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"the {what} id is missing", source=f"row {row + 1}", remedy="every row needs one")
    if column.dtype.is_integer():
        return code_ids(column.to_numpy(), what)
    import pyarrow as pa

    try:
        arrow = column.to_arrow()
    except pa.ArrowInvalid:  # strings and integers side by side
        return code_ids(column.to_list(), what)
    if pa.types.is_dictionary(arrow.type):
        arrow = arrow.cast(arrow.type.value_type)
    if not (
        pa.types.is_string(arrow.type)
        or pa.types.is_large_string(arrow.type)
        or pa.types.is_string_view(arrow.type)
    ):
        return code_ids(arrow.to_pylist(), what)
    encoded = arrow.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: I8 = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(codes, Ids(encoded.dictionary.to_pylist()))


def _native(columns: dict[str, Any], backend: Frame) -> Any:
    import pyarrow as pa

    table = pa.table(columns)
    if backend == "pyarrow":
        return table
    import narwhals.stable.v2 as nw

    if backend not in ("pandas", "polars"):
        raise ParameterError(f"backend is {backend!r}; accepted: pyarrow, pandas, polars")
    return nw.from_arrow(table, backend=backend).to_native()


def _arrow_ids(ids: Ids, codes: npt.NDArray[Any]) -> Any:
    """Ids of rows as an Arrow column: integers, or strings (also for a mixture, of which Arrow has no type)."""
    import pyarrow as pa

    if ids.buffer is not None and ids.offsets is not None:
        taken = ids.take(codes)
        assert taken.buffer is not None
        assert taken.offsets is not None
        buffers = [None, pa.py_buffer(np.ascontiguousarray(taken.offsets)), pa.py_buffer(taken.buffer)]
        return pa.LargeStringArray.from_buffers(len(codes), *buffers[1:])
    values = ids.tolist()
    whole = all(isinstance(v, int) and abs(v) <= LAST_INTEGER for v in values) and bool(values)
    if not whole:
        texts = [str(v) for v in values]
        if len(set(texts)) < len(set(values)):
            raise InputError("two ids differ only in their type", remedy="use strings or integers, not both")
        values = list(texts)
    kind = pa.int64() if whole else pa.string()
    return pa.array(values, kind).take(pa.array(np.asarray(codes, np.int64)))


def lists_frame(preferences: Preferences, backend: Frame) -> Any:
    """Rows of the lists: query, expert, item, rank and, where there are scores, score."""
    lists, index = preferences.lists, preferences.index
    columns = {
        "query": _arrow_ids(index.queries, lists.query_of_list[lists.list_of_row]),
        "expert": _arrow_ids(preferences.experts, lists.expert[lists.list_of_row]),
        "item": _arrow_ids(index.items, lists.item),
        "rank": lists.rank,
    }
    if lists.score is not None:
        columns["score"] = lists.score
    return _native(columns, backend)


def comparisons_frame(preferences: Preferences, backend: Frame) -> Any:
    """Rows of the votes: query, expert, winner, loser, tie, weight."""
    votes, index = preferences.comparisons, preferences.index
    columns = {
        "query": _arrow_ids(index.queries, votes.query_of_row),
        "expert": _arrow_ids(preferences.experts, votes.expert),
        "winner": _arrow_ids(index.items, votes.winner),
        "loser": _arrow_ids(index.items, votes.loser),
        "tie": votes.tie,
        "weight": votes.weight,
    }
    return _native(columns, backend)


def labels_frame(labels: Labels, backend: Frame) -> Any:
    """Rows of the judged items: query, item, grade."""
    judged = np.flatnonzero(~np.isnan(labels.grades))
    columns = {
        "query": _arrow_ids(labels.queries, labels.index.query_of_slot[judged]),
        "item": _arrow_ids(labels.index.items, judged),
        "grade": labels.grades[judged],
    }
    return _native(columns, backend)


def consensus_frame(consensus: Consensus, backend: Frame, top: int | None = None) -> Any:
    """Rows of the result, best first: query, item, rank, score, tied."""
    index = consensus.index
    place = np.arange(len(consensus.order)) - index.starts[index.query_of_slot]
    shown = np.flatnonzero(place < top) if top is not None else np.arange(len(place))
    slots = consensus.order[shown]
    columns = {
        "query": _arrow_ids(index.queries, index.query_of_slot[shown]),
        "item": _arrow_ids(index.items, slots),
        "rank": place[shown] + 1,
        "score": consensus.scores[slots],
        "tied": consensus.tied[shown],
    }
    return _native(columns, backend)


def values_frame(queries: Ids, columns: dict[str, npt.NDArray[Any]], backend: Frame) -> Any:
    """One row per query: its id, then one column per value."""
    return _native({"query": _arrow_ids(queries, np.arange(len(queries))), **columns}, backend)


def records_frame(records: Sequence[Any], kind: type, key: str, backend: Frame) -> Any:
    """One row per record, one column per field of its dataclass; `key` is a field of ids, texts are put in a row by
    commas, and None is missing.
    """
    columns: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(kind)):
        values = [getattr(record, name) for record in records]
        if name == key:
            columns[name] = _arrow_ids(Ids(values), np.arange(len(values)))
        else:
            columns[name] = [", ".join(v) if isinstance(v, tuple) else v for v in values]
    return _native(columns, backend)
