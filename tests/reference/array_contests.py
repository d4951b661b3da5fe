"""Contests of pairs from their definition: for each list and each comparison, a matrix of who is placed higher."""

from __future__ import annotations

import itertools

import numpy as np


def count_contests(votes):
    """Starts of the queries' pairs, first and second slot, weights won, lost and tied; pairs in order of slots."""
    counts, columns = [], [[] for _ in range(5)]
    for query, (base, end) in enumerate(itertools.pairwise(votes.slots.tolist())):
        won, tied = (np.zeros((end - base, end - base)) for _ in range(2))
        for number in range(*votes.query_starts[query : query + 2]):
            rows = slice(*votes.starts[number : number + 2].tolist())
            # unlisted items are below all others, and say nothing of each other; else they compare with nothing
            rank = np.full(end - base, np.inf if votes.below else np.nan)
            rank[votes.item[rows] - base] = votes.rank[rows]
            won += votes.list_weight[number] * (rank[:, None] < rank)
            tied += votes.list_weight[number] * ((rank[:, None] == rank) & np.isfinite(rank))
        for row in range(*votes.vote_starts[query : query + 2]):
            a, b = votes.winner[row] - base, votes.loser[row] - base
            if votes.tie[row]:
                tied[[a, b], [b, a]] += votes.vote_weight[row]
            else:
                won[a, b] += votes.vote_weight[row]
        first, second = np.nonzero(np.triu(won + won.T + tied, 1))
        counts.append(len(first))
        found = (base + first, base + second, won[first, second], won[second, first], tied[first, second])
        for column, values in zip(columns, found, strict=True):
            column.append(values)
    return np.concatenate(([0], np.cumsum(counts))), *(np.concatenate(column) for column in columns)
