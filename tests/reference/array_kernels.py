"""Kernels as numpy expressions: another way to the same result, fast enough for thousands of rows."""

from __future__ import annotations

import numpy as np


def rank_order(scores, starts, tie_key=None, tolerance=1e-12, floor=1 / 64, magnitude=0.0):
    """Snapped scores, order and tied flags."""
    scores = scores + 0.0
    least = np.broadcast_to(np.asarray(magnitude, np.float64), len(starts) - 1)
    n = len(scores)
    if n == 0:
        return scores, np.zeros(0, np.int32), np.zeros(0, np.bool_)
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    slot = np.arange(n)
    order = np.lexsort((slot, -scores, query))
    sorted_scores = scores[order]
    filled = np.flatnonzero(np.diff(starts))
    largest = least.copy()
    largest[filled] = np.maximum(least[filled], np.maximum.reduceat(np.abs(scores), starts[:-1][filled]))
    gap = np.empty(n, np.bool_)  # whether a new tie group begins at this place
    gap[0] = True
    with np.errstate(over="ignore"):  # scores whose difference overflows are not tied
        step = sorted_scores[:-1] - sorted_scores[1:]
    scale = np.maximum(sorted_scores[:-1], -sorted_scores[1:])  # the larger magnitude of two neighbors
    near = tolerance * np.maximum(scale, floor * largest[query[1:]])
    gap[1:] = (query[1:] != query[:-1]) | (step > near)
    group = np.cumsum(gap) - 1
    snapped = np.empty(n)
    snapped[order] = sorted_scores[np.flatnonzero(gap)][group]
    key = slot if tie_key is None else tie_key
    order = order[np.lexsort((key[order], group))]
    tied = np.bincount(group)[group] > 1
    return snapped, order.astype(np.int32), tied


def find_first_repeat(group, slot):
    """A row whose (group, slot) occurred earlier, or None."""
    keys = group * (int(slot.max()) + 1) + slot
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    return None if len(again) == 0 else int(order[again + 1].min())


def fractional_ranks(starts, rank):
    """Positions inside each list with ties sharing their mean."""
    n = len(rank)
    place = np.arange(1, n + 1, dtype=np.float64) - np.repeat(starts[:-1], np.diff(starts))
    if n < 2:
        return place
    begins = np.concatenate(([True], rank[1:] != rank[:-1]))
    begins[starts[:-1][np.diff(starts) > 0]] = True
    first = np.flatnonzero(begins)
    if len(first) == n:
        return place
    size = np.diff(np.append(first, n))
    return np.repeat(place[first] + (size - 1) / 2, size)


def compute_list_statistics(starts, value):
    """Smallest and largest value, mean and standard deviation of each list."""
    low, high, mean, deviation = stats = tuple(np.zeros(len(starts) - 1) for _ in range(4))
    sizes = np.diff(starts)
    filled = np.flatnonzero(sizes)
    if len(filled) == 0:
        return stats
    which = np.repeat(np.arange(len(sizes)), sizes)
    low[filled] = np.minimum.reduceat(value, starts[:-1][filled])
    high[filled] = np.maximum.reduceat(value, starts[:-1][filled])
    count = np.maximum(sizes, 1)
    mean[:] = np.bincount(which, weights=value, minlength=len(sizes)) / count
    # dividing by it keeps squares from overflowing
    spread = np.where(high > low, high - low, 1.0)
    off = (value - mean[which]) / spread[which]
    deviation[:] = np.sqrt(np.bincount(which, weights=off * off, minlength=len(sizes)) / count) * spread
    return stats


def sum_points(starts, item, rank, points, list_weight, slots):
    """Sum over lists of `list_weight * points[rank]` for each slot."""
    value = points[rank] * np.repeat(list_weight, np.diff(starts))
    return np.bincount(item, weights=value, minlength=slots)[:slots].astype(np.float64, copy=False)


def sum_affine(starts, item, value, base, slope, slots):
    """Sum over lists of `base + slope * value` for each slot; without `value`, of `base` alone."""
    sizes = np.diff(starts)
    term = np.repeat(base, sizes)
    if value is not None:
        term = term + np.repeat(slope, sizes) * value
    return np.bincount(item, weights=term, minlength=slots)[:slots].astype(np.float64, copy=False)


def number_pairs(group, value, groups, width):
    """Distinct (group, value) pairs in order, when each first came, and the number of each row's pair."""
    keys, first, pair = np.unique(group * width + value, return_index=True, return_inverse=True)
    group_of_pair = keys // width
    starts = np.searchsorted(group_of_pair, np.arange(groups + 1)).astype(np.int64)
    order = np.lexsort((first, group_of_pair))
    arrival = np.empty(len(keys), np.int32)
    arrival[order] = np.arange(len(keys)) - starts[group_of_pair]
    return starts, keys % width, arrival, pair.astype(np.int64)
