"""Random walks as transition matrices, solved directly."""

from __future__ import annotations

import numpy as np

from podium.kernels.markov_chains import LAST, MULTISET, ONE_LIST_ANY, Ballots
from podium.kernels.pairwise_votes import compute_margins, compute_vote_matrix, count_items_above


def solve_chain(votes, kind, teleport):
    """Probabilities by slot: MC1, MC2 or MC3 by kind, or MC4 (None)."""
    sizes, found = np.diff(votes.slots), np.empty(int(votes.slots[-1]))
    for q in np.flatnonzero(sizes).tolist():
        moves = (
            _build_majority_transitions(votes, q)
            if kind is None
            else _build_list_transitions(build_ballots(votes, q), int(sizes[q]), kind)
        )
        found[votes.slots[q] : votes.slots[q + 1]] = _solve_stationary(moves, teleport)
    return found


def _solve_stationary(moves, teleport):
    size = len(moves)
    found = np.linalg.solve(np.eye(size) - (1 - teleport) * moves.T, np.full(size, teleport / size))
    return np.asarray(found / found.sum(), np.float64)


def build_ballots(votes, query):
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
    starts = np.concatenate(([0], np.cumsum(lengths[filled])))
    return Ballots(starts, item[kept], rank[kept], weight[filled])


def _build_list_transitions(lists, size, kind):
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


def _build_majority_transitions(votes, query):
    """The transition matrix (from, to) of MC4."""
    margin = compute_margins(compute_vote_matrix(votes, query))
    size = len(margin)
    moves = (margin.T > 0) / float(size)
    moves[np.diag_indices(size)] = 1 - moves.sum(axis=1)
    held = np.zeros(size, np.bool_)
    held[build_ballots(votes, query).item] = True
    moves[~held] = 1 / size
    return moves
