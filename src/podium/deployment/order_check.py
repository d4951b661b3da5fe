"""Whether two rankings of the same lists have the same order, up to ties in the precision of an engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.core.text import format_count
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.deployment.engine_input import number_places
from podium.kernels.dispatch import F8

__all__ = ["OrderCheck", "OrderDifference", "compare_orders", "count_gapped_lists", "count_tied_lists"]

TOP = 10


@dataclass(frozen=True)
class OrderDifference:
    """The first place of a query at which the engine has another item than the method."""

    query: Id
    place: int
    engine_item: Id
    method_item: Id


@dataclass(frozen=True)
class OrderCheck:
    """In how many queries an engine's order is that of the method."""

    queries: int
    same: int
    same_top: int  # queries whose first ten places are the same
    first: OrderDifference | None
    tied_lists: int = 0  # lists with tied items, which an engine orders internally
    gapped_lists: int = 0  # lists whose ranks leave numbers out, which an engine closes

    def describe(self) -> str:
        """The result in words."""
        words = f"the same order in {self.same:,} of {format_count(self.queries, 'query', 'queries')}"
        if self.first is not None:
            at = self.first
            words += (
                f"; the same first {TOP} places in {self.same_top:,}. The first that differs is {at.query}: at place "
                f"{at.place} the engine has {at.engine_item}, the method {at.method_item}"
            )
        if self.tied_lists:
            words += f". {format_count(self.tied_lists, 'list')} with tied items, which the engine orders internally"
        if self.gapped_lists:
            words += (
                f". {format_count(self.gapped_lists, 'list')} with gaps in the ranks: the engine, and the method here, "
                "number the items consecutively"
            )
        return f"{words}."


def compare_orders(
    engine: Consensus, method: Consensus, tolerance: float, *, tied_lists: int = 0, gapped_lists: int = 0
) -> OrderCheck:
    """Compare the engine's ranking with the method's; differences below `tolerance` (relative) are ties.

    >>> from podium import Preferences, make
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "c"]}})
    >>> same = compare_orders(make("qdrant_rrf(k=61)").aggregate(p), make("rrf").aggregate(p), 1e-6)
    >>> same.same, compare_orders(make("combmax").aggregate(p), make("rrf").aggregate(p), 1e-6).same
    (1, 0)
    """
    same = same_top = 0
    first: OrderDifference | None = None
    for query in method.queries:
        here, there = engine.index.slots(query), method.index.slots(query)
        order = engine.order[here] - here.start
        place = _find_difference(engine.scores[here][order], method.scores[there][order], tolerance)
        same += place is None
        same_top += place is None or place > TOP
        if place is not None and first is None:
            first = OrderDifference(
                query, place, engine.ranking(query)[place - 1], method.ranking(query)[place - 1]
            )
    return OrderCheck(len(method.queries), same, same_top, first, tied_lists, gapped_lists)


def _find_difference(engine: F8, method: F8, tolerance: float) -> int | None:
    """The first place at which an item lies above one that the method prefers; both in the engine's order.

    An order within a tie of the engine, or of the method, is free.
    """
    if len(engine) < 2:
        return None
    near = tolerance * np.abs(engine).max()
    # items that the engine places strictly below: those after the last of the item's tie group
    ends = np.append(np.flatnonzero(engine[1:] < engine[:-1] - near) + 1, len(engine))
    below = ends[np.searchsorted(ends, np.arange(len(engine)), side="right")]
    best_after = np.append(np.maximum.accumulate(method[::-1])[::-1], -np.inf)
    wrong = method < best_after[below] - tolerance * np.abs(method).max()
    return int(wrong.argmax()) + 1 if wrong.any() else None


def count_tied_lists(preferences: Preferences) -> int:
    """Lists in which two items have one rank."""
    lists = preferences.lists
    if lists.rows < 2:
        return 0
    tied = (lists.rank[1:] == lists.rank[:-1]) & (lists.list_of_row[1:] == lists.list_of_row[:-1])
    return len(np.unique(lists.list_of_row[1:][tied]))


def count_gapped_lists(preferences: Preferences) -> int:
    """Lists in which a rank is larger than the number of items above it allows."""
    lists = preferences.lists
    return len(np.unique(lists.list_of_row[number_places(lists) != lists.rank]))
