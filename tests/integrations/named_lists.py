"""Lists for adapters: random ones, and the plain sums of reciprocal ranks to compare with."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

ScoredList = list[tuple[str, float]]


def sample_lists(seed: int, experts: Sequence[str] = ("bm25", "dense", "splade")) -> dict[str, ScoredList]:
    """A list per expert, best first, with falling scores, some of them equal."""
    rng = random.Random(seed)
    items = [f"d{number}" for number in range(12)]
    lists = {}
    for expert in experts:
        listed = rng.sample(items, rng.randint(1, 9))
        scores = sorted((rng.randint(1, 6) / 2 for _ in listed), reverse=True)
        lists[expert] = list(zip(listed, scores, strict=True))
    return lists


def sum_reciprocal_ranks(
    lists: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None, k: float = 60
) -> dict[str, float]:
    """Weighted reciprocal rank fusion as it is published."""
    totals: dict[str, float] = {}
    for expert, items in lists.items():
        for rank, item in enumerate(items, 1):
            totals[item] = totals.get(item, 0.0) + (weights or {}).get(expert, 1.0) / (k + rank)
    return totals


def number_by_score(scored: ScoredList) -> dict[str, int]:
    """Competition ranks: one more than the number of better scores."""
    return {item: 1 + sum(other > score for _, other in scored) for item, score in scored}
