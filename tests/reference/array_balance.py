"""Rank centrality by the balance equations of all flows."""

from __future__ import annotations

import numpy as np


def solve_balance(contests, query, up, down, label):
    """Balance equations of all flows, with the mass of each component replacing the redundant ones."""
    base, end = contests.starts[query : query + 2].tolist()
    pairs = slice(*contests.pair_starts[query : query + 2].tolist())
    first, second = contests.first[pairs] - base, contests.second[pairs] - base
    rates = np.zeros((end - base, end - base))
    rates[first, second], rates[second, first] = up[pairs], down[pairs]
    here = label[base:end]
    same = here[:, None] == here
    balance = np.diag(rates.sum(axis=1)) - rates.T + same / same.sum(axis=1)
    found = np.linalg.solve(balance, np.full(end - base, 1 / (end - base)))
    return np.asarray(np.maximum(found, 0.0), np.float64)
