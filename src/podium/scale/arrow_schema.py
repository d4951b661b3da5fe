"""Arrow columns as Podium reads them: validated, coded, and never one Python object per row.

Conversion to numpy does not copy: pyarrow's own conversions import pandas if it is installed, which takes a
third of a second per worker.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError
from podium.core.optional import require_module
from podium.core.params import suggest_names
from podium.data.building.grouped import ListExperts
from podium.data.ids import LAST_INTEGER, Ids, code_ids
from podium.kernels.dispatch import I8
from podium.kernels.local_items import TextColumn, find_list_starts


def to_table(batch: Any) -> Any:
    """A record batch as a table."""
    pa = require_module("pyarrow")
    return pa.Table.from_batches([batch])


def to_single_array(column: Any) -> Any:
    """A column as one contiguous array."""
    pa = require_module("pyarrow")
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def to_numpy(column: Any) -> npt.NDArray[Any]:
    """A numeric column without missing values; the array is read-only."""
    flat = to_single_array(column)
    kind = np.dtype(flat.type.to_pandas_dtype())
    if not len(flat):
        return np.zeros(0, kind)
    return np.frombuffer(flat.buffers()[1], kind, len(flat), flat.offset * kind.itemsize)


def to_arrow(values: npt.NDArray[Any]) -> Any:
    """An Arrow array of numbers or booleans."""
    pa = require_module("pyarrow")
    bits = values.dtype == np.bool_
    data = np.packbits(values, bitorder="little") if bits else np.ascontiguousarray(values)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data.data)]
    )


LISTS = ("query", "expert", "item", "rank", "score")
VOTES = ("query", "expert", "winner", "loser", "tie", "weight")
_REMEDY = "columns: query, expert, item with rank and/or score; or query, expert, winner, loser (tie, weight)"


def resolve_columns(schema: Any) -> tuple[str, ...]:
    """The columns of a table that are read; a schema without a required column is an error."""
    there = list(schema.names)
    for name in {*LISTS, *VOTES}:
        if there.count(name) > 1:
            raise InputError(f"{there.count(name)} columns are named {name!r}", remedy="rename or drop one")
    votes = "winner" in there
    needed = ("query", "expert", "winner", "loser") if votes else ("query", "expert", "item")
    for name in needed:
        if name not in there:
            hint = suggest_names(name, there) if there else "it has no columns"
            raise InputError(f"the batch has no column {name!r} ({hint})", remedy=_REMEDY)
    read = tuple(name for name in (VOTES if votes else LISTS) if name in there)
    if not votes and "rank" not in read and "score" not in read:
        raise InputError("the batch has neither a 'rank' nor a 'score' column", remedy=_REMEDY)
    t = require_module("pyarrow").types
    for name in read:
        kind = schema.field(name).type
        value = kind.value_type if t.is_dictionary(kind) else kind
        if name in ("rank", "score", "weight"):
            good, accepted = t.is_integer(value) or t.is_floating(value) or t.is_decimal(value), "numbers"
        elif name == "tie":
            good, accepted = t.is_boolean(value) or t.is_integer(value), "true and false"
        else:
            good, accepted = t.is_integer(value) or is_text(value), "strings or integers"
        if not good:
            raise InputError(f"the column {name!r} has type {kind}", remedy=f"it must be {accepted}; cast it")
    return read


def select_column_names(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that name the columns of roles, such as {"item": "doc"}."""
    return {name: column for name, column in options.items() if name in (*LISTS, *VOTES)}


def is_text(kind: Any) -> bool:
    """Whether a type is a text type."""
    pa = require_module("pyarrow")
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def to_plain_type(kind: Any) -> Any:
    """The type of a result column: the type of the input ids, with dictionaries and views decoded."""
    pa = require_module("pyarrow")
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_string_view(value) else value


def decode_dictionaries(table: Any, names: Container[str] | None = None) -> Any:
    """The table with all dictionaries decoded, or only those of some columns."""
    pa = require_module("pyarrow")
    undone = [names is None or f.name in names for f in table.schema]
    kinds = [
        f.with_type(to_plain_type(f.type)) if u else f for f, u in zip(table.schema, undone, strict=True)
    ]
    return table.cast(pa.schema(kinds))


def normalize_columns(table: Any) -> Any:
    """The table in types that later steps support: text views become text, and dictionaries with missing
    values are decoded.
    """
    pa = require_module("pyarrow")
    for at, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        coded = pa.types.is_dictionary(field.type)
        value = field.type.value_type if coded else field.type
        views = pa.types.is_string_view(value)
        if views or (coded and any(chunk.dictionary.null_count for chunk in column.chunks)):
            kind, chunks = to_plain_type(value), column.chunks
            if coded:
                recode = pa.DictionaryArray.from_arrays
                chunks = [recode(chunk.indices, chunk.dictionary.cast(kind)) for chunk in chunks]
            decoded = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
            table = table.set_column(at, field.name, decoded)
    return table


def refuse_missing(table: Any, name: str) -> None:
    """Reject missing values in this column."""
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        where = f" (query {table.column('query')[row].as_py()!r})" if name != "query" else ""
        raise InputError(
            f"the {name} is missing{where}", source=f"row {row + 1} of a batch", remedy="every row needs one"
        )


def find_run_starts(column: Any) -> I8:
    """The rows at which the value changes, followed by the number of rows."""
    n = len(column)
    if n == 0:
        return np.zeros(1, np.int64)
    pa = require_module("pyarrow")
    flat = to_single_array(column)
    # numbers that are distinct for distinct values, if there are any
    value = to_numpy(flat) if pa.types.is_integer(flat.type) else None
    if pa.types.is_dictionary(flat.type):
        texts = flat.dictionary
        value = None if texts.null_count or len(texts.unique()) < len(texts) else to_numpy(flat.indices)
    if value is None:
        pc = require_module("pyarrow.compute")
        new = pc.not_equal(flat.slice(1), flat.slice(0, n - 1)).to_numpy(zero_copy_only=False)
    else:
        new = value[1:] != value[:-1]
    return np.concatenate(([0], np.flatnonzero(new) + 1, [n]))


def take_run_values(column: Any, starts: I8) -> Any:
    """The values of the runs of rows that `find_run_starts` found."""
    values = to_single_array(column).take(to_arrow(starts[:-1]))
    return values.cast(to_plain_type(values.type))


def to_ids(flat: Any) -> Ids | None:
    """Ids of an Arrow array without one Python object each; None for integers beyond 64 bits."""
    pa = require_module("pyarrow")
    if pa.types.is_integer(flat.type):
        values = to_numpy(flat)
        return None if values.max(initial=0) > LAST_INTEGER else Ids(values.astype(np.int64))
    return Ids.from_text(*_read_text_buffers(flat))


def _read_text_buffers(flat: Any) -> tuple[Any, I8]:
    """Bytes and offsets of an array of text."""
    pa = require_module("pyarrow")
    flat = flat.cast(pa.large_string())
    _, offsets, data = flat.buffers()
    window = slice(flat.offset, flat.offset + len(flat) + 1)
    ends = np.frombuffer(offsets, np.int64)[window] if len(flat) else np.zeros(1, np.int64)
    return np.frombuffer(data or b"", np.uint8), ends


def items_of(column: Any) -> npt.NDArray[Any] | TextColumn | None:
    """Item ids as integers or as coded text; None if neither is possible."""
    pa = require_module("pyarrow")
    flat = to_single_array(column)
    if pa.types.is_integer(flat.type):
        value = to_numpy(flat)
        if value.dtype == np.int32:
            return value
        return None if value.max(initial=0) > LAST_INTEGER else value.astype(np.int64, copy=False)
    if not pa.types.is_dictionary(flat.type):
        return TextColumn(None, *_read_text_buffers(flat))
    if not is_text(flat.dictionary.type) or flat.dictionary.null_count:
        return None
    return TextColumn(
        to_numpy(flat.indices).astype(np.int32, copy=False), *_read_text_buffers(flat.dictionary)
    )


def ranks_of(table: Any) -> npt.NDArray[np.int32] | None:
    """The ranks of a table; None if it has none, or if they are not whole numbers from 1 in range."""
    pa = require_module("pyarrow")
    if "rank" not in table.column_names or not pa.types.is_integer(table.schema.field("rank").type):
        return None
    value = to_numpy(table.column("rank"))
    if value.dtype == np.int32:
        return value
    fits = value.max(initial=1) <= 2**31 - 1 and value.min(initial=1) >= 1
    return value.astype(np.int32) if fits else None


def scores_of(table: Any) -> npt.NDArray[np.float64] | None:
    """The scores of a table, or None."""
    if "score" not in table.column_names:
        return None
    pa = require_module("pyarrow")
    return to_numpy(to_single_array(table.column("score")).cast(pa.float64(), safe=False))


def experts_of(column: Any, row_starts: I8, extra: Ids | None) -> ListExperts:
    """Lists, with codes over the experts in the table and additional known experts."""
    pa = require_module("pyarrow")
    flat = to_single_array(column)
    if not pa.types.is_dictionary(flat.type) and not pa.types.is_integer(flat.type):
        flat = flat.dictionary_encode()
    raw = to_numpy(flat.indices if pa.types.is_dictionary(flat.type) else flat)
    starts = find_list_starts(row_starts, raw)
    _, firsts, which = np.unique(raw[starts[:-1]], return_index=True, return_inverse=True)
    names = flat.take(to_arrow(starts[firsts]))
    known = names.cast(to_plain_type(names.type)).to_pylist() + ([] if extra is None else extra.tolist())
    codes, ids = code_ids(known, "expert").with_sorted_ids()
    return ListExperts(starts, codes[which].astype(np.int32), ids)
