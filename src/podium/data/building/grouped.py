"""Tables whose rows are grouped by query: compiled loops directly to `Preferences`.

Unsorted or invalid rows are left to `Preferences.from_rows`, which sorts them or raises the error; both give
the same preferences. No id becomes a Python object.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.data.building.validate import warn_if_reversed
from podium.data.ids import Ids
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences, Unlisted
from podium.kernels import local_items
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.local_items import TextColumn

__all__ = ["GroupedColumns", "GroupedPreferences", "ListExperts", "from_grouped"]


class ListExperts(NamedTuple):
    """The first row of each list (where the query or the expert changes), its expert, and all experts."""

    starts: I8  # followed by the number of rows
    codes: I4  # of each list
    ids: Ids  # in id order


class GroupedColumns(NamedTuple):
    """Rows of lists, grouped by query and by expert; ranks, scores or both."""

    starts: I8  # the first row of each query, followed by the number of rows
    expert: ListExperts
    item: npt.NDArray[Any] | TextColumn
    rank: I4 | None
    score: F8 | None


class GroupedPreferences(NamedTuple):
    """Preferences, and for each slot a row with its item."""

    preferences: Preferences
    first_row: I8


def from_grouped(
    queries: Ids,
    row_starts: I8,
    expert: ListExperts,
    item: npt.NDArray[Any] | TextColumn,
    rank: I4 | None,
    score: F8 | None,
    unlisted: Unlisted = "unknown",
) -> GroupedPreferences | None:
    """Lists from columns where query q has the rows row_starts[q] .. row_starts[q + 1]; None if not sorted.

    Sorted: experts by id, rows of each list by rank (without ranks, by descending score), ties by item id.
    """
    numbering = local_items.number_items(row_starts, item)
    filled = local_items.fill_lists(row_starts, numbering, expert.starts, expert.codes, rank, score)
    if filled is None:
        return None
    items = Ids.from_text(*numbering.text) if numbering.text else Ids(np.asarray(item)[numbering.first_row])
    index = ItemIndex(queries, numbering.starts, items, numbering.arrival)
    scores = None if score is None else score.copy()  # never share memory with the caller's array
    lists = Lists(*filled, scores)
    if rank is not None and scores is not None:
        if not np.isfinite(scores).all():
            return None
        warn_if_reversed(lists)
    made = Preferences(index, expert.ids, lists, Comparisons.empty(len(index)), unlisted)
    vars(made)["_unranked_slots"] = None  # known in advance: every item comes from a list
    return GroupedPreferences(made, numbering.first_row)
