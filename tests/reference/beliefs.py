"""Learning from beliefs in plain loops: the quality of an order, what a swap does to it, the loss and its slope."""

from __future__ import annotations

import math


def chance(t, i, j):
    """How likely i belongs above j."""
    return 1 / (1 + math.exp(t[j] - t[i]))


def quality(order, t, cutoff):
    """Sum over places up to the cutoff, and all items below, of the chance of that order, discounted by the place."""
    total = 0.0
    for place, i in enumerate(order[:cutoff]):
        total += sum(chance(t, i, j) for j in order[place + 1 :]) / math.log2(place + 2)
    return total


def swap_change(order, t, cutoff, i, j):
    """|what swapping items i and j changes|."""
    swapped = [j if x == i else i if x == j else x for x in order]
    return abs(quality(swapped, t, cutoff) - quality(order, t, cutoff))


def ranking(s, t):
    """Best score first; equal scores with the worse belief first."""
    return sorted(range(len(s)), key=lambda i: (-s[i], t[i], i))


def pair_weights(s, t, cutoff):
    """Pairs (i above j in the present order) with what a swap of theirs changes."""
    order = ranking(s, t)
    return {
        (i, j): swap_change(order, t, cutoff, i, j)
        for place, i in enumerate(order)
        for j in order[place + 1 :]
    }


def loss(s, t, weights):
    """Weighted cross entropy between the believed chances and those of the scores."""
    total = 0.0
    for (i, j), weight in weights.items():
        p, own = chance(t, i, j), chance(s, i, j)
        total -= weight * (p * math.log(own) + (1 - p) * math.log(1 - own))
    return total


def slope(s, t, cutoff):
    """How the loss falls along every score; rows equal in both scores share it."""
    weights = pair_weights(s, t, cutoff)
    out = [0.0] * len(s)
    for (i, j), weight in weights.items():
        gap = weight * (chance(t, i, j) - chance(s, i, j))
        out[i] += gap
        out[j] -= gap
    alike = [[j for j in range(len(s)) if (s[j], t[j]) == (s[i], t[i])] for i in range(len(s))]
    return [sum(out[j] for j in same) / len(same) for same in alike]
