"""Ids and their dense integer codes.

Ids are strings or integers and keep their type; `1` and `"1"` are two ids. Id order is defined here: integers
before strings, integers by value, strings by code point (which is also the order of their UTF-8 bytes).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError
from podium.kernels import segments
from podium.kernels.dispatch import I8, U1

__all__ = ["CodedColumn", "Column", "Id", "Ids", "code_ids", "id_order"]

Id: TypeAlias = str | int
LAST_INTEGER = 2**63 - 1  # larger ids stay Python objects


def id_order(value: Id) -> tuple[bool, Id]:
    """Sort key that puts integers before strings.

    >>> sorted(["b", 10, "a", 9], key=id_order)
    [9, 10, 'a', 'b']
    """
    return isinstance(value, str), value


class Ids(Sequence[Id]):
    """An immutable column of ids: Python objects, 64-bit integers, or UTF-8 text in one buffer.

    >>> Ids(["x", 7])[1], Ids.from_text(np.frombuffer(b"d1d22", np.uint8), np.array([0, 2, 5])).tolist()
    (7, ['d1', 'd22'])
    """

    __slots__ = ("__dict__", "_values", "buffer", "offsets")

    def __init__(self, values: Sequence[Id] | npt.NDArray[Any]) -> None:
        self.buffer: U1 | None = None
        self.offsets: I8 | None = None
        if isinstance(values, np.ndarray) and values.dtype.kind == "i":
            self._values: npt.NDArray[Any] = values.astype(np.int64, copy=False)
        else:
            self._values = np.empty(len(values), dtype=object)
            self._values[:] = values

    @classmethod
    def from_text(cls, buffer: U1, offsets: I8) -> Ids:
        """Ids of which the i-th is `buffer[offsets[i]:offsets[i + 1]]` in UTF-8; decoded on demand."""
        ids = cls(())
        ids.buffer, ids.offsets = buffer, offsets
        return ids

    @property
    def is_text(self) -> bool:
        """Whether the ids are stored in one UTF-8 buffer."""
        return self.buffer is not None

    @property
    def integers(self) -> I8 | None:
        """The ids as an array, if they are stored as 64-bit integers."""
        return self._values if self.buffer is None and self._values.dtype.kind == "i" else None

    def __len__(self) -> int:
        return len(self._values) if self.offsets is None else len(self.offsets) - 1

    @overload
    def __getitem__(self, at: int) -> Id: ...
    @overload
    def __getitem__(self, at: slice) -> list[Id]: ...
    def __getitem__(self, at: int | slice) -> Id | list[Id]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if self.buffer is None or self.offsets is None:
            value: Id = self._values.item(at)
            return value
        at = range(len(self))[at]
        return self.buffer[self.offsets[at] : self.offsets[at + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[Id]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.tolist() == other.tolist())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ids({self[:5]!r}{', ...' if len(self) > 5 else ''}, n={len(self)})"

    def tolist(self) -> list[Id]:
        """All ids as Python objects."""
        if self.buffer is None or self.offsets is None:
            return self._values.tolist()  # type: ignore[no-any-return]
        base = int(self.offsets[0])
        raw = self.buffer[base : self.offsets[-1]].tobytes()
        ends = (self.offsets - base).tolist()
        if raw.isascii():
            text = raw.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [raw[a:b].decode() for a, b in pairwise(ends)]

    def take(self, codes: npt.NDArray[np.integer[Any]]) -> Ids:
        """The ids at those positions."""
        if self.buffer is None or self.offsets is None:
            taken = Ids(())
            taken._values = self._values[codes]
            return taken
        offsets, where = segments.gather_segments(self.offsets, np.asarray(codes, np.int64))
        return Ids.from_text(self.buffer[where], offsets)

    def codes_by_id(self) -> I8:
        """The positions of all ids, in id order."""
        if self.integers is not None:
            return np.argsort(self.integers, kind="stable")
        values: list[Any] = self.tolist()
        if self.is_text:
            return np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)
        return np.array(sorted(range(len(values)), key=lambda code: id_order(values[code])), np.int64)

    def code_of(self, value: Id) -> int | None:
        """Position of an id, or None; the ids of the column must be unique."""
        return self._codes.get(value)

    def codes_of(self, values: Ids) -> I8:
        """Position in this column of each id of another column, or -1."""
        get = self._codes.get
        return np.array([get(value, -1) for value in values.tolist()], np.int64)

    @functools.cached_property
    def as_text(self) -> Ids | None:
        """The same ids in one UTF-8 buffer, or None if some are not strings that UTF-8 can encode."""
        if self.is_text:
            return self
        values: list[Any] = self.tolist()
        try:
            whole = "".join(values)
            raw = whole.encode()
        except (TypeError, UnicodeEncodeError):
            return None
        lengths = map(len, values if whole.isascii() else (v.encode() for v in values))
        offsets = segments.offsets(np.fromiter(lengths, np.int64, len(values)))
        # a copy: kernels take writable arrays
        return Ids.from_text(np.frombuffer(raw, np.uint8).copy(), offsets)

    @functools.cached_property
    def _codes(self) -> dict[Id, int]:
        return {value: i for i, value in enumerate(self.tolist())}


class CodedColumn(NamedTuple):
    """A column as integer codes into its distinct ids."""

    codes: I8
    ids: Ids

    def with_sorted_ids(self) -> CodedColumn:
        """The same column with its distinct ids in id order."""
        order = self.ids.codes_by_id()
        if (order[1:] > order[:-1]).all():
            return self
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return CodedColumn(place[self.codes], self.ids.take(order))

    @staticmethod
    def concat(columns: Sequence[CodedColumn], what: str) -> CodedColumn:
        """Concatenated columns over one set of ids, in order of first appearance."""
        union = code_ids([v for c in columns for v in c.ids.tolist()], what)
        first = segments.offsets([len(c.ids) for c in columns])
        parts = [union.codes[f + c.codes] for f, c in zip(first, columns, strict=False)]
        return CodedColumn(np.concatenate(parts), union.ids)


Column = Sequence[Any] | npt.NDArray[Any] | CodedColumn


def code_ids(values: Column, what: str) -> CodedColumn:
    """Codes in order of first appearance; other values than strings and integers are an error.

    A column that has codes already is returned as it is.

    >>> code_ids(["b", "a", "b"], "item").codes.tolist()
    [0, 1, 0]
    """
    if isinstance(values, CodedColumn):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.max(initial=0) <= LAST_INTEGER:
        return _code_integers(values)
    plain: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    kinds = set(map(type, plain))
    if not kinds <= {str, int}:
        for row, value in enumerate(plain):
            if isinstance(value, str):
                plain[row] = str(value)
            elif isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_):
                plain[row] = int(value)
            else:
                raise InputError(
                    f"the {what} id is {value!r} ({type(value).__name__})",
                    source=f"row {row + 1}",
                    remedy="ids are strings or integers",
                )
    seen = {value: code for code, value in enumerate(dict.fromkeys(plain))}
    return CodedColumn(np.fromiter(map(seen.__getitem__, plain), np.int64, len(plain)), Ids(list(seen)))


def _code_integers(values: npt.NDArray[Any]) -> CodedColumn:
    values = values.astype(np.int64, copy=False)  # differences of narrow types would overflow
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low <= 4 * len(values):
        # one flag per possible value is cheaper than sorting all values
        first = np.full(high - low + 1, -1, np.int64)
        # written in reverse, so that the first appearance wins
        first[values[::-1] - low] = np.arange(len(values) - 1, -1, -1)
        distinct = np.flatnonzero(first >= 0)
        distinct = distinct[np.argsort(first[distinct])]
        code = np.empty(high - low + 1, np.int64)
        code[distinct] = np.arange(len(distinct))
        return CodedColumn(code[values - low], Ids(distinct + low))
    uniques, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    code = np.empty(len(order), np.int64)
    code[order] = np.arange(len(order))
    return CodedColumn(code[inverse], Ids(uniques[order]))
