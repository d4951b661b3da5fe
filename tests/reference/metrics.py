"""Plain loops for every metric: a ranking is a list of grades from the top, None for unjudged items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Grades = Sequence[float | None]


def _value(grade: float | None) -> float:
    return 0.0 if grade is None else max(grade, 0.0)


def _relevant(grade: float | None, threshold: float = 1) -> bool:
    return grade is not None and grade >= threshold


def _dcg(
    grades: Grades, gain: Callable[[float], float], discount: Callable[[int], float], k: int | None
) -> float:
    return sum(gain(_value(g)) * discount(i) for i, g in enumerate(list(grades)[:k], start=1))


def ndcg(ranked: Grades, judged: Sequence[float], k: int | None = None, dialect: str = "trec") -> float:
    gain = (lambda g: g) if dialect == "trec" else (lambda g: 2.0**g - 1)
    if dialect == "letor":
        discount = lambda i: 1.0 if i == 1 else 1 / math.log2(i)  # noqa: E731
    else:
        discount = lambda i: 1 / math.log2(i + 1)  # noqa: E731
    best = _dcg(sorted(judged, reverse=True), gain, discount, k)
    return _dcg(ranked, gain, discount, k) / best if best else 0.0


def dcg(ranked: Grades, judged: Sequence[float], k: int | None = None, dialect: str = "trec") -> float:
    gain = (lambda g: g) if dialect == "trec" else (lambda g: 2.0**g - 1)
    return _dcg(ranked, gain, lambda i: 1 / math.log2(i + 1), k)


def hits(ranked: Grades, judged: Sequence[float], k: int | None = None) -> float:
    return sum(map(_relevant, list(ranked)[:k]))


def f1(ranked: Grades, judged: Sequence[float], k: int) -> float:
    """The harmonic mean of precision and recall, as a textbook has it."""
    p, r = precision(ranked, judged, k), recall(ranked, judged, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def average_precision(
    ranked: Grades, judged: Sequence[float], k: int | None = None, threshold: float = 1
) -> float:
    hits, total = 0, 0.0
    for i, g in enumerate(list(ranked)[:k], start=1):
        if _relevant(g, threshold):
            hits += 1
            total += hits / i
    there = sum(_relevant(g, threshold) for g in judged)
    return total / there if there else 0.0


def precision(ranked: Grades, judged: Sequence[float], k: int) -> float:
    return sum(map(_relevant, list(ranked)[:k])) / k


def recall(ranked: Grades, judged: Sequence[float], k: int | None = None) -> float:
    there = sum(map(_relevant, judged))
    return sum(map(_relevant, list(ranked)[:k])) / there if there else 0.0


def reciprocal_rank(ranked: Grades, judged: Sequence[float], k: int | None = None) -> float:
    return next((1 / i for i, g in enumerate(list(ranked)[:k], start=1) if _relevant(g)), 0.0)


def success(ranked: Grades, judged: Sequence[float], k: int | None = None) -> float:
    return float(any(map(_relevant, list(ranked)[:k])))


def r_precision(ranked: Grades, judged: Sequence[float]) -> float:
    there = sum(map(_relevant, judged))
    return sum(map(_relevant, list(ranked)[:there])) / there if there else 0.0


def bpref(ranked: Grades, judged: Sequence[float]) -> float:
    there = sum(map(_relevant, judged))
    against = sum(0 <= g < 1 for g in judged)
    above, total = 0, 0.0
    for g in ranked:
        if g is None or g < 0:
            continue
        if _relevant(g):
            total += 1 - min(above, there) / min(against, there) if above else 1
        else:
            above += 1
    return total / there if there else 0.0


def err(ranked: Grades, judged: Sequence[float], top: float, k: int | None = None) -> float:
    left, total = 1.0, 0.0
    for i, g in enumerate(list(ranked)[:k], start=1):
        stop = (2.0 ** _value(g) - 1) / 2.0**top
        total += left * stop / i
        left *= 1 - stop
    return total


def rbp(ranked: Grades, judged: Sequence[float], p: float, k: int | None = None) -> float:
    return (1 - p) * sum(p ** (i - 1) for i, g in enumerate(list(ranked)[:k], start=1) if _relevant(g))


def judged_share(ranked: Grades, judged: Sequence[float], k: int | None = None) -> float:
    seen = list(ranked)[:k]
    return sum(g is not None for g in seen) / len(seen) if seen else 0.0
