"""Concatenation of preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import InputError, Option
from podium.data.building.validate import build_comparisons, build_lists
from podium.data.ids import CodedColumn, Ids
from podium.data.index import ItemIndex
from podium.data.lists import Lists
from podium.kernels.dispatch import I8

if TYPE_CHECKING:
    from podium.data.preferences import Preferences

__all__ = ["concat_preferences"]


def concat_preferences(parts: Sequence[Preferences]) -> Preferences:
    """All rows of all parts over one index; candidates that no expert lists are kept."""
    from podium.data.preferences import Preferences

    if not parts:
        raise InputError("there are no preferences to combine", remedy="give at least one set of preferences")
    readings = {p.unlisted for p in parts if p.lists.rows} or {parts[0].unlisted}
    if len(readings) > 1:
        raise InputError(
            "items that a list omits are below the listed ones in one part, and unknown in another",
            remedy=("choose one reading with ", Option("unlisted", "below", "unknown")),
        )
    if len(parts) == 1:
        return parts[0]
    given = [np.lexsort((p.index.arrival, p.index.query_of_slot)) for p in parts]  # slots in input order
    query = CodedColumn.concat(
        [CodedColumn(p.index.query_of_slot[g], p.queries) for p, g in zip(parts, given, strict=True)], "query"
    )
    item = CodedColumn.concat(
        [CodedColumn(g, p.index.items) for p, g in zip(parts, given, strict=True)], "item"
    )
    expert = CodedColumn.concat(
        [CodedColumn(np.arange(len(p.experts)), p.experts) for p in parts], "expert"
    ).with_sorted_ids()
    index, slot = ItemIndex.build(query, item)
    slot_parts = np.split(slot, np.cumsum([len(p.index.items) for p in parts])[:-1])
    slots = [part[np.argsort(g)] for part, g in zip(slot_parts, given, strict=True)]
    experts = np.split(expert.codes, np.cumsum([len(p.experts) for p in parts])[:-1])
    query_of = index.query_of_slot
    lists = _concat_lists(parts, slots, experts, query_of, index, expert.ids)
    winner = np.concatenate([s[p.comparisons.winner] for p, s in zip(parts, slots, strict=True)])
    loser = np.concatenate([s[p.comparisons.loser] for p, s in zip(parts, slots, strict=True)])
    tables = [p.comparisons for p in parts]
    sides = None  # unknown for parts without them
    if any(t.side is not None for t in tables):
        sides = np.concatenate([np.zeros(len(t), np.int32) if t.side is None else t.side for t in tables])
    voters = np.concatenate([e[p.comparisons.expert] for p, e in zip(parts, experts, strict=True)])
    votes = build_comparisons(
        query_of[winner],
        voters,
        winner,
        loser,
        np.concatenate([p.comparisons.tie for p in parts]),
        np.concatenate([p.comparisons.weight for p in parts]),
        sides,
        queries=len(index),
    )
    return Preferences(index, expert.ids, lists, votes, readings.pop())


def _concat_lists(
    parts: Sequence[Preferences],
    slots: list[I8],
    experts: list[I8],
    query_of: I8,
    index: ItemIndex,
    names: Ids,
) -> Lists:
    item = np.concatenate([s[p.lists.item] for p, s in zip(parts, slots, strict=True)])
    expert = np.concatenate(
        [e[p.lists.expert][p.lists.list_of_row] for p, e in zip(parts, experts, strict=True)]
    )
    scored = [p for p in parts if p.lists.score is not None]
    score = np.concatenate(
        [p.lists.score if p.lists.score is not None else np.full(p.lists.rows, np.nan) for p in parts]
    )
    return build_lists(
        query_of[item],
        expert,
        item,
        np.concatenate([p.lists.rank for p in parts]),
        score if scored else None,
        sizes=index.sizes,
        experts=len(names),
        blank_scores=True,
        name=lambda row: (
            f"item {index.items[int(item[row])]!r} in the list of expert {names[int(expert[row])]!r} "
            f"for query {index.queries[int(query_of[item[row]])]!r}"
        ),
        origin=lambda _: ("the combined parts", None),
    )
