"""Tests on normalized ranks by their definitions, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction


def normalized_ranks(preferences, query, missing, population) -> dict:
    """Item -> its normalized ranks over the lists."""
    one = preferences.select([query])
    items, lists = one.index.items.tolist(), one.lists
    ranks: dict = {i: [] for i in items}
    for n in range(len(lists)):
        rows = range(int(lists.starts[n]), int(lists.starts[n + 1]))
        rank = {items[lists.item[r]]: int(lists.rank[r]) for r in rows}
        size = len(rank) if missing == "ignore" else max(len(items), population)
        for i in items:
            if i in rank:
                above = sum(r < rank[i] for r in rank.values())
                tied = sum(r == rank[i] for r in rank.values())
                ranks[i].append((above + Fraction(tied + 1, 2)) / size)
            elif missing == "last":
                ranks[i].append(Fraction(1))
    return ranks


def rra(ranks) -> Fraction:
    """n times the smallest chance that at least k of n uniform numbers are below the k-th rank."""
    n = len(ranks)
    return n * min(
        sum(math.comb(n, j) * r**j * (1 - r) ** (n - j) for j in range(k, n + 1))
        for k, r in enumerate(sorted(ranks), 1)
    )


def stuart(ranks) -> Fraction:
    """n! times the integral over 0 < x_1 < ... < x_n with x_k below the k-th rank, by the published recursion."""
    n, r = len(ranks), sorted(ranks)
    v = [Fraction(1)]
    for k in range(1, n + 1):
        terms = ((-1) ** (i - 1) * v[k - i] * r[n - k] ** i / math.factorial(i) for i in range(1, k + 1))
        v.append(sum(terms, Fraction(0)))
    return math.factorial(n) * v[n]
