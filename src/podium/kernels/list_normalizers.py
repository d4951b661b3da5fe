"""Scores of lists on a common scale, by row, and weighted means of them by item, as search engines compute them.

Rows are grouped in consecutive lists: list l has the rows starts[l] .. starts[l + 1].
"""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import B1, F8, I4, I8
from podium.kernels.segments import compute_list_statistics

__all__ = [
    "combine_by_geometric_mean",
    "combine_by_harmonic_mean",
    "normalize_by_arctangent",
    "normalize_by_bounds",
    "normalize_by_cosine",
    "normalize_by_deviation",
    "normalize_by_length",
    "normalize_by_range",
    "normalize_by_running_deviation",
    "round_to_single",
    "sum_by_item",
]


def round_to_single(value: F8) -> F8:
    """The values as 32-bit floats hold them; larger ones become the largest such float."""
    largest = float(np.finfo(np.float32).max)
    return np.clip(value, -largest, largest).astype(np.float32).astype(np.float64)


def normalize_by_range(starts: I8, value: F8, flat: float, *, smallest_range: float = 0.0) -> F8:
    """From 0 for the smallest score of a list to 1 for the largest; `flat` where all are equal.

    Scores within less than `smallest_range` of each other count as equal.

    >>> normalize_by_range(np.array([0, 3, 4]), np.array([9.0, 5.0, 1.0, 7.0]), 1.0).tolist()
    [1.0, 0.5, 0.0, 1.0]
    """
    low, high = _find_range(starts, value)
    spread = high - low
    varies = (spread > 0) & (spread >= smallest_range)
    return np.where(varies, (value - low) / np.where(varies, spread, 1.0), flat)


def normalize_by_bounds(
    starts: I8, value: F8, low: float | None, high: float | None, *, clip: bool, floor: float
) -> F8:
    """The range between given bounds instead of that of the list, as OpenSearch computes it; None: no bound.

    A score beyond a bound keeps the range of its list, or, with `clip`, becomes `floor` or 1. A result of
    exactly 0 becomes `floor`, a list of equal scores 1.

    >>> rows = np.array([9.0, 5.0, 1.0])
    >>> normalize_by_bounds(np.array([0, 3]), rows, 0.0, 10.0, clip=True, floor=0.001).tolist()
    [0.9, 0.5, 0.1]
    >>> normalize_by_bounds(np.array([0, 3]), rows, None, None, clip=False, floor=0.001).tolist()
    [1.0, 0.5, 0.001]
    """
    least, most = _find_range(starts, value)
    bottom, top = least, most
    if low is not None:
        use = most >= low if clip else (most > low) & (value > low)
        bottom = np.where(use, low, least)
    if high is not None:
        use = least <= high if clip else (least < high) & (value < high)
        top = np.where(use, high, most)
    spread, equal = top - bottom, least == most
    flat = equal | (spread == 0)
    scaled = np.where(flat, 1.0, (value - bottom) / np.where(flat, 1.0, spread))
    scaled = np.where(scaled == 0, floor, scaled)
    if clip and high is not None:
        scaled = np.where(~equal & (value > top), 1.0, scaled)
    if clip and low is not None:
        scaled = np.where(~equal & (value < bottom), floor, scaled)
    return scaled


def normalize_by_length(starts: I8, value: F8, *, smallest_length: float = 0.0) -> F8:
    """Scores divided by the Euclidean length of their list; a list no longer than that keeps its scores.

    >>> normalize_by_length(np.array([0, 2]), np.array([4.0, 3.0])).tolist()
    [0.8, 0.6]
    """
    list_of_row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # scaled by the largest score, so that squares neither overflow nor vanish
    low, high = _find_range(starts, value)
    largest = np.maximum(np.abs(low), np.abs(high))
    share = value / np.where(largest > 0, largest, 1.0)
    squares = np.bincount(list_of_row, weights=share * share, minlength=len(starts) - 1)
    length = np.sqrt(squares)[list_of_row] * largest
    return np.where(length > smallest_length, value / np.where(length > 0, length, 1.0), value)


def normalize_by_arctangent(value: F8) -> F8:
    """1/2 + arctan(score) / pi, between 0 and 1.

    >>> normalize_by_arctangent(np.array([0.0, 1.0])).tolist()
    [0.5, 0.75]
    """
    return 0.5 + np.arctan(value) / np.pi


def normalize_by_cosine(value: F8) -> F8:
    """(1 + score) / 2, between 0 and 1 for cosines."""
    return (1.0 + value) / 2.0


def normalize_by_deviation(starts: I8, value: F8) -> tuple[F8, B1]:
    """Mean minus three standard deviations becomes 0, mean plus three 1; and 0 for the rows of flat lists.

    Returns the normalized rows and whether the list of each row varies. The deviation is the population's.
    """
    lengths = np.diff(starts)
    stats = compute_list_statistics(starts, value)
    varies = np.repeat(stats.high > stats.low, lengths)
    mean, deviation = np.repeat(stats.mean, lengths), np.repeat(stats.deviation, lengths)
    scaled = 0.5 + (value - mean) / np.where(varies, 6 * deviation, 1.0)
    return np.where(varies, scaled, 0.0), varies


def normalize_by_running_deviation(starts: I8, value: F8) -> F8:
    """The same with the sample's deviation, computed in one pass of 32-bit floats (Welford), as Qdrant does.

    Where the scores of a list lie close together, single precision changes the result visibly. Lists of one
    score, and lists whose bounds round to one number, get 1/2.

    >>> normalize_by_running_deviation(np.array([0, 3, 4]), np.array([3.0, 2.0, 1.0, 7.0])).round(6).tolist()
    [0.666667, 0.5, 0.333333, 0.5]
    """
    score, lengths = value.astype(np.float32), np.diff(starts)
    mean, squares = (np.zeros(len(lengths), np.float32) for _ in range(2))
    for place in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > place)
        row = score[starts[active] + place]
        before = row - mean[active]
        mean[active] += before / np.float32(place + 1)
        squares[active] += before * (row - mean[active])
    deviation = np.sqrt(squares / np.maximum(lengths - 1, 1).astype(np.float32))
    low, high = (np.repeat(mean + sign * np.float32(3) * deviation, lengths) for sign in (-1, 1))
    varies = (low != high) & (np.repeat(lengths, lengths) > 1)
    scaled = (score - low) / np.where(varies, high - low, np.float32(1))
    return np.where(varies, scaled, np.float32(0.5)).astype(np.float64)


def sum_by_item(item: I4, value: F8, slots: int) -> F8:
    """The sum of each slot's rows, in the order of the rows."""
    return np.asarray(np.bincount(item, weights=value, minlength=slots), np.float64)


def combine_by_geometric_mean(item: I4, value: F8, weight: F8, slots: int) -> F8:
    """The weighted geometric mean of each slot's positive values; 0 for slots without any.

    >>> item, value = np.array([0, 0, 1], np.int32), np.array([4.0, 1.0, 3.0])
    >>> combine_by_geometric_mean(item, value, np.ones(3), 3).round(9).tolist()
    [2.0, 3.0, 0.0]
    """
    used = (value > 0) & (weight > 0)
    total = np.bincount(item[used], weights=weight[used], minlength=slots)
    logs = np.bincount(item[used], weights=weight[used] * np.log(value[used]), minlength=slots)
    return np.where(total > 0, np.exp(logs / np.where(total > 0, total, 1.0)), 0.0)


def combine_by_harmonic_mean(item: I4, value: F8, weight: F8, slots: int) -> F8:
    """The weighted harmonic mean of each slot's positive values; 0 for slots without any.

    >>> item, value = np.array([0, 0, 1], np.int32), np.array([1.0, 0.5, 3.0])
    >>> combine_by_harmonic_mean(item, value, np.array([1.0, 2.0, 1.0]), 3).tolist()
    [0.6, 3.0, 0.0]
    """
    used = (value > 0) & (weight > 0)
    total = np.bincount(item[used], weights=weight[used], minlength=slots)
    parts = np.bincount(item[used], weights=weight[used] / value[used], minlength=slots)
    return np.where(parts > 0, total / np.where(parts > 0, parts, 1.0), 0.0)


def _find_range(starts: I8, value: F8) -> tuple[F8, F8]:
    """The smallest and the largest score of each row's list."""
    stats, lengths = compute_list_statistics(starts, value), np.diff(starts)
    return np.repeat(stats.low, lengths), np.repeat(stats.high, lengths)
