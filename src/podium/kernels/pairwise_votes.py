"""Pairwise preferences: the votes of a table, and their matrix for one query.

W[i, j] is the total weight of the votes that put i above j. Weights are integers (see `whole_weights`), so
every sum here is exact: margins that should be equal are equal, whatever the order of experts or rows.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from podium._core import pairwise_votes as core
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8

__all__ = [
    "Votes",
    "build_votes",
    "compute_margins",
    "compute_pair_work",
    "compute_vote_matrix",
    "count_items_above",
    "find_unranked_slots",
    "merge_comparisons",
    "select_queries",
    "whole_weights",
    "without_lists",
]

LARGEST = 2.0**30  # upper bound on integer weights, so that sums over millions of votes are exact in a float


class Votes(NamedTuple):
    """All votes of a table of preferences: lists, and single comparisons."""

    slots: I8  # items of query q: slots[q] .. slots[q + 1]
    query_starts: I8  # lists of query q
    starts: I8  # rows of list l
    item: I4  # slot of each row
    rank: I4
    list_weight: F8
    vote_starts: I8  # comparisons of query q
    winner: I4
    loser: I4
    tie: B1
    vote_weight: F8
    below: bool  # whether a list puts unlisted items below the listed ones


def select_queries(votes: Votes, first: int, last: int) -> Votes:
    """The votes of the queries from `first` up to `last`; their slots count from 0."""
    if (first, last) == (0, len(votes.slots) - 1):
        return votes
    base = votes.slots[first]
    lists = slice(*votes.query_starts[[first, last]].tolist())
    rows = slice(*votes.starts[[lists.start, lists.stop]].tolist())
    single = slice(*votes.vote_starts[[first, last]].tolist())
    return Votes(
        slots=votes.slots[first : last + 1] - base,
        query_starts=votes.query_starts[first : last + 1] - lists.start,
        starts=votes.starts[lists.start : lists.stop + 1] - rows.start,
        item=(votes.item[rows] - base).astype(np.int32),
        rank=votes.rank[rows],
        list_weight=votes.list_weight[lists],
        vote_starts=votes.vote_starts[first : last + 1] - single.start,
        winner=(votes.winner[single] - base).astype(np.int32),
        loser=(votes.loser[single] - base).astype(np.int32),
        tie=votes.tie[single],
        vote_weight=votes.vote_weight[single],
        below=votes.below,
    )


def without_lists(votes: Votes) -> Votes:
    """The comparisons alone."""
    return votes._replace(
        query_starts=np.zeros_like(votes.query_starts),
        starts=np.zeros(1, np.int64),
        item=votes.item[:0],
        rank=votes.rank[:0],
        list_weight=votes.list_weight[:0],
    )


def whole_weights(weights: F8) -> tuple[F8, float]:
    """Weights as integers, and the unit they are counted in.

    Integers, decimals of up to six digits and multiples of a twelfth of the smallest weight are kept exactly;
    others are rounded to 1e-9 of the largest.

    >>> whole_weights(np.array([0.1, 0.2, 0.3, 0.0]))[0]
    array([1., 2., 3., 0.])
    """
    distinct = np.unique(weights[weights > 0])
    if len(distinct) == 0:
        return weights, 1.0
    # the simplest exact scale first; without one, the finest that keeps sums exact
    scales = chain([1.0], np.arange(1, 13) / distinct[0], 10.0 ** np.arange(1, 7))
    scale = LARGEST / float(distinct[-1])
    for simple in scales:
        nearest = np.rint(distinct * simple)
        is_near = nearest[0] >= 1 and nearest[-1] <= LARGEST
        if is_near and (np.abs(distinct * simple - nearest) <= 1e-9).all():
            scale = float(simple)
            break
    # a positive weight stays positive, so that its votes are not excluded
    return np.where(weights > 0, np.maximum(np.rint(weights * scale), 1.0), 0.0), 1.0 / scale


def compute_pair_work(votes: Votes, cubic: float = 0.0) -> I8:
    """Cumulative matrix cells read or written by query, plus `cubic` times the cube of its size."""
    sizes, lengths = np.diff(votes.slots), np.diff(votes.starts)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    of_list = lengths * (sizes[query] if votes.below else lengths)
    work = sizes**2 + np.diff(votes.vote_starts) + (cubic * sizes**3).astype(np.int64)
    work += np.bincount(query, weights=of_list, minlength=len(sizes)).astype(np.int64)
    return segments.offsets(work)


def merge_comparisons(votes: Votes) -> Votes:
    """The same votes with equal comparisons merged, so that many votes on few pairs are cheap."""
    if len(votes.winner) == 0:
        return votes
    swap = votes.tie & (votes.winner > votes.loser)  # a tie has no first side
    first = np.where(swap, votes.loser, votes.winner).astype(np.int64)
    second = np.where(swap, votes.winner, votes.loser)
    slots = int(votes.slots[-1])
    code = (first * slots + second) * 2 + votes.tie
    if 2 * slots * slots <= 4 * len(code):  # few possible pairs: counted, without a sort
        key = np.flatnonzero(np.bincount(code))
        weight = np.bincount(code, weights=votes.vote_weight)[key]
    else:
        key, which = np.unique(code, return_inverse=True)
        weight = np.bincount(which, weights=votes.vote_weight)
    winner = (key // 2 // slots).astype(np.int32)
    return votes._replace(
        vote_starts=np.searchsorted(winner, votes.slots),
        winner=winner,
        loser=(key // 2 % slots).astype(np.int32),
        tie=key % 2 == 1,
        vote_weight=weight.astype(np.float64, copy=False),
    )


def find_unranked_slots(votes: Votes) -> B1:
    """Slots that no vote of positive weight mentions."""
    slots, sizes = int(votes.slots[-1]), np.diff(votes.slots)
    lengths = np.diff(votes.starts)
    has_votes = np.zeros(slots, np.bool_)
    has_votes[votes.item[np.repeat(votes.list_weight > 0, lengths)]] = True
    if votes.below:
        list_count = np.bincount(
            np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts)),
            weights=votes.list_weight * (lengths > 0),
            minlength=len(sizes),
        )
        has_votes |= np.repeat(list_count > 0, sizes)
    counted = votes.vote_weight > 0
    has_votes[votes.winner[counted]] = has_votes[votes.loser[counted]] = True
    return ~has_votes


def count_items_above(starts: I8, rank: I4) -> tuple[I8, I8]:
    """For every row of every list: the number of items above it, and of items at its rank or above."""
    if len(rank) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    new = np.concatenate(([True], rank[1:] != rank[:-1]))
    lengths = np.diff(starts)
    # equal ranks at the border of two lists are no tie
    new[starts[:-1][lengths > 0]] = True
    first = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    base = np.repeat(starts[:-1], lengths)
    return first[group] - base, np.append(first[1:], len(rank))[group] - base


def compute_vote_matrix(votes: Votes, query: int) -> F8:
    """The matrix W of one query."""
    return np.asarray(core.compute_vote_matrix(votes, query))


def build_votes(table: F8) -> Votes:
    """The votes that a matrix W sums up, as single comparisons of one query."""
    winner, loser = np.nonzero(table)
    none = np.zeros(0, np.int32)
    return Votes(
        slots=np.array([0, len(table)]),
        query_starts=np.zeros(2, np.int64),
        starts=np.zeros(1, np.int64),
        item=none,
        rank=none,
        list_weight=np.zeros(0),
        vote_starts=np.array([0, len(winner)]),
        winner=winner.astype(np.int32),
        loser=loser.astype(np.int32),
        tie=np.zeros(len(winner), np.bool_),
        vote_weight=np.asarray(table[winner, loser], np.float64),
        below=False,
    )


def compute_margins(table: F8) -> F8:
    """W - W', the majority by which each item beats each other one."""
    return table - table.T
