"""Markov chains written as plainly as their definitions, solved exactly with fractions."""

from __future__ import annotations

from fractions import Fraction

from reference.pairs import margin


def mc1(items, said, p) -> dict:
    above = [(w, q) for w, ranks in said if p in ranks for q in ranks if ranks[q] <= ranks[p]]
    total = sum(w for w, _ in above)
    return {q: sum(w for w, r in above if r == q) / total for q in items}


def mc2(items, said, p) -> dict:
    move = dict.fromkeys(items, Fraction(0))
    lists = [(w, ranks) for w, ranks in said if p in ranks]
    for w, ranks in lists:
        above = [q for q in ranks if ranks[q] <= ranks[p]]
        for q in above:
            move[q] += w / sum(v for v, _ in lists) / len(above)
    return move


def mc3(items, said, p) -> dict:
    move = dict.fromkeys(items, Fraction(0))
    lists = [(w, ranks) for w, ranks in said if p in ranks]
    for w, ranks in lists:
        for q in ranks:
            move[q if ranks[q] < ranks[p] else p] += w / sum(v for v, _ in lists) / len(ranks)
    return move


def mc4(items, said, p) -> dict:
    move, d = dict.fromkeys(items, Fraction(0)), margin(items, said)
    for q in items:
        move[q if d[q, p] > 0 else p] += Fraction(1, len(items))
    return move


def stationary(chain, items, said, teleport) -> dict:
    """The only solution of x = x P, where the walk teleports and items of no list always jump."""
    n, t = len(items), Fraction(teleport)
    anywhere = dict.fromkeys(items, Fraction(1, n))
    rows = {p: chain(items, said, p) if any(p in r for _, r in said) else anywhere for p in items}
    for row in rows.values():
        assert sum(row.values()) == 1
    # x (I - (1 - t) P) = t / n, by Gauss-Jordan
    system = [[(i == j) - (1 - t) * rows[j][i] for j in items] + [t / n] for i in items]
    for k in range(n):
        pivot = next(r for r in range(k, n) if system[r][k] != 0)
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [v / system[k][k] for v in system[k]]
        for r in range(n):
            if r != k and system[r][k] != 0:
                system[r] = [a - system[r][k] * b for a, b in zip(system[r], system[k], strict=True)]
    return {i: float(system[k][n]) for k, i in enumerate(items)}
