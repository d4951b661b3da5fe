"""Plain twins of the rank laws: every outcome of every contest, one after the other."""

from __future__ import annotations

import itertools
import math


def law(win):
    """P(rank = r), r from 0, by going through all outcomes."""
    found = [0.0] * (len(win) + 1)
    for outcome in itertools.product((0, 1), repeat=len(win)):
        chance = math.prod(1 - p if lost else p for p, lost in zip(win, outcome, strict=True))
        found[sum(outcome)] += chance
    return found


def convolved(win):
    """The same, contest by contest."""
    found = [1.0]
    for p in win:
        found = [a * p + b * (1 - p) for a, b in zip([*found, 0.0], [0.0, *found], strict=True)]
    return found


def expected(win, discount):
    """The expected discount at the rank."""
    return math.fsum(p * d for p, d in zip(convolved(win), discount, strict=False))


def discounts(measure, size, persistence=0.95):
    """What ranks from 0 are worth."""
    if measure == "rbp":
        return [(1 - persistence) * persistence**r for r in range(size)]
    return [1 / math.log2(r + 2) for r in range(size)]


def contests(items, beats, pair, by, chance=None):
    """Win probabilities of every item of one annotator against every other item of the query.

    `beats` holds (winner, loser) pairs; items in no pair and not in `chance` are not judged. `chance` maps judged items
    to their chance against items that are not judged; None: even.
    """
    wins = {i: sum(a == i for a, _ in beats) for i in items}
    judged = set(chance) if chance is not None else {i for p in beats for i in p}
    table = {}
    for s in items:
        for t in items:
            if s == t:
                continue
            if (s, t) in beats or (t, s) in beats:
                table[s, t] = _chance(wins[s] - wins[t], 1 if (s, t) in beats else -1, pair, by)
            elif chance is not None and s in judged and t not in judged:
                table[s, t] = chance[s]
            else:
                table[s, t] = 0.5
    return table


def _chance(d, voted, pair, by):
    if pair == "vote":
        return 0.5 + voted / 2
    if d == 0:
        return 0.5
    if pair == "printed":
        return d / by if d > 0 else 1 + d / by
    return 0.5 + d / (2 * by)


def tilted(table, eta):
    """The same contests as seen through an annotator of that quality."""
    return {k: eta * p + (1 - eta) * (1 - p) for k, p in table.items()}


def share_agreeing(beats, place):
    """Pairs that a ranking has in the same order, ties half, over all pairs."""
    right = sum((place[a] < place[b]) + 0.5 * (place[a] == place[b]) for a, b in beats)
    return right, len(beats)
