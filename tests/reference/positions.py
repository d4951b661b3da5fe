"""Position and score methods written as plainly as their definitions; the oracle for the kernels."""

from __future__ import annotations

import math
import statistics

from podium import Preferences
from podium.data.ids import id_order


def answers(preferences: Preferences, query) -> dict:
    """expert -> item -> (rank, score or None) of one query."""
    one = preferences.select([query])
    lists, found = one.lists, {}
    for lst in range(len(lists)):
        rows = range(lists.starts[lst], lists.starts[lst + 1])
        found[one.experts[int(lists.expert[lst])]] = {
            one.index.items[int(lists.item[r])]: (
                int(lists.rank[r]),
                None if lists.score is None else float(lists.score[r]),
            )
            for r in rows
        }
    return found


def items(preferences: Preferences, query) -> list:
    return preferences.index.items[preferences.index.slots(query)]


def place(answer: dict, item) -> float:
    """Mean position of the item among those with its rank."""
    rank = answer[item][0]
    above = sum(r < rank for r, _ in answer.values())
    same = sum(r == rank for r, _ in answer.values())
    return above + (same + 1) / 2


def rrf(preferences, query, weights, k=60):
    found = answers(preferences, query)
    return {
        i: sum(weights[e] / (k + a[i][0]) for e, a in found.items() if i in a)
        for i in items(preferences, query)
    }


def rbc(preferences, query, weights, p=0.9):
    found = answers(preferences, query)
    return {
        i: sum(weights[e] * (1 - p) * p ** (a[i][0] - 1) for e, a in found.items() if i in a)
        for i in items(preferences, query)
    }


def isr(preferences, query, weights):
    found = answers(preferences, query)
    return {
        i: sum(weights[e] / a[i][0] ** 2 for e, a in found.items() if i in a)
        * sum(weights[e] for e, a in found.items() if i in a)
        for i in items(preferences, query)
    }


def log_isr(preferences, query, weights, sigma=0.01):
    found = answers(preferences, query)
    scores = {}
    for i in items(preferences, query):
        count = sum(weights[e] > 0 for e, a in found.items() if i in a)
        points = sum(weights[e] / a[i][0] ** 2 for e, a in found.items() if i in a)
        scores[i] = points * math.log(sigma + count) if count else 0.0
    return scores


def borda(preferences, query, weights, missing="share", upside_down=False):
    found, everything = answers(preferences, query), items(preferences, query)
    size, scores = len(everything), dict.fromkeys(everything, 0.0)
    for e, a in found.items():
        n = len(a)
        for i in everything:
            if i in a:
                p = n + 1 - place(a, i) if upside_down else place(a, i)
                points = (n if missing == "ignore" else size) - p
            else:
                points = (size - n - 1) / 2 if missing == "share" else 0.0
            scores[i] += weights[e] * points
    return scores


def places(preferences, query, weights, missing="share"):
    """item -> list of (place, weight)."""
    found, everything = answers(preferences, query), items(preferences, query)
    size, seen = len(everything), {i: [] for i in everything}
    for e, a in found.items():
        for i in everything:
            if i in a:
                seen[i].append((place(a, i), weights[e]))
            elif missing != "ignore":
                seen[i].append(((len(a) + 1 + size) / 2 if missing == "share" else size, weights[e]))
    return seen


def mean_rank(preferences, query, weights, missing="share"):
    seen = places(preferences, query, weights, missing)
    return {
        i: -sum(p * w for p, w in v) / sum(w for _, w in v) if sum(w for _, w in v) > 0 else None
        for i, v in seen.items()
    }


def median_rank(preferences, query, weights, missing="share"):
    """Whole weights only: an expert of weight w says it w times."""
    seen = places(preferences, query, weights, missing)
    copies = {i: [p for p, w in v for _ in range(int(w))] for i, v in seen.items()}
    return {i: -statistics.median(v) if v else None for i, v in copies.items()}


def normalized(answer: dict, size: int, how: str) -> dict:
    last = max(r for r, _ in answer.values())
    raw = {i: (max(size, last) - r + 1 if s is None else s) for i, (r, s) in answer.items()}
    low, high, n = min(raw.values()), max(raw.values()), len(raw)
    mean = sum(raw.values()) / n
    sd = math.sqrt(sum((v - mean) ** 2 for v in raw.values()) / n)
    sample = statistics.stdev(map(float, raw.values())) if n > 1 else 0.0
    flat = high - low <= 1e-12 * max(abs(high), abs(low))
    total = sum(v - low for v in raw.values())
    rules = {
        "none": lambda i, v: v,
        "minmax": lambda i, v: 1.0 if flat else (v - low) / (high - low),
        "max": lambda i, v: v / (max(abs(high), abs(low)) or 1.0),
        "sum": lambda i, v: 1 / n if flat else (v - low) / total,
        "zscore": lambda i, v: 0.0 if flat else (v - mean) / sd,
        "dbsf": lambda i, v: 0.5 if flat else (v - (mean - 3 * sample)) / (6 * sample),
        "dbsf_population": lambda i, v: 0.5 if flat else (v - (mean - 3 * sd)) / (6 * sd),
        "rank": lambda i, v: (n + 1 - place(answer, i)) / n,
        "borda": lambda i, v: (size + 1 - place(answer, i)) / size,
        "sigmoid": lambda i, v: 1 / (1 + math.exp(-v)) if v > -700 else 0.0,
    }
    return {i: rules[how](i, v) for i, v in raw.items()}


def comb(preferences, query, weights, how, combine):
    """`combine` maps a list of (score, weight) to a score; items nobody lists give None."""
    everything = items(preferences, query)
    tables = {e: normalized(a, len(everything), how) for e, a in answers(preferences, query).items()}
    seen = {
        i: [(t[i], weights[e]) for e, t in tables.items() if i in t and weights[e] > 0] for i in everything
    }
    return {i: combine(v) if v else None for i, v in seen.items()}


COMBINE = {
    "combsum": lambda v: sum(s * w for s, w in v),
    "combmnz": lambda v: sum(s * w for s, w in v) * sum(w for _, w in v),
    "combanz": lambda v: sum(s * w for s, w in v) / sum(w for _, w in v),
    "combmin": lambda v: min(s for s, _ in v),
    "combmax": lambda v: max(s for s, _ in v),
    "combmed": lambda v: statistics.median([s for s, w in v for _ in range(int(w))]),
}


def rank_totals(totals, tolerance):
    """Ids by falling total, ties by id; neighbors within the tolerance of the upper one are tied, and get one value."""
    ranking = sorted(sorted(totals, key=id_order), key=lambda item: -totals[item])
    groups = []
    for item in ranking:
        if groups and totals[groups[-1][-1]] - totals[item] <= tolerance * totals[groups[-1][-1]]:
            groups[-1].append(item)
        else:
            groups.append([item])
    scores = [totals[group[0]] for group in groups for _ in group]
    return [item for group in groups for item in sorted(group, key=id_order)], scores
