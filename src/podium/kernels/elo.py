"""Elo ratings: votes in sequence, each moving two ratings by its deviation from the expected outcome."""

from __future__ import annotations

import numpy as np

from podium._core import elo as core
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, run_in_threads
from podium.kernels.pairwise_votes import Votes
from podium.kernels.smooth_sums import HALF_TANH, near_cells

__all__ = ["compute_elo"]

LONG = 4_096  # items of a list from which on its pairs are summed by series (see `smooth_sums`)


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
    keys = (votes.vote_weight, votes.tie, votes.loser, votes.winner)
    order = np.lexsort((*keys, np.repeat(np.arange(len(lists)), np.diff(votes.vote_starts))))
    votes = votes._replace(
        winner=votes.winner[order],
        loser=votes.loser[order],
        tie=votes.tie[order],
        vote_weight=votes.vote_weight[order],
    )
    total, random = np.zeros(slots), np.random.default_rng(seed)
    for _ in range(rounds):
        key = random.random(int(starts[-1]))
        order = identity[np.lexsort((key, np.repeat(np.arange(len(lists)), np.diff(starts))))]
        total += _play_events(votes, starts, order, k, rate, np.zeros(slots))
    return total / rounds


def _play_events(votes: Votes, starts: I8, order: I8, k: float, rate: float, ratings: F8) -> F8:
    lengths, sizes = np.diff(votes.starts), np.diff(votes.slots)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    rows = lengths * np.minimum(sizes[query] if votes.below else lengths, LONG)
    work = np.bincount(query, weights=rows, minlength=len(sizes)) / 100 + np.diff(votes.vote_starts) + 1
    shared = segments.offsets(work).astype(np.int64)
    # the table serves only lists longer than LONG
    table = near_cells(HALF_TANH) if lengths.max(initial=0) > LONG else np.zeros((1, 1, 1))
    run_in_threads(core.compute_elo, shared, votes, starts, order, k, rate, LONG, table, ratings)
    return ratings
