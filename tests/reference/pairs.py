"""Majority methods written as plainly as their definitions; the oracle for the kernels.

Every function takes the items and the voices: pairs of a weight and a mapping from item to rank.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from podium import Preferences


def voices(preferences: Preferences, query, weights) -> tuple[list, list]:
    """Items of a query with all preferences about them; a comparison is a list of two."""
    one = preferences.select([query])
    items, lists, votes = one.index.items.tolist(), one.lists, one.comparisons
    found = []
    for lst in range(len(lists)):
        rows = range(lists.starts[lst], lists.starts[lst + 1])
        ranks = {items[lists.item[r]]: int(lists.rank[r]) for r in rows}
        if preferences.unlisted == "below":
            ranks = {i: ranks.get(i, math.inf) for i in items}
        found.append((weights[one.experts[int(lists.expert[lst])]], ranks))
    for v in range(len(votes)):
        ranks = {items[votes.winner[v]]: 1, items[votes.loser[v]]: 1 if votes.tie[v] else 2}
        found.append((weights[one.experts[int(votes.expert[v])]] * float(votes.weight[v]), ranks))
    return items, [(Fraction(w), r) for w, r in found if w > 0]


def silent(items, said) -> set:
    return {i for i in items if not any(i in ranks for _, ranks in said)}


def compute_vote_matrix(items, said) -> dict:
    """(i, j) -> weight of the voices that put i above j."""
    return {
        (i, j): sum((w for w, r in said if i in r and j in r and r[i] < r[j]), Fraction(0))
        for i in items
        for j in items
    }


def margin(items, said) -> dict:
    won = compute_vote_matrix(items, said)
    return {(i, j): won[i, j] - won[j, i] for i in items for j in items}


def sign(x) -> int:
    return (x > 0) - (x < 0)


def copeland(items, said) -> dict:
    d = margin(items, said)
    return {i: sum(sign(d[i, j]) for j in items) for i in items}


def by_groups(groups) -> dict:
    """Items below minus items above, from tie groups in order."""
    return {
        i: sum(len(h) for h in groups[k + 1 :]) - sum(len(h) for h in groups[:k])
        for k, g in enumerate(groups)
        for i in g
    }


def grouped(items, key) -> list:
    return [[i for i in items if key[i] == k] for k in sorted({key[i] for i in items}, reverse=True)]


def condorcet(items, said) -> dict:
    d, won = margin(items, said), compute_vote_matrix(items, said)

    def refine(block):
        parts = grouped(block, {i: sum(sign(d[i, j]) for j in block) for i in block})
        return parts if len(parts) == 1 else [g for part in parts for g in refine(part)]

    def merge(left, right):
        merged = []
        while left and right:
            beaten = sum(d[r, x] for r in right[0] for x in left[0]) > 0
            merged.append((right if beaten else left).pop(0))
        return merged + left + right

    voted = {i: any(won[i, j] or won[j, i] for j in items) for i in items}
    start = {i: sum(d[i, j] for j in items) if voted[i] else -math.inf for i in items}
    runs = [[block] for group in grouped(items, start) for block in refine(group)]
    while len(runs) > 1:
        pairs = [runs[k : k + 2] for k in range(0, len(runs), 2)]
        runs = [merge(*p) if len(p) == 2 else p[0] for p in pairs]
    return by_groups(runs[0])


def greedy(items, said) -> dict:
    d, left, groups = margin(items, said), list(items), []
    while left:
        taken = grouped(left, {i: sum(d[i, j] for j in left) for i in left})[0]
        while (best := grouped(taken, {i: sum(d[i, j] for j in taken) for i in taken})[0]) != taken:
            taken = best
        groups.append(taken)
        left = [i for i in left if i not in taken]
    return by_groups(groups)


def schulze(items, said, winning=True) -> dict:
    won, d = compute_vote_matrix(items, said), margin(items, said)
    strength = {p: (won[p] if winning else d[p]) if d[p] > 0 else Fraction(0) for p in d}

    def widest(a, b):
        """Best over all simple paths of the weakest link: tried one by one."""
        others = [x for x in items if x not in (a, b)]
        paths = (m for k in range(len(others) + 1) for m in itertools.permutations(others, k))
        return max(min(strength[e] for e in itertools.pairwise((a, *p, b))) for p in paths)

    best = {(a, b): widest(a, b) for a in items for b in items if a != b}
    return {a: sum(sign(best[a, b] - best[b, a]) for b in items if b != a) for a in items}


def strengths(items, said, winning) -> dict:
    won, d = compute_vote_matrix(items, said), margin(items, said)
    return {p: (won[p] if winning else d[p]) if d[p] > 0 else Fraction(0) for p in d}


def minimax(items, said, winning=False) -> dict:
    strength, left, groups = strengths(items, said, winning), list(items), []
    while left:
        worst = {i: max(strength[j, i] for j in left) for i in left}
        groups.append([i for i in left if worst[i] == min(worst.values())])
        left = [i for i in left if i not in groups[-1]]
    return by_groups(groups)


def split_cycle(items, said, winning=False) -> dict:
    """A majority is a defeat unless it is the weakest of some cycle: all cycles through it are tried."""
    strength = strengths(items, said, winning)

    def defeats(a, b):
        others = [x for x in items if x not in (a, b)]
        back = (m for k in range(len(others) + 1) for m in itertools.permutations(others, k))
        cycles = ([strength[e] for e in itertools.pairwise((b, *m, a))] for m in back)
        return strength[a, b] > 0 and all(min(c) < strength[a, b] for c in cycles)

    beaten, left, groups = {(a, b): defeats(a, b) for a in items for b in items if a != b}, list(items), []
    while left:
        groups.append([i for i in left if not any(beaten[j, i] for j in left if j != i)])
        left = [i for i in left if i not in groups[-1]]
    return by_groups(groups)


def win_rate(items, said) -> dict:
    """Mean over the opponents of the share of the voices for the item, ties half; None without opponents."""
    won = compute_vote_matrix(items, said)
    tied = {
        (i, j): sum((w for w, r in said if i in r and j in r and r[i] == r[j] < math.inf), Fraction(0))
        for i in items
        for j in items
    }
    scores = {}
    for i in items:
        met = [j for j in items if j != i and won[i, j] + won[j, i] + tied[i, j]]
        shares = [(won[i, j] + tied[i, j] / 2) / (won[i, j] + won[j, i] + tied[i, j]) for j in met]
        scores[i] = sum(shares) / len(met) if met else None
    return scores


def ranked_pairs(items, said) -> dict:
    d, locked = margin(items, said), set()

    def reaches(edges, a, b):
        seen, todo = set(), [a]
        while todo:
            x = todo.pop()
            for u, v in edges:
                if u == x and v not in seen:
                    seen.add(v)
                    todo.append(v)
        return b in seen

    for size in sorted({v for v in d.values() if v > 0}, reverse=True):
        group = {(a, b) for (a, b), v in d.items() if v == size and not reaches(locked, b, a)}
        locked |= {(a, b) for a, b in group if not reaches(locked | group, b, a)}
    over = {(a, b) for a in items for b in items if a != b and reaches(locked, a, b)}
    return {i: sum(a == i for a, _ in over) - sum(b == i for _, b in over) for i in items}


def majority(items, said) -> dict:
    """Mean share of the other items beaten; None without a voice."""

    def share(ranks, i):
        others = [r for j, r in ranks.items() if j != i]
        beaten = sum(Fraction(1) if ranks[i] < r else Fraction(1, 2) if ranks[i] == r else 0 for r in others)
        return beaten / len(others) if others else Fraction(1, 2)

    scores = {}
    for i in items:
        heard = [(w, r) for w, r in said if i in r]
        scores[i] = sum(w * share(r, i) for w, r in heard) / sum(w for w, _ in heard) if heard else None
    return scores


def disagreements(items, said, order) -> Fraction:
    won = compute_vote_matrix(items, said)
    return sum((won[b, a] for a, b in itertools.combinations(order, 2)), Fraction(0))


def kemeny(items, said) -> Fraction:
    """The least disagreement of all rankings."""
    won = compute_vote_matrix(items, said)
    return min(sum(won[b, a] for a, b in itertools.combinations(o, 2)) for o in itertools.permutations(items))
