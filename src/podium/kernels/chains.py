"""Stationary distributions of random walks over the items of a query, driven by its lists.

A comparison is a list of two. Where lists put unlisted items below, these are one tied last block of the list. With
probability `teleport` the walk jumps to any item; an item that no list holds always does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I4, I8, by_queries
from podium.kernels.pairs import Votes, collapse, margins, matrix, pair_work, pays_to_compile, places

__all__ = [
    "LAST",
    "MULTISET",
    "ONE_LIST",
    "ONE_LIST_ANY",
    "Ballots",
    "ballots",
    "list_chain",
    "majority_chain",
]

MULTISET, ONE_LIST, ONE_LIST_ANY = 1, 2, 3  # MC1, MC2, MC3
LAST = 2**31 - 1  # rank of the block of unlisted items


class Walk(NamedTuple):
    """Probabilities by slot, and the steps taken by the slowest query (None after a direct solution)."""

    probability: F8
    steps: int | None
    converged: bool


class Ballots(NamedTuple):
    """The lists, comparisons and unlisted blocks of one query in one form."""

    starts: I8
    item: I8  # 0 .. M - 1
    rank: I4
    weight: F8


def list_chain(votes: Votes, kind: int, teleport: float, tolerance: float, most_steps: int) -> Walk:
    """MC1, MC2 or MC3: the walk looks at one list (or at all those that hold the item) to choose where to go."""
    return _walk("list_chain", collapse(votes), (kind,), teleport, tolerance, most_steps)


def majority_chain(votes: Votes, teleport: float, tolerance: float, most_steps: int) -> Walk:
    """MC4: the walk draws any item and moves there if the majority prefers it."""
    return _walk("majority_chain", votes, (), teleport, tolerance, most_steps)


def _walk(
    name: str, votes: Votes, kind: tuple[int, ...], teleport: float, tolerance: float, most_steps: int
) -> Walk:
    sizes = np.diff(votes.slots)
    found = np.empty(int(votes.slots[-1]))
    work = pair_work(votes, 1 / 256)
    if pays_to_compile(work):
        from podium.kernels.compiled import chains as compiled

        steps = np.zeros(len(sizes), np.int64)
        by_queries(getattr(compiled, name), work, votes, *kind, teleport, tolerance, most_steps, found, steps)
        return Walk(found, int(steps.max(initial=0)), bool((steps <= most_steps).all()))
    for q in np.flatnonzero(sizes).tolist():
        moves = _list_moves(ballots(votes, q), int(sizes[q]), *kind) if kind else _majority_moves(votes, q)
        found[votes.slots[q] : votes.slots[q + 1]] = _stationary(moves, teleport)
    return Walk(found, None, True)


def _stationary(moves: F8, teleport: float) -> F8:
    size = len(moves)
    found = np.linalg.solve(np.eye(size) - (1 - teleport) * moves.T, np.full(size, teleport / size))
    return np.asarray(found / found.sum(), np.float64)


def ballots(votes: Votes, query: int) -> Ballots:
    """Everything said about one query, as lists; voices of weight 0 are left out."""
    base, size = int(votes.slots[query]), int(votes.slots[query + 1] - votes.slots[query])
    first, last = votes.query_starts[query : query + 2].tolist()
    rows = slice(int(votes.starts[first]), int(votes.starts[last]))
    number, item, rank = (
        np.repeat(np.arange(last - first), np.diff(votes.starts[first : last + 1])),
        votes.item[rows].astype(np.int64) - base,
        votes.rank[rows],
    )
    if votes.below:
        missing = np.ones((last - first, size), np.bool_)
        missing[number, item] = False
        missing[np.bincount(number, minlength=last - first) == 0] = False  # an empty list says nothing
        which, unlisted = np.nonzero(missing)
        number, item = np.concatenate((number, which)), np.concatenate((item, unlisted))
        rank = np.concatenate((rank, np.full(len(which), LAST, np.int32)))
        order = np.argsort(number, kind="stable")
        number, item, rank = number[order], item[order], rank[order]
    pairs = slice(*votes.vote_starts[query : query + 2].tolist())
    sides = np.stack((votes.winner[pairs], votes.loser[pairs]), axis=1).ravel().astype(np.int64) - base
    places_of_two = (
        np.stack((np.ones(len(sides) // 2), 2 - votes.tie[pairs]), axis=1).ravel().astype(np.int32)
    )
    number = np.concatenate((number, last - first + np.arange(len(sides)) // 2))
    item, rank = np.concatenate((item, sides)), np.concatenate((rank, places_of_two))
    weight = np.concatenate((votes.list_weight[first:last], votes.vote_weight[pairs]))
    kept = weight[number] > 0
    lengths = np.bincount(number[kept], minlength=len(weight))
    filled = lengths > 0
    starts = np.concatenate(([0], np.cumsum(lengths[filled])))
    return Ballots(starts, item[kept], rank[kept], weight[filled])


def _list_moves(lists: Ballots, size: int, kind: int) -> F8:
    """The matrix of moves (from, to) of MC1, MC2 or MC3."""
    lengths = np.diff(lists.starts)
    above, upto = places(lists.starts, lists.rank)
    targets = above if kind == ONE_LIST_ANY else upto  # the walk goes to the first so many rows of the list
    weight = np.repeat(lists.weight, lengths)
    share = weight / (np.ones_like(upto), upto, np.repeat(lengths, lengths))[kind - 1]
    origin = np.repeat(np.arange(len(lists.item)), targets)
    base = np.repeat(lists.starts[:-1], lengths)[origin]
    target = base + np.arange(len(origin)) - np.repeat(np.cumsum(targets) - targets, targets)
    cell = lists.item[origin] * size + lists.item[target]
    moves = np.bincount(cell, weights=share[origin], minlength=size**2).reshape(size, size)
    total = np.bincount(lists.item, weights=weight * (upto if kind == MULTISET else 1), minlength=size)
    held = total > 0
    moves = np.divide(moves, total[:, None], out=np.full((size, size), 1 / size), where=held[:, None])
    stay = np.where(held, 1 - moves.sum(axis=1), 0.0)  # MC3 stays where nothing is better
    return np.asarray(moves + np.diag(stay), np.float64)


def _majority_moves(votes: Votes, query: int) -> F8:
    """The matrix of moves (from, to) of MC4."""
    margin = margins(matrix(votes, query))
    size = len(margin)
    moves: F8 = (margin.T > 0) / float(size)
    moves[np.diag_indices(size)] = 1 - moves.sum(axis=1)
    held = np.zeros(size, np.bool_)
    held[ballots(votes, query).item] = True
    moves[~held] = 1 / size
    return moves
