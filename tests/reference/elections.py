"""Voting rules on whole ballots, as plainly as their definitions.

Ballots are pairs of a weight and a mapping from item to rank, as `reference.pairs.voices` reads them.
"""

from __future__ import annotations

from fractions import Fraction

from reference.pairs import by_groups


def points_of(rule, k, size) -> list:
    """The points of the places 1 to `size`."""
    if isinstance(rule, list):
        return [Fraction(p) for p in [*rule, *[0] * size][:size]]
    return {
        "plurality": [Fraction(p == 1) for p in range(1, size + 1)],
        "veto": [Fraction(p < size) for p in range(1, size + 1)],
        "k_approval": [Fraction(p <= k) for p in range(1, size + 1)],
        "dowdall": [Fraction(1, p) for p in range(1, size + 1)],
        "borda": [Fraction(size - p) for p in range(1, size + 1)],
    }[rule]


def scoring(items, ballots, rule, k, missing) -> dict:
    scores = dict.fromkeys(items, Fraction(0))
    for weight, ranks in ballots:
        points = points_of(rule, k, len(ranks) if missing == "ignore" else len(items))
        place = 0
        for rank in sorted(set(ranks.values())):
            tied = [i for i in ranks if ranks[i] == rank]
            for i in tied:
                scores[i] += weight * sum(points[place : place + len(tied)]) / len(tied)
            place += len(tied)
        rest = [i for i in items if i not in ranks]
        for i in rest if missing != "ignore" else []:
            scores[i] += weight * (points[-1] if missing == "last" else sum(points[place:]) / len(rest))
    return scores


def irv(items, ballots) -> dict:
    def order(group):
        """Tie groups, best first."""
        count = dict.fromkeys(group, Fraction(0))
        for weight, ranks in ballots:
            here = {i: ranks[i] for i in group if i in ranks}
            first = [i for i in here if here[i] == min(here.values())]
            for i in first:
                count[i] += Fraction(weight) / len(first)
        fewest = [i for i in group if count[i] == min(count.values())]
        if len(fewest) == len(group):
            return [group]
        return order([i for i in group if i not in fewest]) + order(fewest)

    return by_groups(order(list(items)))


def majority_judgment(items, grades) -> dict:
    """`grades` maps an item to its grades, each as often as it was given."""

    def key(i):
        ordered = sorted(grades[i])
        n = len(ordered)
        median = ordered[(n - 1) // 2]
        higher, lower = sum(g > median for g in ordered), sum(g < median for g in ordered)
        return median, Fraction(higher, n) if higher > lower else -Fraction(lower, n)

    rated = [i for i in items if grades[i]]
    groups = [[i for i in rated if key(i) == k] for k in sorted({key(i) for i in rated}, reverse=True)]
    return by_groups(groups)
