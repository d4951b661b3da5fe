"""Item features by (query, item)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.errors import InputError
from podium.data.building.validate import Origin, row_origin
from podium.data.ids import Column, code_ids
from podium.data.index import ItemIndex
from podium.kernels.dispatch import F8, I8

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["Features"]


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """A matrix with one row per slot of its index; NaN marks a missing value.

    >>> Features.from_rows(["q", "q"], ["b", "a"], [[1.0], [2.0]], ["bm25"]).values.tolist()
    [[2.0], [1.0]]
    """

    index: ItemIndex
    values: F8
    names: tuple[str, ...]

    @classmethod
    def from_rows(
        cls,
        query: Column,
        item: Column,
        values: Any,
        names: Sequence[str] | None = None,
        *,
        origin: Origin = row_origin,
    ) -> Features:
        """Features from columns; two rows for the same item and query are an error."""
        q, i = code_ids(query, "query"), code_ids(item, "item")
        matrix = np.asarray(values, np.float64)
        if matrix.ndim != 2 or not len(q.codes) == len(i.codes) == len(matrix):
            raise InputError(
                f"the feature matrix has shape {matrix.shape} for {len(q.codes)} rows",
                remedy="give one row per item",
            )
        labels = tuple(names) if names is not None else tuple(f"f{k + 1}" for k in range(matrix.shape[1]))
        if len(labels) != matrix.shape[1] or len(set(labels)) != len(labels):
            raise InputError(f"{len(labels)} feature names for {matrix.shape[1]} columns, or a repeated one")
        if np.isinf(matrix).any():
            row = int(np.flatnonzero(np.isinf(matrix).any(axis=1))[0])
            source, line = origin(row)
            raise InputError(
                "a feature is infinite", source=source, line=line, remedy="give a number, or NaN if unknown"
            )
        index, slot = ItemIndex.build(q, i)
        if len(index.items) < len(slot):
            raise InputError("an item has two feature rows in one query", remedy="keep one row per item")
        sorted_values = np.empty_like(matrix)
        sorted_values[slot] = matrix
        return cls(index, sorted_values, labels)

    @staticmethod
    def require(features: Features | None, names: Sequence[str], method: str) -> None:
        """Reject features with other columns than those that a method was fitted with, or without any."""
        given = [] if features is None else list(features.names)
        if given != list(names):
            fitted = f"with the item features {list(names)[:6]}" if names else "without item features"
            raise InputError(
                f"{method} was fitted {fitted}, and got {given[:6] if given else 'none'}",
                remedy="give the same columns in the same order" if names else "omit them, or fit with them",
            )

    def align(self, index: ItemIndex) -> F8:
        """One row per slot of another index, NaN where there is none."""
        at = index.locate(self.index)
        rows: F8 = np.full((len(at), len(self.names)), np.nan)
        rows[at >= 0] = self.values[at[at >= 0]]
        return rows

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of query, item, and one column per feature."""
        from podium.data.frames import items_frame

        if taken := sorted({"query", "item"} & set(self.names)):
            raise InputError(f"a feature is called {taken[0]!r}", remedy="rename it: the ids have this name")
        columns = dict(zip(self.names, self.values.T, strict=True))
        return items_frame(self.index, np.arange(len(self.values)), columns, backend)

    def select_codes(self, codes: I8) -> Features:
        """Only the queries with these codes."""
        index, old = self.index.select(codes)
        return Features(index, self.values[old], self.names)

    def __len__(self) -> int:
        return len(self.index)

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_features

        return render_features(self)

    def __repr__(self) -> str:
        return f"Features({len(self):,} queries, {len(self.values):,} items, {len(self.names)} features)"
