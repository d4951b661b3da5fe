"""Walks down rankings: every measure of a query in one pass over its order.

A measure is a kind of walk, a gain for each grade level, a discount for each position and a limit for each query.
Levels are small integers that stand for the distinct grades, so gains are tables and no kernel knows a formula.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I4, I8, by_queries, large

__all__ = ["BPREF", "CASCADE", "PRECISION", "SUM", "Rankings", "Walk", "walk"]

SUM = 0  # sum of gain x discount
PRECISION = 1  # sum over relevant places of (relevant places so far) / place; gains are 0 or 1
CASCADE = 2  # sum of discount x gain x product of (1 - gain) above: reading stops with probability `gain`
BPREF = 3  # sum over relevant places of 1 - min(non-relevant above, limit) / limit; gain -1 marks places to skip


class Rankings(NamedTuple):
    """Orders to walk: `query[j]` is the segment of `starts` that the j-th query has, or -1 for none."""

    query: I8
    starts: I8
    order: I4
    level: I4  # by slot


class Walk(NamedTuple):
    """One measure; `gain` has one entry per level, the last for items without a grade."""

    kind: int
    gain: F8
    discount: F8
    limit: I8  # places to look at, one number per query (for BPREF: the bound)


def walk(rankings: Rankings, walks: list[Walk]) -> F8:
    """One row per walk, one column per query; queries without a ranking get 0."""
    out = np.zeros((len(walks), len(rankings.query)))
    if not walks or not len(rankings.query):
        return out
    found = rankings.query >= 0
    sizes = np.where(found, np.diff(rankings.starts, append=0)[rankings.query], 0)
    if large(int(sizes.sum())):
        _compiled(rankings, sizes, walks, out)
        return out
    depth = _depth(sizes, walks)
    row_query, place = _places(depth)
    level = rankings.level[rankings.order[np.repeat(rankings.starts[rankings.query], depth) + place]]
    for values, w in zip(out, walks, strict=True):
        seen = place < np.minimum(sizes, sizes if w.kind == BPREF else w.limit)[row_query]
        values[:] = _BODIES[w.kind](row_query[seen], place[seen], w.gain[level[seen]], w, len(values))
    return out


def _depth(sizes: I8, walks: list[Walk]) -> I8:
    """How far down any of the walks goes, for each query."""
    deepest = np.max([sizes if w.kind == BPREF else w.limit for w in walks], axis=0)
    return np.minimum(sizes, deepest)


def _places(depth: I8) -> tuple[I8, I8]:
    row_query = np.repeat(np.arange(len(depth)), depth)
    first = np.cumsum(depth) - depth
    return row_query, np.arange(len(row_query)) - first[row_query]


def _compiled(rankings: Rankings, sizes: I8, walks: list[Walk], out: F8) -> None:
    from podium.kernels.compiled.measures import walk as kernel

    width = max(len(w.discount) for w in walks)
    discount = np.stack([np.pad(w.discount, (0, width - len(w.discount))) for w in walks])
    kind = np.array([w.kind for w in walks], np.int64)
    gain = np.stack([w.gain for w in walks])
    limit = np.stack([w.limit for w in walks])
    work = np.concatenate(([0], np.cumsum(sizes)))
    depth = _depth(sizes, walks)
    by_queries(kernel, work, *rankings, depth, kind, gain, discount, limit, out)


# -- bodies for small inputs: rows are places in order; bincount adds in row order, as the compiled loops do ---------


def _sum(query: I8, place: I8, gain: F8, w: Walk, queries: int) -> F8:
    return np.bincount(query, weights=gain * w.discount[place], minlength=queries)


def _running(query: I8, place: I8, value: F8) -> F8:
    """Sum of the values from the top of the query down to each row; whole numbers, so exact in any order."""
    total = np.cumsum(value)
    at = np.arange(len(value)) - place
    return np.asarray(total - (total - value)[at]) if len(value) else total


def _precision(query: I8, place: I8, gain: F8, w: Walk, queries: int) -> F8:
    return np.bincount(query, weights=gain * _running(query, place, gain) / (place + 1), minlength=queries)


def _bpref(query: I8, place: I8, gain: F8, w: Walk, queries: int) -> F8:
    above = _running(query, place, (gain == 0).astype(np.float64))
    bound = w.limit[query]
    loss = np.divide(np.minimum(above, bound), bound, out=np.zeros(len(gain)), where=bound > 0)
    return np.bincount(query, weights=np.where(gain > 0, 1.0 - loss, 0.0), minlength=queries)


def _cascade(query: I8, place: I8, gain: F8, w: Walk, queries: int) -> F8:
    """Loops over places or over queries, whichever are fewer, since products have no grouped form in numpy."""
    lengths = np.bincount(query, minlength=queries)
    first = np.cumsum(lengths) - lengths
    value = np.zeros(queries)
    if queries < lengths.max(initial=0):
        for q in np.flatnonzero(lengths):
            here = gain[first[q] : first[q] + lengths[q]]
            alive = np.concatenate(([1.0], np.cumprod(1.0 - here)[:-1]))
            value[q] = np.cumsum(w.discount[: lengths[q]] * here * alive)[-1]
        return value
    left = np.ones(queries)
    for i in range(int(lengths.max(initial=0))):
        active = np.flatnonzero((lengths > i) & (left > 0))
        if not len(active):
            break
        g = gain[first[active] + i]
        value[active] += w.discount[i] * g * left[active]
        left[active] *= 1.0 - g
    return value


_BODIES = {SUM: _sum, PRECISION: _precision, CASCADE: _cascade, BPREF: _bpref}
