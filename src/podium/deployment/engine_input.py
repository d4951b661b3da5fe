"""The lists as an engine fuses them: those of the deployed experts, cut at a depth, repeated where asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.core.errors import ParameterError
from podium.data.ids import Ids
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import I4
from podium.methods.dialects.fusion_engine import ListSource

__all__ = ["close_gaps", "cut_lists", "number_places", "prepare_input", "select_experts"]


def prepare_input(preferences: Preferences, sources: Sequence[ListSource], depth: int) -> Preferences:
    """The lists of these experts, numbered as an engine numbers them and cut at `depth` items.

    An expert that is requested twice has two lists, and experts become numbers then.
    """
    cut = cut_lists(close_gaps(select_experts(preferences, sources)), depth)
    if all(s.copies == 1 for s in sources):
        return cut
    by_name = {str(s.expert): s.copies for s in sources}
    copies = np.array([by_name[str(e)] for e in cut.experts])
    lists, first = cut.lists, segments.offsets(copies)
    times = copies[lists.expert]
    which = np.repeat(np.arange(len(lists)), times)
    number = np.arange(len(which)) - np.repeat(segments.offsets(times)[:-1], times)
    starts, rows = segments.gather_segments(lists.starts, which)
    score = None if lists.score is None else lists.score[rows]
    query_starts = segments.offsets(times)[lists.query_starts]
    expert = (first[lists.expert[which]] + number).astype(np.int32)
    repeated = Lists(query_starts, expert, starts, lists.item[rows], lists.rank[rows], score)
    experts = Ids(list(range(int(first[-1]))))
    return Preferences(cut.index, experts, repeated, cut.comparisons, cut.unlisted)


def select_experts(preferences: Preferences, sources: Sequence[ListSource]) -> Preferences:
    """The lists of these experts; a name from the command line may denote a number."""
    known = {str(e): e for e in preferences.experts}
    for source in sources:
        if str(source.expert) not in known:
            raise ParameterError(
                f"the lists have no expert {source.expert!r}; they have {', '.join(list(known)[:10])}"
            )
    return preferences.with_experts([known[str(s.expert)] for s in sources])


def close_gaps(preferences: Preferences) -> Preferences:
    """The same lists with ranks that count the items above: an engine sees no gap where an item was left out.

    >>> p = Preferences.from_rows(["q"] * 4, ["a"] * 4, ["w", "x", "y", "z"], rank=[1, 4, 4, 9])
    >>> close_gaps(p).lists.rank.tolist()
    [1, 2, 2, 4]
    """
    lists = preferences.lists
    rank = number_places(lists)
    if np.array_equal(rank, lists.rank):
        return preferences
    closed = Lists(lists.query_starts, lists.expert, lists.starts, lists.item, rank, lists.score)
    return Preferences(
        preferences.index, preferences.experts, closed, preferences.comparisons, preferences.unlisted
    )


def number_places(lists: Lists) -> I4:
    """One more than the number of rows above in the same list; rows of equal rank share a place."""
    which, rows = lists.list_of_row, np.arange(lists.rows)
    is_first = np.ones(lists.rows, bool)
    is_first[1:] = (lists.rank[1:] != lists.rank[:-1]) | (which[1:] != which[:-1])
    first = np.maximum.accumulate(np.where(is_first, rows, 0))
    return (first - lists.starts[which] + 1).astype(np.int32)


def cut_lists(preferences: Preferences, depth: int) -> Preferences:
    """The first `depth` items of every list; the items to rank stay the same.

    >>> p = Preferences.from_lists({"q": {"a": ["x", "y", "z"]}})
    >>> cut_lists(p, 2).lists.rows, len(cut_lists(p, 2).index.items)
    (2, 3)
    """
    lists = preferences.lists
    kept = np.arange(lists.rows) - lists.starts[lists.list_of_row] < depth
    if kept.all():
        return preferences
    starts = segments.offsets(np.minimum(lists.lengths, depth))
    score = None if lists.score is None else lists.score[kept]
    cut = Lists(lists.query_starts, lists.expert, starts, lists.item[kept], lists.rank[kept], score)
    return Preferences(
        preferences.index, preferences.experts, cut, preferences.comparisons, preferences.unlisted
    )
