"""Made-up runs for the benchmarks: engines that agree in part on a pool of documents per query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Runs(NamedTuple):
    """Rows grouped by query, then expert, then rank; `item` numbers documents inside the pool of the query."""

    queries: int
    experts: int
    depth: int
    pool: int
    item: np.ndarray  # (queries, experts, depth)
    score: np.ndarray  # falling along the depth


def runs(queries: int, experts: int = 10, depth: int = 100, pool: int = 300, seed: int = 0) -> Runs:
    """Each engine sees a document's quality through its own noise and returns its best `depth` of the pool."""
    rng = np.random.default_rng(seed)
    item = np.empty((queries, experts, depth), np.int32)
    score = np.empty((queries, experts, depth))
    noise = np.linspace(0.5, 1.5, experts)[None, :, None]
    for begin in range(0, queries, 500):
        n = min(500, queries - begin)
        seen = rng.normal(size=(n, 1, pool)) + noise * rng.normal(size=(n, experts, pool))
        best = np.argsort(-seen, axis=2)[:, :, :depth]
        item[begin : begin + n] = best
        score[begin : begin + n] = np.take_along_axis(seen, best, axis=2)
    return Runs(queries, experts, depth, pool, item, score)


def rows(made: Runs) -> dict[str, np.ndarray]:
    """The same as five flat columns of integers and floats."""
    q, e, d = made.queries, made.experts, made.depth
    return {
        "query": np.repeat(np.arange(q, dtype=np.int64), e * d),
        "expert": np.tile(np.repeat(np.arange(e, dtype=np.int64), d), q),
        "item": made.item.reshape(-1).astype(np.int64),
        "rank": np.tile(np.arange(1, d + 1, dtype=np.int32), q * e),
        "score": made.score.reshape(-1),
    }
