"""Arrow columns as Podium reads them: checked, coded, and never one Python object per row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.data.grouped import Experts, Grouped, Text, from_grouped
from podium.data.preferences import Preferences, Unlisted
from podium.data.vocabulary import LAST_INTEGER, Ids, code_ids
from podium.errors import InputError
from podium.kernels.dispatch import I8, large
from podium.params import suggest

__all__ = ["LISTS", "VOTES", "heads", "plain", "preferences_of", "role_of"]

LISTS = ("query", "expert", "item", "rank", "score")
VOTES = ("query", "expert", "winner", "loser", "tie", "weight")
_REMEDY = "columns: query, expert, item with rank and/or score; or query, expert, winner, loser (tie, weight)"


def role_of(schema: Any) -> tuple[str, ...]:
    """The columns of a table that are read; a schema that lacks one of those needed is refused."""
    there = list(schema.names)
    votes = "winner" in there
    needed = ("query", "expert", "winner", "loser") if votes else ("query", "expert", "item")
    for name in needed:
        if name not in there:
            hint = suggest(name, there) if there else "it has no columns"
            raise InputError(f"the batch has no column {name!r} ({hint})", remedy=_REMEDY)
    read = tuple(name for name in (VOTES if votes else LISTS) if name in there)
    if not votes and "rank" not in read and "score" not in read:
        raise InputError("the batch has neither a column 'rank' nor 'score'", remedy=_REMEDY)
    for name in read:
        _check_type(name, schema.field(name).type)
    return read


def _check_type(name: str, kind: Any) -> None:
    import pyarrow as pa

    t = pa.types
    value = kind.value_type if t.is_dictionary(kind) else kind
    if name in ("rank", "score", "weight"):
        good, accepted = t.is_integer(value) or t.is_floating(value) or t.is_decimal(value), "numbers"
    elif name == "tie":
        good, accepted = t.is_boolean(value) or t.is_integer(value), "true and false"
    else:
        good, accepted = t.is_integer(value) or _is_text(value), "strings or integers"
    if not good:
        raise InputError(f"the column {name!r} is of type {kind}", remedy=f"it must hold {accepted}; cast it")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(kind: Any) -> Any:
    """The type of a column of results: that of the ids given, dictionaries undone."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


class Read(NamedTuple):
    """Preferences of a table; for every slot a row with its item, for every query one of its rows."""

    preferences: Preferences
    item_row: I8 | None  # None: nothing is known of rows, and results are made from ids
    query_row: I8 | None


def preferences_of(table: Any, unlisted: Unlisted, duplicates: str, extra_experts: Ids | None) -> Read:
    """A table of lists or votes as preferences; rows of one query may stand anywhere in it."""
    read = role_of(table.schema)
    table = table.select(list(read)).combine_chunks()
    for name in read:
        _refuse_missing(table, name)
    if "item" in read and large(table.num_rows):
        grouped = _fast(table, unlisted, extra_experts)
        if grouped is not None:
            return grouped
    sides = {"winner": "winner", "loser": "loser"} if "winner" in read else {"duplicates": duplicates}
    sides |= {name: name for name in ("tie", "weight") if name in read}
    made = Preferences.from_frame(_decoded(table), unlisted=unlisted, **sides)
    return Read(_with_experts(made, extra_experts), None, None)


def _refuse_missing(table: Any, name: str) -> None:
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        where = f" (query {table.column('query')[row].as_py()!r})" if name != "query" else ""
        raise InputError(
            f"the {name} is missing{where}", source=f"row {row + 1} of a batch", remedy="every row needs one"
        )


def _decoded(table: Any) -> Any:
    """The same without dictionaries, which a table of few rows need not have."""
    import pyarrow as pa

    kinds = [pa.field(f.name, plain(f.type)) for f in table.schema]
    return table.cast(pa.schema(kinds))


def _with_experts(made: Preferences, more: Ids | None) -> Preferences:
    """The same among more experts, some of whom say nothing here."""
    if more is None or all(made.experts.code_of(e) is not None for e in more):
        return made
    from dataclasses import replace

    known = made.experts
    both = code_ids(known.tolist() + more.tolist(), "expert").sorted()
    new = both.codes[: len(known)].astype(np.int32)
    lists = replace(made.lists, expert=new[made.lists.expert])
    votes = replace(made.comparisons, expert=new[made.comparisons.expert])
    return replace(made, experts=both.ids, lists=lists, comparisons=votes)


# -- the fast path ---------------------------------------------------------------------------------------------------


def _fast(table: Any, unlisted: Unlisted, extra: Ids | None) -> Read | None:
    starts = heads(table.column("query"))
    queries = _distinct_heads(table.column("query"), starts)
    item = _item(table.column("item"))
    rank, score = _rank(table), _score(table)
    if queries is None or item is None or (rank is None and "rank" in table.column_names):
        return None
    expert = _expert(table.column("expert"), starts, extra)
    found: Grouped | None = from_grouped(queries, starts, expert, item, rank, score, unlisted)
    return None if found is None else Read(found.preferences, found.first_row, starts[:-1])


def heads(column: Any) -> I8:
    """The rows at which another value begins, and the number of rows."""
    n = len(column)
    if n == 0:
        return np.zeros(1, np.int64)
    value = _comparable(column)
    if value is None:
        import pyarrow.compute as pc

        flat = _one(column)
        new = pc.not_equal(flat.slice(1), flat.slice(0, n - 1)).to_numpy(zero_copy_only=False)
    else:
        new = value[1:] != value[:-1]
    return np.concatenate(([0], np.flatnonzero(new) + 1, [n]))


def _one(column: Any) -> Any:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _comparable(column: Any) -> npt.NDArray[Any] | None:
    """Numbers that differ where the values do, or None."""
    import pyarrow as pa

    flat = _one(column)
    if pa.types.is_dictionary(flat.type):
        if flat.dictionary.null_count or len(flat.dictionary.unique()) < len(flat.dictionary):
            return None
        return np.asarray(flat.indices)
    return np.asarray(flat) if pa.types.is_integer(flat.type) else None


def _distinct_heads(column: Any, starts: I8) -> Ids | None:
    """Ids of runs of rows, or None where a query has several runs."""
    import pyarrow as pa

    few = _one(column).take(pa.array(starts[:-1]))
    if pa.types.is_dictionary(few.type):
        few = few.cast(few.type.value_type)
    if len(few.unique()) < len(few):
        return None
    return _as_ids(few)


def _as_ids(flat: Any) -> Ids | None:
    """Ids of an Arrow array without a Python object for each; None for integers beyond 64 bits."""
    import pyarrow as pa

    if pa.types.is_integer(flat.type):
        values = np.asarray(flat)
        return None if values.max(initial=0) > LAST_INTEGER else Ids(values.astype(np.int64))
    return Ids.from_text(*_buffers(flat))


def _buffers(flat: Any) -> tuple[Any, I8]:
    """Bytes and offsets of an array of text."""
    import pyarrow as pa

    flat = flat.cast(pa.large_string())
    _, offsets, data = flat.buffers()
    window = slice(flat.offset, flat.offset + len(flat) + 1)
    ends = np.frombuffer(offsets, np.int64)[window] if len(flat) else np.zeros(1, np.int64)
    return np.frombuffer(data or b"", np.uint8), ends


def _item(column: Any) -> npt.NDArray[Any] | Text | None:
    import pyarrow as pa

    flat = _one(column)
    if pa.types.is_integer(flat.type):
        value = np.asarray(flat)
        if value.dtype == np.int32:
            return value
        return None if value.max(initial=0) > LAST_INTEGER else value.astype(np.int64, copy=False)
    if not pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_encode()
    if not _is_text(flat.dictionary.type) or flat.dictionary.null_count:
        return None
    return Text(np.asarray(flat.indices).astype(np.int32, copy=False), *_buffers(flat.dictionary))


def _rank(table: Any) -> npt.NDArray[np.int32] | None:
    import pyarrow as pa

    if "rank" not in table.column_names or not pa.types.is_integer(table.schema.field("rank").type):
        return None
    value = np.asarray(_one(table.column("rank")))
    if value.dtype == np.int32:
        return value
    fits = value.max(initial=1) <= 2**31 - 1 and value.min(initial=1) >= 1
    return value.astype(np.int32) if fits else None


def _score(table: Any) -> npt.NDArray[np.float64] | None:
    if "score" not in table.column_names:
        return None
    import pyarrow as pa

    return np.asarray(_one(table.column("score")).cast(pa.float64(), safe=False))


def _expert(column: Any, row_starts: I8, extra: Ids | None) -> Experts:
    """Lists, with codes over the experts that speak here and those that are known besides."""
    import pyarrow as pa

    flat = _one(column)
    if not pa.types.is_dictionary(flat.type) and not pa.types.is_integer(flat.type):
        flat = flat.dictionary_encode()
    raw = np.asarray(flat.indices if pa.types.is_dictionary(flat.type) else flat)
    new = np.concatenate(([True], raw[1:] != raw[:-1], [True]))
    new[row_starts] = True
    starts = np.flatnonzero(new)
    _, firsts, which = np.unique(raw[starts[:-1]], return_index=True, return_inverse=True)
    names = flat.take(pa.array(starts[firsts]))
    known = names.cast(plain(names.type)).to_pylist() + ([] if extra is None else extra.tolist())
    codes, ids = code_ids(known, "expert").sorted()
    return Experts(starts, codes[which].astype(np.int32), ids)
