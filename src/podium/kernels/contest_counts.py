"""The counter of votes: single votes on two items, merged by pair (and by voter, where that matters).

A list is a set of contests between all its items; equal ranks are ties. Where unlisted items are below, every
listed item beats every unlisted one, and two unlisted items do not meet. Votes of weight 0 are excluded.
`split_contests` counts queries in parts, so that memory does not grow with their number; a query whose lists
expand into very many contests forms its own part, and its lists stay as they are where the model allows it
(see `list_contests`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium._core import contest_counts as core
from podium.kernels import graphs, segments
from podium.kernels.comparison_graph import find_connections
from podium.kernels.dispatch import B1, F8, I4, I8, run_in_threads
from podium.kernels.grouping import sum_by_group, sum_rows
from podium.kernels.pairwise_votes import Votes, count_items_above, select_queries, without_lists

__all__ = [
    "Components",
    "Contests",
    "ListVotes",
    "PairVotes",
    "Part",
    "count_contests",
    "counting_bytes",
    "expand_lists",
    "expand_votes",
    "find_components",
    "find_weak_components",
    "group_votes_by_pair",
    "orient_votes",
    "split_contests",
]

TABLE = 4096  # items up to which counting in a table of all pairs is faster
# bytes needed for counting per cell of the table and per sorted vote, and per counted pair until the scores
# are computed
TABLE_BYTES, ROW_BYTES, PAIR_BYTES = 16, 33, 56
PART = 2.0**30  # bytes for the contests of one part, unless a single query needs more
LONG = 5_000_000  # contests of a query's lists from which on the lists are not expanded


class Contests(NamedTuple):
    """Contest counts by query: unique pairs of slots with weights.

    With `side` a pair occurs once per side: the advantage of being shown first counts `side` times for
    `first`.
    """

    starts: I8  # items (slots) of query q: starts[q] .. starts[q + 1]
    pair_starts: I8  # pairs of query q
    first: I4  # slots, first < second, in order
    second: I4
    won: F8  # weight of the votes for first over second
    lost: F8  # for second over first
    tied: F8  # for neither
    side: F8 | None = None  # 1: first was shown first, -1: second was, 0: unknown
    # all votes of a single query and the unit of their weights, where its lists are not expanded into pairs
    lists: tuple[Votes, float] | None = None


class Components(NamedTuple):
    """By slot, the smallest slot of its component."""

    weak: I8  # connected by contests
    strong: I8  # connected by wins both ways; a tie is a win for both


class PairVotes(NamedTuple):
    """Votes between two slots (or items), a vote or the sum of several per row; `first` < `second`."""

    group: I8  # who voted, as the caller numbers it
    first: I8
    second: I8
    side: I8  # 1: first was shown first, -1: second was, 0: unknown
    won: F8  # weight of the votes for first over second
    lost: F8  # for second over first
    tied: F8  # for neither


class ListVotes(NamedTuple):
    """The votes that lists imply, and the number of the list of each."""

    winner: I8
    loser: I8
    tie: B1
    source: I8


def orient_votes(
    winner: npt.NDArray[Any],
    loser: npt.NDArray[Any],
    tie: B1,
    weight: F8,
    group: npt.NDArray[Any] | None = None,
    side: npt.NDArray[Any] | None = None,
) -> PairVotes:
    """Single votes with the lower slot first; `side` is 1 if the winner was shown first, -1 if the loser was."""
    swap = winner > loser
    first, second = (f(winner, loser).astype(np.int64, copy=False) for f in (np.minimum, np.maximum))
    unknown: I8 = np.zeros(len(winner), np.int64)
    return PairVotes(
        unknown if group is None else group.astype(np.int64, copy=False),
        first,
        second,
        unknown if side is None else np.where(swap, -side, side).astype(np.int64),
        np.where(tie | swap, 0.0, weight),
        np.where(tie | ~swap, 0.0, weight),
        np.where(tie, weight, 0.0),
    )


def expand_votes(
    votes: Votes,
    list_group: I8 | None = None,
    vote_group: I8 | None = None,
    side: npt.NDArray[Any] | None = None,
) -> PairVotes:
    """All votes of positive weight in lists and comparisons, in groups by list and by comparison."""
    implied = expand_lists(votes)
    weight = np.concatenate((votes.list_weight[implied.source], votes.vote_weight))
    kept = np.flatnonzero(weight > 0)
    group = shown = None
    if list_group is not None and vote_group is not None:
        group = np.concatenate((list_group[implied.source], vote_group))[kept]
    if side is not None:
        shown = np.concatenate((np.zeros(len(implied.source), np.int64), side))[kept]
    winner = np.concatenate((implied.winner, votes.winner))[kept]
    loser = np.concatenate((implied.loser, votes.loser))[kept]
    tie = np.concatenate((implied.tie, votes.tie))[kept]
    return orient_votes(winner, loser, tie, weight[kept], group, shown)


def group_votes_by_pair(slots: I8, votes: PairVotes, unit: float = 1.0, *, sides: bool = False) -> Contests:
    """Merge votes by pair (with `sides`, by pair and side), whoever cast them."""
    keys = (votes.first, votes.second, votes.side + 1)[: 3 if sides else 2]
    (first, second, *side), (won, lost, tied) = sum_rows(keys, votes[4:])
    return Contests(
        slots,
        np.searchsorted(first, slots).astype(np.int64),
        first.astype(np.int32),
        second.astype(np.int32),
        won * unit,
        lost * unit,
        tied * unit,
        (side[0] - 1).astype(np.float64) if sides else None,
    )


def count_contests(votes: Votes, unit: float = 1.0, side: F8 | None = None) -> Contests:
    """The contests of lists and comparisons; `unit` is the weight that an integer weight of one represents.

    `side` records for each comparison whether the side named first (the winner, unless tied) was shown first
    (1), second (-1), or unknown (0). Weights are integers, so sums do not depend on the order of rows.
    """
    if side is not None:
        return group_votes_by_pair(votes.slots, expand_votes(votes, side=side), unit, sides=True)
    rows = _count_list_pairs(votes).astype(np.int64) + np.diff(votes.vote_starts)
    sizes = np.diff(votes.slots)
    # every query fills its own block, and the unused rest is cut out
    room = segments.offsets(np.minimum(rows, sizes * (sizes - 1) // 2))
    total = int(room[-1])
    first, second = np.empty(total, np.int32), np.empty(total, np.int32)
    won, lost, tied = np.empty(total), np.empty(total), np.zeros(total)
    found = np.zeros(len(sizes), np.int64)
    dense = by_table(sizes, rows)
    work = segments.offsets(rows + dense * sizes**2 + 1)
    run_in_threads(core.count_contests, work, votes, dense, room, first, second, won, lost, tied, found)
    columns: tuple[Any, ...] = (first, second, won, lost, tied)
    starts = segments.offsets(found)
    if starts[-1] < total:
        last = int(np.flatnonzero(found).max(initial=0))
        if starts[last] == room[last]:  # only the last query left space unused, as a single one does
            columns = tuple(c[: room[last] + found[last]] for c in columns)
        else:
            written = np.repeat(room[:-1] - starts[:-1], found) + np.arange(int(starts[-1]))
            columns = tuple(c[written] for c in columns)
    first, second, *sums = columns
    return Contests(votes.slots, starts, first, second, *(c if unit == 1.0 else c * unit for c in sums))


def _count_list_pairs(votes: Votes) -> F8:
    """By query: pairs of items that its lists compare, each list for itself."""
    lengths, sizes = np.diff(votes.starts).astype(np.float64), np.diff(votes.slots).astype(np.float64)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    pairs = lengths * (lengths - 1) / 2
    if votes.below:
        pairs += lengths * (sizes[query] - lengths)
    return sum_by_group(query, pairs, len(sizes))


def by_table(sizes: I8, rows: I8) -> B1:
    """Which queries are counted in a table of all pairs: small ones, and those whose rows need more memory.

    The sums are exact, so both ways give the same bits.
    """
    return np.asarray(
        ((sizes <= TABLE) & (sizes**2 <= 4 * rows))
        | (TABLE_BYTES * sizes.astype(np.float64) ** 2 < ROW_BYTES * rows)
    )


def counting_bytes(votes: Votes) -> tuple[F8, F8]:
    """By query: the number of contests in its lists, and the approximate bytes to count and solve them."""
    sizes, rows = np.diff(votes.slots).astype(np.float64), _count_list_pairs(votes)
    pairs = np.minimum(rows, sizes * (sizes - 1) / 2)
    return pairs, np.minimum(TABLE_BYTES * sizes**2, ROW_BYTES * rows) + PAIR_BYTES * pairs


def expand_lists(votes: Votes) -> ListVotes:
    """Every item of a list against all items after it and, where they are below, all unlisted ones."""
    lengths = np.diff(votes.starts)
    source = np.repeat(np.arange(len(lengths)), lengths)
    row, end = np.arange(len(votes.item)), np.repeat(votes.starts[1:], lengths)
    later = end - row - 1
    upper = np.repeat(row, later)
    # the pairs of an upper row form a block, along which the lower row runs to the end of the list
    lower = np.repeat(end - np.cumsum(later), later) + np.arange(len(upper))
    upto = count_items_above(votes.starts, votes.rank)[1] + np.repeat(votes.starts[:-1], lengths)
    item = votes.item.astype(np.int64)
    # rows that end before the upper row's rank does are tied with it
    listed = ListVotes(item[upper], item[lower], lower < upto[upper], source[upper])
    if not votes.below:
        return listed
    unlisted = _expand_unlisted(votes, lengths, source)
    return ListVotes._make(map(np.concatenate, zip(listed, unlisted, strict=True)))


def _expand_unlisted(votes: Votes, lengths: I8, source: I8) -> ListVotes:
    """Every item of a list against all unlisted items of its query."""
    sizes = np.diff(votes.slots)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    size = sizes[query]
    ends = np.cumsum(size)
    held = np.zeros(int(size.sum()), np.bool_)
    shift = ends - size - votes.slots[query]  # from a slot to its cell in the table of all lists and items
    held[votes.item + shift[source]] = True
    cell = np.flatnonzero(~held)
    missing = size - lengths
    begin = np.cumsum(missing) - missing
    each = missing[source]
    upper = np.repeat(np.arange(len(votes.item)), each)
    # the k-th pair of a listed row meets the k-th unlisted item of its list
    at = np.repeat(begin[source] - (np.cumsum(each) - each), each) + np.arange(len(upper))
    lower = cell[at] - shift[source[upper]]
    tie = np.zeros(len(upper), np.bool_)
    return ListVotes(votes.item.astype(np.int64)[upper], lower, tie, source[upper])


class Part(NamedTuple):
    """The contests of some queries; their slots count from 0."""

    base: int  # first slot in the whole input
    met: Contests


def split_contests(votes: Votes, unit: float, side: F8 | None, *, keep_lists: bool) -> Iterator[Part]:
    """The contests of all queries, in order; `keep_lists` allows long lists to stay unexpanded."""
    pairs, needed = counting_bytes(votes)
    alone = (pairs > LONG) if keep_lists and side is None else np.zeros(len(pairs), np.bool_)
    # ranges of queries of about equal size, at most `PART`; each query in `alone` is its own range
    cuts = np.flatnonzero(alone)
    edges = np.unique(np.concatenate(([0], cuts, cuts + 1, [len(needed)]))).tolist()
    ranges: list[tuple[int, int]] = []
    for first, last in pairwise(edges):
        total = np.concatenate(([0.0], np.cumsum(needed[first:last])))
        number = 1 if alone[first] else max(1, int(np.ceil(total[-1] / PART)))
        inner = np.searchsorted(total, np.linspace(0, total[-1], number + 1)[1:-1])
        marks = np.unique(np.concatenate(([0], inner, [last - first]))) + first
        ranges += list(pairwise(marks.tolist()))
    for first, last in ranges or [(0, len(needed))]:
        part = select_queries(votes, first, last)
        base = int(votes.slots[first])
        if alone[first:last].any():
            met = count_contests(without_lists(part), unit)._replace(lists=(part, unit))
        else:
            shown = None if side is None else side[slice(*votes.vote_starts[[first, last]].tolist())]
            met = count_contests(part, unit, shown)
        yield Part(base, met)


def find_components(contests: Contests) -> Components:
    """Which items are connected by contests at all, and which by chains of wins in both directions.

    Scores of different weak components cannot be compared; items of different strong components are separated
    by the prior alone, because one side never lost to the other.
    """
    total = int(contests.starts[-1])
    first, second = contests.first, contests.second
    up, down = contests.won + contests.tied > 0, contests.lost + contests.tied > 0
    ends = (np.concatenate((first[up], second[down])), np.concatenate((second[up], first[down])))
    labels = (graphs.label_weak_components(*ends, total), graphs.label_strong_components(*ends, total))
    return Components(*map(label_by_smallest, labels))


def label_by_smallest(label: I4 | I8) -> I8:
    """Labels as the smallest slot with the same label."""
    _, first, which = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(first[which], np.int64)


def find_weak_components(contests: Contests) -> I8:
    """The weak components alone."""
    if contests.lists is not None:
        return label_by_smallest(find_connections(contests.lists[0]).group)
    label = np.arange(int(contests.starts[-1]))
    core.find_weak_components(contests.first, contests.second, label)
    return label
