"""Pairwise matrices written as plainly as their definition, and closed forms of their singular vectors."""

from __future__ import annotations

import math


def place(rank, ranks, transform) -> float:
    """Where a rank stands on its expert's scale."""
    if transform == "rank":
        return rank / max(ranks)
    if max(ranks) == 1:
        return 0.0
    return math.log(rank) / math.log(max(ranks))


def matrix(items, lists, votes, transform, below) -> list[list[float]]:
    """Y over `items`: lists map items to ranks, votes are (winner, loser, strength)."""
    y = {(i, j): 0.0 for i in items for j in items}
    for ranks in lists:
        for i in ranks:
            for j in items:
                if j in ranks and ranks[j] > ranks[i]:
                    both = [place(ranks[x], ranks.values(), transform) for x in (i, j)]
                    y[i, j] += 1 if transform == "binary" else both[1] - both[0]
                if below and j not in ranks:
                    y[i, j] += 1
    for winner, loser, strength in votes:
        y[winner, loser] += strength
    return [[y[i, j] for j in items] for i in items]


def sum_rows_and_columns(y) -> tuple[list[float], list[float]]:
    """Sums of the rows and of the columns."""
    return [sum(row) for row in y], [sum(row[j] for row in y) for j in range(len(y))]


def binary_leading(n) -> tuple[list[float], list[float], float]:
    """The leading singular vectors and value of a strict ranking of n items: sines, since its inverse is bidiagonal."""
    angle = math.pi / (2 * n - 1)
    v = [math.sin(k * angle) for k in range(n)]
    norm = math.sqrt(sum(x * x for x in v))
    v = [x / norm for x in v]
    return v[::-1], v, 1 / (2 * math.sin(angle / 2))
