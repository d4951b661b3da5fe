"""Normalizers and means against their definitions, computed row by row in plain Python."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from podium.kernels import list_normalizers as kernels

FLOOR = 0.001


def cases(seeds=60):
    """Lists of several lengths, some empty, flat or negative: offsets, rows, and the rows of each list."""
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        lengths = random.integers(0, 6, random.integers(1, 6))
        lists = [random.integers(-3, 6, n) / 2.0 if seed % 2 else random.normal(size=n) for n in lengths]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        yield starts, np.concatenate([np.zeros(0), *lists]), [row.tolist() for row in lists]


def rows_of(lists, function):
    return [function(x, row) for row in lists for x in row]


def test_ranges():
    for starts, value, lists in cases():
        expected = rows_of(
            lists, lambda x, row: 0.25 if max(row) == min(row) else (x - min(row)) / (max(row) - min(row))
        )
        assert kernels.normalize_by_range(starts, value, 0.25) == pytest.approx(expected)


def bound_one(x, row, low, high, clip):
    """OpenSearch's `normalizeSingleScore`, with its bounds `apply` and `clip`."""
    least, most = min(row), max(row)
    if least == most:
        return 1.0
    bottom, top = least, most
    if low is not None:
        bottom = (least if most < low else low) if clip else (low if most > low and x > low else least)
    if high is not None:
        top = (most if least > high else high) if clip else (high if least < high and x < high else most)
    if clip and low is not None and x < bottom:
        return FLOOR
    if clip and high is not None and x > top:
        return 1.0
    if top == bottom:
        return 1.0
    scaled = (x - bottom) / (top - bottom)
    return FLOOR if scaled == 0 else scaled


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(
    "bounds", [(None, None), (0.0, None), (None, 1.5), (-1.0, 2.0), (5.0, None), (None, -9.0)]
)
def test_bounds(bounds, clip):
    for starts, value, lists in cases():
        expected = rows_of(lists, lambda x, row: bound_one(x, row, *bounds, clip))
        found = kernels.normalize_by_bounds(starts, value, *bounds, clip=clip, floor=FLOOR)
        assert found == pytest.approx(expected)


def test_lengths():
    for starts, value, lists in cases():
        expected = rows_of(lists, lambda x, row: x / math.hypot(*row) if any(row) else x)
        assert kernels.normalize_by_length(starts, value) == pytest.approx(expected)
    large = np.array([3e200, 4e200])
    assert kernels.normalize_by_length(np.array([0, 2]), large) == pytest.approx([0.6, 0.8])


def test_deviations():
    for starts, value, lists in cases():
        flat = rows_of(lists, lambda _, row: max(row) == min(row))
        found, varies = kernels.normalize_by_deviation(starts, value)
        assert varies.tolist() == [not f for f in flat]
        expected = rows_of(
            lists,
            lambda x, row: (
                0.0
                if max(row) == min(row)
                else 0.5 + (x - statistics.fmean(row)) / (6 * statistics.pstdev(row))
            ),
        )
        assert found == pytest.approx(expected)
        sample = rows_of(
            lists,
            lambda x, row: (
                0.5
                if max(row) == min(row)
                else 0.5 + (x - statistics.fmean(row)) / (6 * statistics.stdev(row))
            ),
        )
        assert kernels.normalize_by_running_deviation(starts, value) == pytest.approx(
            sample, rel=1e-4, abs=1e-4
        )


def test_means_by_item():
    for seed in range(40):
        random = np.random.default_rng(seed)
        item = random.integers(0, 4, 12).astype(np.int32)
        value, weight = random.integers(-1, 5, 12) / 4.0, random.integers(0, 4, 12) / 2.0
        for slot in range(5):
            rows = [
                (v, w) for i, v, w in zip(item, value, weight, strict=True) if i == slot and v > 0 and w > 0
            ]
            total = sum(w for _, w in rows)
            geometric = math.prod(v ** (w / total) for v, w in rows) if rows else 0.0
            harmonic = total / sum(w / v for v, w in rows) if rows else 0.0
            assert kernels.combine_by_geometric_mean(item, value, weight, 5)[slot] == pytest.approx(geometric)
            assert kernels.combine_by_harmonic_mean(item, value, weight, 5)[slot] == pytest.approx(harmonic)


def test_no_rows():
    empty = np.zeros(0)
    assert len(kernels.normalize_by_range(np.array([0]), empty, 1.0)) == 0
    assert len(kernels.normalize_by_running_deviation(np.array([0]), empty)) == 0
    assert kernels.sum_by_item(np.zeros(0, np.int32), empty, 3).tolist() == [0.0, 0.0, 0.0]
