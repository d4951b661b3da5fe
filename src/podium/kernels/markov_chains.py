"""Stationary distributions of random walks over the items of a query, driven by its lists.

A comparison is a list of two. Where lists put unlisted items below, these form one tied last block. With
probability `teleport` the walk jumps to a random item; from an item in no list it always does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8, run_in_threads
from podium.kernels.pairwise_votes import (
    Votes,
    compute_margins,
    compute_pair_work,
    compute_vote_matrix,
    count_items_above,
    is_large_pair_work,
    merge_comparisons,
)

__all__ = [
    "LAST",
    "MULTISET",
    "ONE_LIST",
    "ONE_LIST_ANY",
    "Ballots",
    "build_ballots",
    "solve_list_chain",
    "solve_majority_chain",
]

MULTISET, ONE_LIST, ONE_LIST_ANY = 1, 2, 3  # MC1, MC2, MC3
LAST = 2**31 - 1  # rank of the block of unlisted items


class StationaryDistribution(NamedTuple):
    """Probabilities by slot, and the number of steps of the slowest query (None after a direct solution)."""

    probability: F8
    steps: int | None
    converged: bool


class Ballots(NamedTuple):
    """The lists, comparisons and unlisted blocks of one query in one form."""

    starts: I8
    item: I8  # 0 .. M - 1
    rank: I4
    weight: F8


def solve_list_chain(
    votes: Votes, kind: int, teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    """MC1, MC2 or MC3: the walk uses one list (or all lists that hold the item) to choose where to go."""
    return _solve_chain(
        "solve_list_chain", merge_comparisons(votes), (kind,), teleport, tolerance, most_steps
    )


def solve_majority_chain(
    votes: Votes, teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    """MC4: the walk draws a random item and moves there if the majority prefers it."""
    return _solve_chain("solve_majority_chain", votes, (), teleport, tolerance, most_steps)


def _solve_chain(
    name: str, votes: Votes, kind: tuple[int, ...], teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    sizes = np.diff(votes.slots)
    found = np.empty(int(votes.slots[-1]))
    work = compute_pair_work(votes, 1 / 256)
    if is_large_pair_work(work):
        from podium.kernels.compiled import markov_chains as compiled

        steps = np.zeros(len(sizes), np.int64)
        run_in_threads(
            getattr(compiled, name), work, votes, *kind, teleport, tolerance, most_steps, found, steps
        )
        return StationaryDistribution(found, int(steps.max(initial=0)), bool((steps <= most_steps).all()))
    for q in np.flatnonzero(sizes).tolist():
        moves = (
            _build_list_transitions(build_ballots(votes, q), int(sizes[q]), *kind)
            if kind
            else _build_majority_transitions(votes, q)
        )
        found[votes.slots[q] : votes.slots[q + 1]] = _solve_stationary(moves, teleport)
    return StationaryDistribution(found, None, True)


def _solve_stationary(moves: F8, teleport: float) -> F8:
    size = len(moves)
    found = np.linalg.solve(np.eye(size) - (1 - teleport) * moves.T, np.full(size, teleport / size))
    return np.asarray(found / found.sum(), np.float64)


def build_ballots(votes: Votes, query: int) -> Ballots:
    """All votes of one query, as lists; votes of weight 0 are excluded."""
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
        missing[np.bincount(number, minlength=last - first) == 0] = (
            False  # an empty list carries no information
        )
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
    starts = segments.offsets(lengths[filled])
    return Ballots(starts, item[kept], rank[kept], weight[filled])


def _build_list_transitions(lists: Ballots, size: int, kind: int) -> F8:
    """The transition matrix (from, to) of MC1, MC2 or MC3."""
    lengths = np.diff(lists.starts)
    above, upto = count_items_above(lists.starts, lists.rank)
    # the walk goes to one of the first rows of the list, this many
    targets = above if kind == ONE_LIST_ANY else upto
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


def _build_majority_transitions(votes: Votes, query: int) -> F8:
    """The transition matrix (from, to) of MC4."""
    margin = compute_margins(compute_vote_matrix(votes, query))
    size = len(margin)
    moves: F8 = (margin.T > 0) / float(size)
    moves[np.diag_indices(size)] = 1 - moves.sum(axis=1)
    held = np.zeros(size, np.bool_)
    held[build_ballots(votes, query).item] = True
    moves[~held] = 1 / size
    return moves
