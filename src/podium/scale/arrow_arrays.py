"""Conversion between Arrow and numpy without a copy.

pyarrow's own conversions import pandas if it is installed, which takes a third of a second per worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.core.optional import require_module

__all__ = ["to_arrow", "to_numpy", "to_single_array", "to_table"]


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
