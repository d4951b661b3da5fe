"""LambdaRank in plain loops: the objective, the change a swap makes, and the gradient, straight from the formulas."""

from __future__ import annotations

import math


def walk_value(kind, gains, discount, limit):
    """A walk down the ranking: a sum of gain x discount, of precisions, or a cascade."""
    total, hits, left = 0.0, 0.0, 1.0
    for place, g in enumerate(gains[:limit]):
        hits += g
        if kind == "sum":
            total += g * discount[place]
        elif kind == "precision":
            total += g * hits / discount[place]
        else:
            total += discount[place] * g * left
            left *= 1 - g
    return total


def ranking(scores, grades):
    """Best score first; equal scores with the worst grade first."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], grades[i], i))


def swap_change(kind, order, gains, discount, limit, i, j):
    """|what swapping rows i and j in the order does to the value|."""
    swapped = [j if x == i else i if x == j else x for x in order]
    before = walk_value(kind, [gains[x] for x in order], discount, limit)
    return abs(walk_value(kind, [gains[x] for x in swapped], discount, limit) - before)


def weights_of_pairs(kind, scores, grades, gains, discount, limit, scale):
    """Pairs (better, worse) with the change that a swap of theirs makes in the present order."""
    order = ranking(scores, grades)
    n = len(scores)
    return {
        (i, j): scale * swap_change(kind, order, gains, discount, limit, i, j)
        for i in range(n)
        for j in range(n)
        if grades[i] > grades[j]
    }


def objective(pairs, scores):
    """The pairwise objective at fixed pair weights."""
    return sum(w * math.log1p(math.exp(scores[j] - scores[i])) for (i, j), w in pairs.items())


def gradient(pairs, scores):
    """Its gradient with respect to the scores."""
    out = [0.0] * len(scores)
    for (i, j), w in pairs.items():
        pull = w / (1 + math.exp(scores[i] - scores[j]))
        out[i] -= pull
        out[j] += pull
    return out
