"""Preferences with one edit: a moved item in one list, or additional votes of one expert."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8

__all__ = ["add_votes", "find_list", "find_rank", "find_score", "move_item"]


def find_list(preferences: Preferences, query: int, expert: int) -> int | None:
    """Number of the list of an expert (by code) for a query (by code)."""
    lists = preferences.lists
    begin, end = lists.query_starts[query : query + 2]
    positions = np.flatnonzero(lists.expert[begin:end] == expert)
    return int(begin + positions[0]) if len(positions) else None


def find_rank(lists: Lists, which: int, slot: int) -> int | None:
    """Rank of a slot in a list; None if not listed."""
    rows = slice(int(lists.starts[which]), int(lists.starts[which + 1]))
    positions = np.flatnonzero(lists.item[rows] == slot)
    return int(lists.rank[rows][positions[0]]) if len(positions) else None


def find_score(lists: Lists, which: int, slot: int) -> float | None:
    """Score of a slot in a list; None if there is none."""
    rows = slice(int(lists.starts[which]), int(lists.starts[which + 1]))
    positions = np.flatnonzero(lists.item[rows] == slot)
    if lists.score is None or not len(positions) or np.isnan(lists.score[rows][positions[0]]):
        return None
    return float(lists.score[rows][positions[0]])


def move_item(preferences: Preferences, which: int, slot: int, rank: int) -> Preferences:
    """The preferences with a slot moved to a rank of a list; the items it passes shift down.

    If the list has scores, the slot gets one between its new neighbors. Ranks that follow from the scores
    still do.
    """
    lists = preferences.lists
    begin, end = int(lists.starts[which]), int(lists.starts[which + 1])
    old = find_rank(lists, which, slot)
    rest = lists.item[begin:end] != slot
    item, place = lists.item[begin:end][rest], lists.rank[begin:end][rest].astype(np.int64)
    place = place + ((place >= rank) & (place < (np.inf if old is None else old)))
    score = None
    if lists.score is not None:
        given = lists.score[begin:end]
        score = np.append(given[rest], _score_between(given[rest], place, rank))
        if not np.isnan(given).any() and (_competition_ranks(given) == lists.rank[begin:end]).all():
            place = _competition_ranks(score)
            place, rank = place[:-1], int(place[-1])
    items, ranks = np.append(item, slot).astype(np.int32), np.append(place, rank).astype(np.int32)
    order = np.lexsort((items, ranks))
    starts = lists.starts.copy()
    starts[which + 1 :] += len(items) - (end - begin)
    edited = Lists(
        lists.query_starts,
        lists.expert,
        starts,
        np.concatenate((lists.item[:begin], items[order], lists.item[end:])),
        np.concatenate((lists.rank[:begin], ranks[order], lists.rank[end:])),
        None
        if score is None or lists.score is None
        else np.concatenate((lists.score[:begin], score[order], lists.score[end:])),
    )
    return replace(preferences, lists=edited)


def _score_between(score: F8, place: I8, rank: int) -> float:
    """A score between the items above the rank and the others; NaN if the list has no scores."""
    above, below = score[place < rank], score[place > rank]
    if not len(score) or np.isnan(score).any():
        return float("nan")
    step = float(np.ptp(score)) / max(len(score), 2) or 1.0
    if not len(above):
        return float(below.max()) + step
    return float(above.min()) - step if not len(below) else (float(above.min()) + float(below.max())) / 2


def _competition_ranks(score: F8) -> I8:
    """1, 2, 2, 4: one plus the number of larger scores."""
    return np.asarray(np.searchsorted(np.sort(-score), -score, side="left") + 1, np.int64)


def add_votes(
    preferences: Preferences, query: int, expert: int, winner: int, loser: int, votes: float
) -> Preferences:
    """The preferences with additional votes of an expert for one slot over another."""
    table = preferences.comparisons
    begin, end = (int(v) for v in table.query_starts[query : query + 2])
    at = begin + int(np.searchsorted(table.expert[begin:end], expert, side="right"))
    starts = table.query_starts.copy()
    starts[query + 1 :] += 1
    more = Comparisons(
        starts,
        np.insert(table.expert, at, expert),
        np.insert(table.winner, at, winner),
        np.insert(table.loser, at, loser),
        np.insert(table.tie, at, False),
        np.insert(table.weight, at, votes),
        None if table.side is None else np.insert(table.side, at, 0),
    )
    return replace(preferences, comparisons=more)
