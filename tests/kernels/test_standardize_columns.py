"""Columns made comparable inside groups, against plain loops."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from podium.kernels import dispatch, standardize_columns


def plain(starts, values, by_range):
    out = np.zeros(values.shape)
    for a, b in pairwise(starts):
        for c in range(values.shape[1]):
            known = [v for v in values[a:b, c].tolist() if not math.isnan(v)]
            if not known:
                continue
            mean = sum(known) / len(known)
            spread = (
                max(known) - min(known)
                if by_range
                else (sum((v - mean) ** 2 for v in known) / len(known)) ** 0.5
            )
            for i in range(a, b):
                if not math.isnan(values[i, c]) and spread > 1e-9 * max(map(abs, known)):
                    out[i, c] = (values[i, c] - mean) / spread
    return out


@pytest.mark.parametrize("by_range", [True, False])
@pytest.mark.parametrize("thread_work", [0, 10**12])
def test_columns_equal_the_plain_loops(monkeypatch, thread_work, by_range):
    random = np.random.default_rng(0)
    starts = np.array([0, 4, 4, 5, 12, 20])
    values = random.normal(size=(20, 6)) * [1, 1e5, 1e-5, 1, 1, 0]
    values[random.random(values.shape) < 0.2] = np.nan
    values[5:12, 3] = 0.1
    values[:, 4] = np.nan
    monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
    before = values.copy()
    found = standardize_columns.standardize_by_group(starts, values, by_range=by_range)
    np.testing.assert_allclose(found, plain(starts, values, by_range), atol=1e-13)
    assert np.array_equal(values, before, equal_nan=True)


@pytest.mark.parametrize("thread_work", [0, 10**12])
def test_huge_and_tiny_values_and_no_rows(monkeypatch, thread_work):
    monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
    values = np.array([[1e308, 1e-310], [-1e308, 3e-310], [0.0, 2e-310]])
    found = standardize_columns.standardize_by_group(np.array([0, 3]), values, by_range=True)
    np.testing.assert_allclose(found, [[0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]], atol=1e-9)
    assert standardize_columns.standardize_by_group(np.array([0]), np.zeros((0, 2)), by_range=True).shape == (
        0,
        2,
    )
