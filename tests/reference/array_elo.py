"""Elo events as numpy expressions of all pairs of a list."""

from __future__ import annotations

import numpy as np

BLOCK = 1 << 18  # pairs held at once


def play_events(votes, starts, order, k, rate, ratings):
    """Play the events of every query in order."""
    sizes = np.diff(votes.slots)
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


def _play_comparison(votes, v, base, k, rate, here):
    i, j = votes.winner[v] - base, votes.loser[v] - base
    won = 0.5 if votes.tie[v] else 1.0
    gain = k * votes.vote_weight[v] * (won - 1.0 / (1.0 + np.exp(rate * (here[j] - here[i]))))
    here[i] += gain
    here[j] -= gain


def _play_list(votes, lst, base, k, rate, here):
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
