"""Ground truth in pairs: which of two items is better, consistent or not."""

from __future__ import annotations

import html
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from podium.core.errors import InputError
from podium.core.text import format_count
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["PairLabels", "PairTable"]


class PairTable(NamedTuple):
    """Pairs sorted by query: of query q they are starts[q] .. starts[q + 1]."""

    starts: I8
    better: I8  # slots of an index, or rows of examples
    worse: I8
    weight: F8

    @property
    def query(self) -> I8:
        """The query of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def select_queries(self, queries: I8) -> PairTable:
        """The pairs of these queries, in this order."""
        starts, rows = segments.gather_segments(self.starts, queries)
        return PairTable(starts, self.better[rows], self.worse[rows], self.weight[rows])

    def sum_weights(self) -> F8:
        """The total weight of the pairs of each query."""
        return np.bincount(self.query, self.weight, len(self.starts) - 1).astype(np.float64, copy=False)


class PairLabels(Labels):
    """Pairs of a better and a worse item with weights, as `Labels.from_pairs` builds them; they have no grades.

    Repeated pairs add up, and a pair may occur in both directions or in a cycle: nothing is made consistent.
    """

    kind = "pairs"
    pairs: PairTable

    def __init__(self, index: ItemIndex, pairs: PairTable) -> None:
        for name, value in (("index", index), ("pairs", pairs), ("memo", {})):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_aligned", weakref.WeakKeyDictionary())

    @property
    def grades(self) -> F8:
        """Refused: pairs have no grades, and none can be invented for cycles."""
        self._refuse_grades()

    def _refuse_grades(self) -> NoReturn:
        raise InputError(
            "the labels are pairs, which have no grades",
            remedy="measure and learn tau_a or pairs (crf, svd, fused, weighted_*, LambdaRank), or give grades",
        )

    def align(self, index: ItemIndex) -> F8:
        """Refused, as `grades`; see `align_pairs`."""
        self._refuse_grades()

    def align_pairs(self, index: ItemIndex) -> PairTable:
        """The pairs whose two items are in another index, by its queries and slots."""
        at = self.index.locate(index)
        better, worse = at[self.pairs.better], at[self.pairs.worse]
        known = np.flatnonzero((better >= 0) & (worse >= 0))
        query = index.query_of_slot[better[known]]
        known = known[np.argsort(query, kind="stable")]
        starts = segments.offsets(np.bincount(query, minlength=len(index)))
        return PairTable(starts, better[known], worse[known], self.pairs.weight[known])

    def select_codes(self, codes: I8) -> PairLabels:
        """Only the queries with these codes."""
        index, old = self.index.select(codes)
        new = np.full(len(self.index.items), -1, np.int64)
        new[old] = np.arange(len(old))
        starts, better, worse, weight = self.pairs.select_queries(codes)
        return PairLabels(index, PairTable(starts, new[better], new[worse], weight))

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """Refused, as `grades`."""
        self._refuse_grades()

    def __reduce__(self) -> tuple[Any, ...]:
        return PairLabels, (self.index, self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairLabels):
            return NotImplemented
        same_ids = self.index.queries == other.index.queries and self.index.items == other.index.items
        return same_ids and all(np.array_equal(a, b) for a, b in zip(self.pairs, other.pairs, strict=True))

    __hash__ = None

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"

    def __repr__(self) -> str:
        return f"Labels({format_count(len(self), 'query')}, {format_count(len(self.pairs.better), 'pair')})"
