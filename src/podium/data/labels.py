"""Ground truth: grades of (query, item) pairs."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, check_type
from podium.core.text import format_count
from podium.data.building.validate import Origin, check_numbers, row_origin
from podium.data.ids import Column, Id, Ids, code_ids
from podium.data.index import ItemIndex
from podium.kernels.dispatch import F8, I8

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["Labels"]


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Grades; NaN marks candidate items without a judgement. Larger is better; 0 or less is not relevant.

    >>> labels = Labels.from_dict({"q": {"a": 2, "b": 0}})
    >>> labels, labels.grade("q", "a")
    (Labels(1 query, 2 judged items, grades 0..2), 2.0)
    """

    index: ItemIndex
    grades: F8
    # values computed from these labels, by index and by caller; never passed on to a copy with other grades
    _aligned: weakref.WeakKeyDictionary[ItemIndex, F8] = field(
        default_factory=weakref.WeakKeyDictionary, init=False
    )
    memo: dict[Any, Any] = field(default_factory=dict, init=False)

    @classmethod
    def from_rows(
        cls,
        query: Column,
        item: Column,
        grade: Sequence[float] | npt.NDArray[Any],
        *,
        origin: Origin = row_origin,
    ) -> Labels:
        """Grades from columns; two grades for the same item and query are an error."""
        q, i = code_ids(query, "query"), code_ids(item, "item")
        value = check_numbers(grade, "grade", origin)
        if not len(q.codes) == len(i.codes) == len(value):
            raise InputError(
                "the columns of the labels differ in length", remedy="give one value per row in each"
            )
        index, slot = ItemIndex.build(q, i)
        if len(index.items) < len(slot):
            order = np.argsort(slot, kind="stable")
            row = int(order[1:][slot[order][1:] == slot[order][:-1]].min())
            source, line = origin(row)
            raise InputError(
                f"item {i.ids[int(i.codes[row])]!r} is labeled twice for query {q.ids[int(q.codes[row])]!r}",
                source=source,
                line=line,
                remedy="keep one label per item",
            )
        grades = np.empty(len(slot))
        grades[slot] = value
        return cls(index, grades)

    @classmethod
    def from_dict(cls, grades: Mapping[Id, Mapping[Id, float]]) -> Labels:
        """Grades from a nested mapping: query -> item -> grade."""
        for given in (grades, *(grades.values() if isinstance(grades, Mapping) else ())):
            check_type(
                given, Mapping, "Labels.from_dict", "give query -> item -> grade, as in {'q1': {'d1': 2}}"
            )
        rows = [(q, i, g) for q, by_item in grades.items() for i, g in by_item.items()]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        return cls.from_rows(*columns)

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> Labels:
        """Grades from any dataframe; see `podium.data.frames.read_labels`."""
        from podium.data.frames import check_parameters, read_labels

        check_parameters(columns, ("query", "item", "grade"), "Labels.from_frame")
        return read_labels(frame, **columns)

    @property
    def queries(self) -> Ids:
        """Query ids in order of appearance."""
        return self.index.queries

    def grade(self, query: Id, item: Id) -> float:
        """One grade."""
        return float(self.grades[self.index.slot(query, item)])

    def align(self, index: ItemIndex) -> F8:
        """The grade of each slot of another index, NaN where there is none. Cached per index."""
        if index is self.index:
            return self.grades
        grades = self._aligned.get(index)
        if grades is None:
            at = index.locate(self.index)
            grades = np.where(at >= 0, self.grades[at] if len(self.grades) else np.nan, np.nan)
            self._aligned[index] = grades
        return grades

    def select_codes(self, codes: I8) -> Labels:
        """Only the queries with these codes."""
        index, old = self.index.select(codes)
        return Labels(index, self.grades[old])

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self.index, self.grades)

    def select(self, queries: Sequence[Id]) -> Labels:
        """Only these queries."""
        return self.select_codes(np.array([self.index.query_code(q) for q in queries], np.int64))

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of query, item, grade; unjudged items are left out."""
        from podium.data.frames import labels_frame

        return labels_frame(self, backend)

    def __len__(self) -> int:
        return len(self.index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        same_ids = self.index.queries == other.index.queries and self.index.items == other.index.items
        return same_ids and np.array_equal(self.grades, other.grades, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_labels

        return render_labels(self)

    def __repr__(self) -> str:
        judged = self.grades[~np.isnan(self.grades)]
        span = f", grades {judged.min():g}..{judged.max():g}" if len(judged) else ""
        counts = f"{format_count(len(self), 'query')}, {format_count(len(judged), 'judged item')}"
        return f"Labels({counts}{span})"
