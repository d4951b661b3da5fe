"""Walks down rankings: every measure of a query in one pass over its order; and counts of pairs.

A measure is a kind of walk, a gain per level, a discount per place and a limit per query. Levels are small
integers that stand for the distinct grades, so gains are tables and the kernels contain no
formulas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import ranking_measures as core
from podium.kernels.dispatch import F8, I4, I8, run_in_threads

__all__ = [
    "BPREF",
    "CASCADE",
    "PRECISION",
    "SUM",
    "RankingWalk",
    "Rankings",
    "count_earlier",
    "walk_rankings",
]

SUM = 0  # sum of gain x discount
PRECISION = 1  # sum over relevant places of (relevant places so far) / discount; gains are 0 or 1
CASCADE = 2  # sum of discount x gain x product of (1 - gain) above: reading stops with probability `gain`
# sum over relevant places of 1 - min(non-relevant above, limit) / limit; gain -1 marks skipped places
BPREF = 3


class Rankings(NamedTuple):
    """Orders to walk: `query[j]` is the segment of `starts` of the j-th query, or -1 for none."""

    query: I8
    starts: I8
    order: I4
    level: I4  # by slot


class RankingWalk(NamedTuple):
    """One measure; `gain` has one entry per level, the last for items without a grade."""

    kind: int
    gain: F8
    discount: F8
    limit: I8  # places to look at, one number per query (for BPREF: the bound)


def walk_rankings(rankings: Rankings, walks: list[RankingWalk]) -> F8:
    """One row per walk, one column per query; queries without a ranking get 0."""
    out = np.zeros((len(walks), len(rankings.query)))
    if not walks or not len(rankings.query):
        return out
    found = rankings.query >= 0
    # append=0: a query without a ranking has the index -1, which must exist
    sizes = np.where(found, np.diff(rankings.starts, append=0)[rankings.query], 0)
    width = max(len(w.discount) for w in walks)
    discount = np.stack([np.pad(w.discount, (0, width - len(w.discount))) for w in walks])
    kind = np.array([w.kind for w in walks], np.int64)
    gain, limit = np.stack([w.gain for w in walks]), np.stack([w.limit for w in walks])
    # how far down the longest of the walks goes
    # the limit of BPREF bounds a count of items, not a depth
    depth = np.minimum(sizes, np.max([sizes if w.kind == BPREF else w.limit for w in walks], axis=0))
    given = (*rankings, depth, kind, gain, discount, limit, out)
    run_in_threads(core.walk_rankings, np.concatenate(([0], np.cumsum(sizes))), *given)
    return out


# -- pairs --------------------------------------------------------------------------------------------------


def count_earlier(starts: I8, value: I8) -> tuple[I8, I8]:
    """For every row, how many rows before it in its segment have a smaller value, and how many a larger one.

    Values are integers from 0, small for speed. O(n log n).
    """
    smaller, larger = np.zeros(len(value), np.int64), np.zeros(len(value), np.int64)
    if not len(value):
        return smaller, larger
    run_in_threads(core.count_earlier, starts, starts, value.astype(np.int64, copy=False), smaller, larger)
    return smaller, larger
