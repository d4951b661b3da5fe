"""Elo ratings: votes in sequence, each moving two ratings by its deviation from the expected outcome."""

from __future__ import annotations

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, is_large, run_in_threads
from podium.kernels.pairwise_votes import Votes
from podium.kernels.smooth_sums import HALF_TANH, near_cells

__all__ = ["compute_elo"]

LONG = 4_096  # items of a list from which on its pairs are summed by series (see `smooth_sums`)
BLOCK = 1 << 18  # pairs held at once


def compute_elo(votes: Votes, k: float, rate: float, rounds: int = 0, seed: int = 0) -> F8:
    """Ratings by slot around 0: in the order of the votes, or the mean over `rounds` random orders.

    A list is played at once, every item's gain averaged over its opponents. `rate` turns a difference of
    ratings into log odds. The events of a query are its lists, then its comparisons; for random orders
    comparisons are sorted first, so that their input order has no effect.
    """
    lists = np.diff(votes.query_starts)
    starts = segments.offsets(lists + np.diff(votes.vote_starts))
    slots = int(votes.slots[-1])
    identity = np.arange(int(starts[-1])) - np.repeat(starts[:-1], np.diff(starts))
    if rounds == 0:
        return _play_events(votes, starts, identity, k, rate, np.zeros(slots))
    votes, total, random = _sort_comparisons(votes), np.zeros(slots), np.random.default_rng(seed)
    for _ in range(rounds):
        key = random.random(int(starts[-1]))
        order = identity[np.lexsort((key, np.repeat(np.arange(len(lists)), np.diff(starts))))]
        total += _play_events(votes, starts, order, k, rate, np.zeros(slots))
    return total / rounds


def _sort_comparisons(votes: Votes) -> Votes:
    """The comparisons of each query in an order that depends on their content alone."""
    keys = (votes.vote_weight, votes.tie, votes.loser, votes.winner)
    order = np.lexsort((*keys, np.repeat(np.arange(len(votes.slots) - 1), np.diff(votes.vote_starts))))
    return votes._replace(
        winner=votes.winner[order],
        loser=votes.loser[order],
        tie=votes.tie[order],
        vote_weight=votes.vote_weight[order],
    )


def _play_events(votes: Votes, starts: I8, order: I8, k: float, rate: float, ratings: F8) -> F8:
    lengths, sizes = np.diff(votes.starts), np.diff(votes.slots)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    rows = lengths * np.minimum(sizes[query] if votes.below else lengths, LONG)
    work = np.bincount(query, weights=rows, minlength=len(sizes)) / 100 + np.diff(votes.vote_starts) + 1
    if is_large(int(work.sum()) + 10 * len(lengths)):
        from podium.kernels.compiled.rank_centrality import compute_elo as kernel

        shared = segments.offsets(work).astype(np.int64)
        # the table serves only lists longer than LONG
        table = near_cells(HALF_TANH) if lengths.max(initial=0) > LONG else np.zeros((1, 1, 1))
        run_in_threads(kernel, shared, votes, starts, order, k, rate, LONG, table, ratings)
        return ratings
    with np.errstate(over="ignore"):
        for q in range(len(sizes)):
            lists = int(votes.query_starts[q + 1] - votes.query_starts[q])
            here = ratings[votes.slots[q] : votes.slots[q + 1]]
            for event in order[starts[q] : starts[q + 1]].tolist():
                if event < lists:
                    _play_list(votes, int(votes.query_starts[q]) + event, int(votes.slots[q]), k, rate, here)
                else:
                    _play_comparison(
                        votes, int(votes.vote_starts[q]) + event - lists, int(votes.slots[q]), k, rate, here
                    )
    return ratings


def _play_comparison(votes: Votes, v: int, base: int, k: float, rate: float, here: F8) -> None:
    i, j = votes.winner[v] - base, votes.loser[v] - base
    won = 0.5 if votes.tie[v] else 1.0
    gain = k * votes.vote_weight[v] * (won - 1.0 / (1.0 + np.exp(rate * (here[j] - here[i]))))
    here[i] += gain
    here[j] -= gain


def _play_list(votes: Votes, lst: int, base: int, k: float, rate: float, here: F8) -> None:
    rows = slice(int(votes.starts[lst]), int(votes.starts[lst + 1]))
    rank = np.full(len(here), 2**31, np.int64)  # unlisted items are below, or take no part
    rank[votes.item[rows] - base] = votes.rank[rows]
    held = rank < 2**31
    gain, rivals = np.zeros(len(here)), np.ones(len(here), np.int64)
    step = max(1, BLOCK // len(here))
    for at in range(0, len(here), step):  # a block of rows of the table of all pairs at a time
        i = np.arange(at, min(at + step, len(here)))
        met = (held[i, None] | held) if votes.below else (held[i, None] & held)
        met[np.arange(len(i)), i] = False
        won = np.where(rank[i, None] == rank, 0.5, rank[i, None] < rank)
        chance = 1.0 / (1.0 + np.exp(rate * (here - here[i, None])))
        gain[i] = ((won - chance) * met).sum(axis=1)
        rivals[i] = np.maximum(met.sum(axis=1), 1)
    here += k * votes.list_weight[lst] * gain / rivals
