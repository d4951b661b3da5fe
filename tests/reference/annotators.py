"""Annotators of unknown quality, written as plainly as the definitions; the oracle for the kernels."""

from __future__ import annotations

import itertools
import math
from collections import Counter


def said(preferences) -> Counter:
    """(expert, query, better, worse) -> weight of the votes."""
    found = Counter()
    lists, votes, index = preferences.lists, preferences.comparisons, preferences.index
    for n in range(len(lists)):
        q, e = int(lists.query_of_list[n]), preferences.experts[int(lists.expert[n])]
        rows = range(lists.starts[n], lists.starts[n + 1])
        rank = {int(lists.item[r]): int(lists.rank[r]) for r in rows}
        if preferences.unlisted == "below":
            for slot in range(index.starts[q], index.starts[q + 1]):
                rank.setdefault(slot, 10**6)
        for i, j in itertools.permutations(rank, 2):
            if rank[i] < rank[j]:
                found[e, index.queries[q], index.items[i], index.items[j]] += 1.0
    for v in range(len(votes)):
        if not votes.tie[v]:
            e, q = preferences.experts[int(votes.expert[v])], index.queries[int(votes.query_of_row[v])]
            pair = index.items[int(votes.winner[v])], index.items[int(votes.loser[v])]
            found[(e, q, *pair)] += float(votes.weight[v])
    return found


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def noisy_loss(rows, x, slots, virtual, right, wrong) -> float:
    """Minus the log posterior of Crowd-BT; rows are (first, second, group, won, lost); no `right`: no one errs."""
    total = 0.0
    for i, j, g, won, lost in rows:
        s = logistic(x[i] - x[j])
        h = logistic(x[slots + g]) if len(right) else 1.0
        p = h * s + (1 - h) * (1 - s)
        total -= won * math.log(p) + lost * math.log(1 - p)
    for i in range(slots):
        total -= virtual * (math.log(logistic(x[i])) + math.log(logistic(-x[i])))
    for g in range(len(right)):
        h = logistic(x[slots + g])
        total -= right[g] * math.log(h) + wrong[g] * math.log(1 - h)
    return total


def pair_likelihood(given, coins, x) -> tuple[float, list[float]]:
    """The log posterior of coins with these log odds, and the probability that each pair's first item is better."""
    total, truth = 0.0, []
    for p in range(len(given.first)):
        first = second = 0.5
        for r in range(len(given.pair)):
            if given.pair[r] != p:
                continue
            a, b = logistic(x[coins.first[r]]), logistic(x[coins.second[r]])
            w = coins.weight[coins.first[r]]
            first *= (a ** given.won[r] * (1 - a) ** given.lost[r]) ** w
            second *= (b ** given.lost[r] * (1 - b) ** given.won[r]) ** w
        total += math.log(first + second)
        truth.append(first / (first + second))
    for c in range(len(coins.weight)):
        h = logistic(x[c])
        total += coins.weight[c] * (coins.right[c] * math.log(h) + coins.wrong[c] * math.log(1 - h))
    return total, truth


def class_likelihood(given, table, share) -> tuple[float, list[list[float]]]:
    """The log posterior of confusion tables and shares of levels, and the probabilities of each item's levels."""
    levels, total, truth = len(share), 0.0, []
    for i in range(given.items):
        chance = list(share)
        for r in range(len(given.item)):
            if given.item[r] == i:
                g = given.group[r]
                for k in range(levels):
                    chance[k] *= table[g][k][given.level[r]] ** given.weight[g]
        if (given.item == i).any():
            total += math.log(sum(chance))
        truth.append([c / sum(chance) for c in chance])
    total += sum(math.log(s) for s in share)
    for g in range(len(given.weight)):
        for k, said_level in itertools.product(range(levels), repeat=2):
            total += given.weight[g] * given.prior[g][k][said_level] * math.log(table[g][k][said_level])
    return total, truth


def compute_expected_elo(pairs, slots, k, rate, parts) -> list[float]:
    """Matches (first, second, won, lost) cut into so many portions, one of all matches played at once."""
    ratings = [0.0] * slots
    for _ in range(parts):
        gain = [0.0] * slots
        for i, j, won, lost in pairs:
            surprise = won - (won + lost) * logistic(rate * (ratings[i] - ratings[j]))
            gain[i] += surprise
            gain[j] -= surprise
        ratings = [r + k * g / parts for r, g in zip(ratings, gain, strict=True)]
    return ratings
