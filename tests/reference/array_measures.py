"""Walks down rankings, and counts of earlier rows, as numpy expressions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I8
from podium.kernels.ranking_measures import BPREF, CASCADE, PRECISION, SUM, RankingWalk


def walk_rankings(rankings, walks):
    """One row per walk, one column per query; queries without a ranking get 0."""
    out = np.zeros((len(walks), len(rankings.query)))
    found = rankings.query >= 0
    sizes = np.where(found, np.diff(rankings.starts, append=0)[rankings.query], 0)
    depth = np.minimum(sizes, np.max([sizes if w.kind == BPREF else w.limit for w in walks], axis=0))
    row_query, place = _number_places(depth)
    level = rankings.level[rankings.order[np.repeat(rankings.starts[rankings.query], depth) + place]]
    for values, w in zip(out, walks, strict=True):
        seen = place < np.minimum(sizes, sizes if w.kind == BPREF else w.limit)[row_query]
        values[:] = _BODIES[w.kind](
            _WalkRows(row_query[seen], place[seen], w.gain[level[seen]], w, len(values))
        )
    return out


def _number_places(depth):
    row_query = np.repeat(np.arange(len(depth)), depth)
    first = np.cumsum(depth) - depth
    return row_query, np.arange(len(row_query)) - first[row_query]


class _WalkRows(NamedTuple):
    """The places that one walk visits, query by query from the top."""

    query: I8
    place: I8
    gain: F8
    walk: RankingWalk
    queries: int

    def sum_by_query(self, value: F8) -> F8:
        """Sums by query."""
        return np.bincount(self.query, weights=value, minlength=self.queries).astype(np.float64, copy=False)

    def sum_running(self, value: F8) -> F8:
        """Sums from the top of the query down to each row; of integers, so exact in any order."""
        total = np.cumsum(value)
        top = np.arange(len(value)) - self.place
        return np.asarray(total - (total - value)[top])


def _sum_gains(rows: _WalkRows) -> F8:
    return rows.sum_by_query(rows.gain * rows.walk.discount[rows.place])


def _sum_precisions(rows: _WalkRows) -> F8:
    return rows.sum_by_query(rows.gain * rows.sum_running(rows.gain) / rows.walk.discount[rows.place])


def _sum_bpref(rows: _WalkRows) -> F8:
    above = rows.sum_running((rows.gain == 0).astype(np.float64))
    bound = rows.walk.limit[rows.query]
    loss = np.divide(np.minimum(above, bound), bound, out=np.zeros(len(above)), where=bound > 0)
    return rows.sum_by_query(np.where(rows.gain > 0, 1.0 - loss, 0.0))


def _sum_cascade(rows: _WalkRows) -> F8:
    """Loops over places or over queries, whichever are fewer: products have no grouped form in numpy."""
    lengths = np.bincount(rows.query, minlength=rows.queries)
    first = np.cumsum(lengths) - lengths
    if rows.queries < lengths.max(initial=0):
        return _sum_cascade_by_query(rows, first, lengths)
    value, left = np.zeros(rows.queries), np.ones(rows.queries)
    for i in range(int(lengths.max(initial=0))):
        active = np.flatnonzero((lengths > i) & (left > 0))
        if not len(active):
            break
        g = rows.gain[first[active] + i]
        value[active] += rows.walk.discount[i] * g * left[active]
        left[active] *= 1.0 - g
    return value


def _sum_cascade_by_query(rows: _WalkRows, first: I8, lengths: I8) -> F8:
    value = np.zeros(rows.queries)
    for q in np.flatnonzero(lengths):
        g = rows.gain[first[q] : first[q] + lengths[q]]
        left = np.concatenate(([1.0], np.cumprod(1.0 - g)[:-1]))
        value[q] = np.cumsum(rows.walk.discount[: lengths[q]] * g * left)[-1]
    return value


_BODIES = {SUM: _sum_gains, PRECISION: _sum_precisions, CASCADE: _sum_cascade, BPREF: _sum_bpref}


def count_earlier(starts, value):
    """Rows before each row of its segment with a smaller and with a larger value, bit by bit."""
    smaller, larger = np.zeros(len(value), np.int64), np.zeros(len(value), np.int64)
    if not len(value):
        return smaller, larger
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    row = np.arange(len(value))
    for bit in reversed(range(int(value.max()).bit_length())):
        high = (value[row] >> bit) & 1
        first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
        # rows that agree in the higher bits are ordered by this bit alone
        ones = np.cumsum(high) - high
        ones -= np.repeat(ones[first], np.diff(first, append=len(row)))
        zeros = np.arange(len(row)) - np.repeat(first, np.diff(first, append=len(row))) - ones
        smaller[row] += np.where(high == 1, zeros, 0)
        larger[row] += np.where(high == 0, ones, 0)
        group = 2 * group + high
        order = np.argsort(group, kind="stable")
        _, group = np.unique(group[order], return_inverse=True)
        row = row[order]
    return smaller, larger
