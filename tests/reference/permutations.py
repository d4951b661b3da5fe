"""A distribution over rankings, written as its definition: every ranking of every item is gone through."""

from __future__ import annotations

import itertools
import math

from podium import Preferences


def distribution(omega: list[float]) -> list[tuple[tuple[int, ...], float]]:
    """All rankings (items from the top) with their probabilities."""
    orders = list(itertools.permutations(range(len(omega))))
    energy = [-sum(omega[i] / math.log2(p + 1) for p, i in enumerate(order, 1)) for order in orders]
    least = min(energy)
    weight = [math.exp(least - e) for e in energy]
    return [(order, w / sum(weight)) for order, w in zip(orders, weight, strict=True)]


def metric(order, gain, kind: str, discount, limit: int) -> float:
    """A metric of a ranking: a sum of discounted gains, of precisions, or a cascade of readers who stop."""
    total, hits, reading = 0.0, 0.0, 1.0
    for place, item in enumerate(order[:limit]):
        g = gain[item]
        hits += g
        total += {
            "sum": g * discount[place],
            "precision": g * hits / discount[place],
            "cascade": reading * g * discount[place],
        }[kind]
        reading *= 1 - g
    return total


def compute_expected_metric(omega, gain, kind: str, discount, limit: int) -> float:
    """The expected metric as a share of the best that any ranking reaches."""
    found = [(p, metric(order, gain, kind, discount, limit)) for order, p in distribution(omega)]
    best = max(value for _, value in found)
    return sum(p * value for p, value in found) / best if best > 0 else 0.0


def most_probable(omega: list[float]) -> tuple[int, ...]:
    """The ranking with the largest probability."""
    return max(distribution(omega), key=lambda pair: pair[1])[0]


def strength(transform: str, better: int, worse: int, last: int) -> float:
    """How strongly a list prefers one rank to a larger one."""
    if worse <= better:
        return 0.0
    if transform == "binary":
        return 1.0
    if transform == "rank":
        return (worse - better) / last
    return (math.log(worse) - math.log(better)) / math.log(last)


def score(
    preferences: Preferences, query, item, weights, transform: str, power: float, fewer: int = 0
) -> float:
    """omega of an item; `weights` maps experts to (a, bP, bN). For lists only; `fewer` items divide the sums."""
    one = preferences.select([query])
    items, total = one.index.items.tolist(), 0.0
    for number in range(len(one.lists)):
        rows = range(one.lists.starts[number], one.lists.starts[number + 1])
        rank = {items[one.lists.item[r]]: int(one.lists.rank[r]) for r in rows}
        a, up, down = weights[one.experts[int(one.lists.expert[number])]]
        last = max(rank.values())
        if item not in rank:
            total += a
            continue
        others = [r for i, r in rank.items() if i != item]
        above = sum(strength(transform, rank[item], r, last) for r in others)
        below = sum(strength(transform, r, rank[item], last) for r in others)
        total += (up * above - down * below) / (len(items) - fewer) ** power
    return total
