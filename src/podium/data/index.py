"""The items of each query; shared by preferences, labels, features and the consensus.

Each (query, item) pair has a *slot*. The slots of a query are contiguous and in id order, so kernels need
only `starts`, and a tie broken by slot is a tie broken by id.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
from dataclasses import dataclass

import numpy as np

from podium.core.errors import InputError
from podium.data.ids import CodedColumn, Id, Ids, code_ids, id_order
from podium.kernels import grouping, id_joins, segments
from podium.kernels.dispatch import B1, I4, I8

__all__ = ["ItemIndex"]


@dataclass(frozen=True, eq=False)
class ItemIndex:
    """Queries in order of appearance, and the items of each in id order."""

    queries: Ids
    starts: I8  # slots of query q: starts[q] .. starts[q + 1]
    items: Ids  # one id per slot
    arrival: I4  # position of each slot's item in the input order of its query

    @classmethod
    def build(cls, query: CodedColumn, item: CodedColumn) -> tuple[ItemIndex, I8]:
        """Index each pair in the columns; also returns the slot of each row."""
        item = item.with_sorted_ids()
        width = max(len(item.ids), 1)
        starts, value, arrival, slot = grouping.number_pairs(query.codes, item.codes, len(query.ids), width)
        return cls(query.ids, starts, item.ids.take(value), arrival), slot

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def sizes(self) -> I8:
        """Items per query."""
        return np.diff(self.starts)

    @functools.cached_property
    def query_of_slot(self) -> I8:
        """Query code of each slot."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def query_code(self, query: Id) -> int:
        """Code of a query id, or an error that lists some known ids."""
        code = self.queries.code_of(query)
        if code is None:
            few = ", ".join(repr(q) for q in self.queries[:5])
            raise InputError(
                f"there is no query {query!r}",
                remedy=f"queries here: {few}{', ...' if len(self) > 5 else ''}",
            )
        return code

    def slots(self, query: Id) -> slice:
        """The slots of one query."""
        code = self.query_code(query)
        return slice(int(self.starts[code]), int(self.starts[code + 1]))

    def slot(self, query: Id, item: Id) -> int:
        """The slot of one item of a query."""
        here = self.slots(query)
        places = range(here.start, here.stop)
        with contextlib.suppress(TypeError):  # values that are not ids cannot be compared with ids
            at = bisect.bisect_left(places, id_order(item), key=lambda slot: id_order(self.items[slot]))
            if at < len(places) and self.items[places[at]] == item:
                return places[at]
        raise InputError(
            f"query {query!r} has no item {item!r}", remedy="ids are compared exactly, case and type included"
        )

    def select(self, codes: I8) -> tuple[ItemIndex, I8]:
        """The index of a subset of the queries, and the old slot of each new slot."""
        if len(np.unique(codes)) < len(codes):
            again = self.queries[int(np.flatnonzero(np.bincount(codes) > 1)[0])]
            raise InputError(f"query {again!r} is selected twice", remedy="select each query once")
        starts, old = segments.gather_segments(self.starts, codes)
        return ItemIndex(self.queries.take(codes), starts, self.items.take(old), self.arrival[old]), old

    def keep(self, kept: B1) -> ItemIndex:
        """The index of the slots marked in `kept`; all queries stay, and the input order is renumbered."""
        old, starts = np.flatnonzero(kept), segments.offsets(kept)[self.starts]
        by_arrival = np.lexsort((self.arrival[old], self.query_of_slot[old]))
        arrival = np.empty(len(old), np.int32)
        arrival[by_arrival] = np.arange(len(old)) - np.repeat(starts[:-1], np.diff(starts))
        return ItemIndex(self.queries, starts, self.items.take(old), arrival)

    def locate(self, other: ItemIndex) -> I8:
        """For each slot here, the slot of the same (query, item) in `other`, or -1."""
        if other is self:
            return np.arange(len(self.items))
        match = other.queries.codes_of(self.queries)
        mine_text, their_text = self.items.as_text, other.items.as_text
        if mine_text is not None and their_text is not None:
            return id_joins.match_text_ids(match, self.starts, mine_text, other.starts, their_text)
        first, second = other.items, self.items
        if first.integers is not None and second.integers is not None:
            codes = code_ids(np.concatenate((first.integers, second.integers)), "item").codes
        else:
            codes = code_ids([*first.tolist(), *second.tolist()], "item").codes
        theirs, mine = codes[: len(first)], codes[len(first) :]
        width = max(int(theirs.max(initial=0)), int(mine.max(initial=0))) + 1
        keys = other.query_of_slot * width + theirs
        wanted = match[self.query_of_slot] * width + mine
        return id_joins.find_keys(keys, wanted)
