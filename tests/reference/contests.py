"""Models of contests written as plainly as their definitions; the oracle for the kernels."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np

from podium.kernels import contest_scores

VARIANTS = {
    "half": {"ties": "half", "l2": 0.1},
    "ignore": {"ties": "ignore", "l2": 0.1},
    "davidson": {"ties": "davidson", "l2": 0.1},
    "rao_kupper": {"ties": "rao_kupper", "l2": 0.1},
    "gamma": {"ties": "half", "l2": 0.0, "shape": 1.7},
    "gamma davidson": {"ties": "davidson", "l2": 0.0, "shape": 1.7},
    "gamma rao_kupper": {"ties": "rao_kupper", "l2": 0.0, "shape": 1.3},
    "thurstone": {"model": "thurstone", "ties": "half", "l2": 0.1},
}


def count_contests(items, said) -> dict:
    """(i, j), i before j in `items` -> weights won, lost, tied; `said` as in `reference.pairs.voices`."""
    found = {}
    for i, j in itertools.combinations(items, 2):
        won = lost = tied = 0
        for weight, rank in said:
            a, b = rank.get(i), rank.get(j)
            if a is None or b is None or a == b == math.inf:
                continue
            won, lost, tied = won + weight * (a < b), lost + weight * (a > b), tied + weight * (a == b)
        if won or lost or tied:
            found[i, j] = (float(won), float(lost), float(tied))
    return found


def chances(model: str, ties: str, a: float, b: float, width: float) -> tuple[float, float, float]:
    """Probabilities that the first wins, loses and ties, from two scores."""
    if model == "thurstone":
        return NormalDist().cdf(a - b), NormalDist().cdf(b - a), 0.0
    p, q = math.exp(a), math.exp(b)
    if ties == "davidson":
        total = p + q + math.exp(width) * math.sqrt(p * q)
        return p / total, q / total, math.exp(width) * math.sqrt(p * q) / total
    theta = math.exp(width) if ties == "rao_kupper" else 1.0
    won, lost = p / (p + theta * q), q / (q + theta * p)
    return won, lost, 1 - won - lost


def loss(pairs, x, size, *, model="bradley_terry", ties="half", l2=0.0, shape=1.0, side=None, extra=1e-6):
    """Minus the log of likelihood times prior; pairs: rows i, j, won, lost, tied; x: scores, then width, advantage."""
    wide = ties in ("davidson", "rao_kupper")
    total = 0.0
    for n, (i, j, won, lost, tied) in enumerate(pairs):
        shift = 0.0 if side is None else side[n] * x[-1]
        p, q, r = chances(model, ties, x[i] + shift, x[j], x[size] if wide else 0.0)
        if ties == "half":
            won, lost = won + tied / 2, lost + tied / 2
        total -= won * math.log(p) + lost * math.log(q)
        if wide and tied:
            total -= tied * math.log(r)
    total += sum((shape - 1) * (math.exp(s) - 1 - s) + l2 / 2 * s * s for s in x[:size])
    return total + extra / 2 * sum(v * v for v in x[size:])


def stationary(size, pairs, smoothing):
    """The walk of rank centrality on one component, from the eigenvector of its matrix of moves."""
    moves = np.zeros((size, size))
    for i, j, won, lost, tied in pairs:
        total = won + lost + tied + 2 * smoothing
        moves[i, j] = (lost + tied / 2 + smoothing) / total
        moves[j, i] = (won + tied / 2 + smoothing) / total
    moves /= moves.sum(axis=1).max()
    moves += np.diag(1 - moves.sum(axis=1))
    values, vectors = np.linalg.eig(moves.T)
    found = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return found / found.sum()


def compute_elo(votes, k=32.0, scale=400.0, start=1500.0) -> dict:
    """Ratings after rows (winner, loser, tie, weight)."""
    ratings: dict = {}
    for a, b, tie, weight in votes:
        ra, rb = ratings.setdefault(a, start), ratings.setdefault(b, start)
        expected = 1 / (1 + 10 ** ((rb - ra) / scale))
        gain = k * weight * ((0.5 if tie else 1.0) - expected)
        ratings[a], ratings[b] = ra + gain, rb - gain
    return ratings


def made(rows, size, side=None) -> contest_scores.Contests:
    """One query from rows (first, second, won, lost, tied)."""
    first, second, won, lost, tied = (np.array(c) for c in zip(*rows, strict=True))
    pairs = np.array([0, len(rows)])
    columns = (c.astype(np.float64) for c in (won, lost, tied))
    return contest_scores.Contests(
        np.array([0, size]), pairs, first.astype(np.int32), second.astype(np.int32), *columns, side
    )


def some(seed=0, size=6, ties=True):
    """Random contests among most pairs of a few items."""
    random = np.random.default_rng(seed)
    met = [p for p in itertools.combinations(range(size), 2) if random.random() < 0.8 or p[1] == p[0] + 1]
    counts = random.integers(0, 6, (len(met), 3)) * np.array([1, 1, int(ties)])
    counts[counts.sum(axis=1) == 0, 0] = 1
    return [(i, j, *map(float, c)) for (i, j), c in zip(met, counts, strict=True)]


def sides(rows, seed=0):
    return np.random.default_rng(seed).integers(-1, 2, len(rows)).astype(np.float64)
