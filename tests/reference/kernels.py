"""Kernels as plain loops over Python lists."""

from __future__ import annotations

import itertools


def number_pairs(group, value, groups):
    """Distinct values per group in order, when each first came, and the number of each row's pair."""
    seen = [[] for _ in range(groups)]
    for g, v in zip(group, value, strict=True):
        if v not in seen[g]:
            seen[g].append(v)
    pairs = [(g, v) for g in range(groups) for v in sorted(seen[g])]
    starts = [sum(len(s) for s in seen[:g]) for g in range(groups + 1)]
    arrival = [seen[g].index(v) for g, v in pairs]
    return starts, [v for _, v in pairs], arrival, [pairs.index(p) for p in zip(group, value, strict=True)]


def rank_order(scores, starts, tie_key=None, tolerance=1e-12):
    """Snapped scores, order and tied flags, one query after the other."""
    snapped, order, tied = list(scores), [], []
    for a, b in itertools.pairwise(starts):
        slots = sorted(range(a, b), key=lambda s: -scores[s])
        largest = max((abs(scores[s]) for s in slots), default=0.0)
        groups: list[list[int]] = []
        for at, s in enumerate(slots):
            above = scores[slots[at - 1]]
            if at and above - scores[s] <= tolerance * max(abs(above), abs(scores[s]), largest / 64):
                groups[-1].append(s)
            else:
                groups.append([s])
        for g in groups:
            best = max(scores[s] for s in g)
            for s in g:
                snapped[s] = best
            order += sorted(g, key=lambda s: s if tie_key is None else (tie_key[s], s))
            tied += [len(g) > 1] * len(g)
    return snapped, order, tied


def competition_ranks(group, value):
    return [
        1 + sum(h == g and v < w for h, v in zip(group, value, strict=True))
        for g, w in zip(group, value, strict=True)
    ]


def fractional_ranks(starts, rank):
    found = []
    for a, b in itertools.pairwise(starts):
        for r in rank[a:b]:
            found.append(sum(x < r for x in rank[a:b]) + (sum(x == r for x in rank[a:b]) + 1) / 2)
    return found
