"""Sums over all pairs by series, against the sums themselves."""

from __future__ import annotations

import numpy as np
import pytest

from podium.kernels import smooth_sums
from podium.kernels.smooth_sums import HALF_TANH, LOG_COSH, LOGISTIC_SLOPE

FUNCTIONS = {
    HALF_TANH: lambda d: np.tanh(d / 2) / 2,
    LOGISTIC_SLOPE: lambda d: 1 / (2 + 2 * np.cosh(np.minimum(np.abs(d), 700))),
    LOG_COSH: lambda d: (
        np.logaddexp(d, -d) + 2 * np.log1p(np.exp(-np.abs(d))) - np.log1p(np.exp(-2 * np.abs(d)))
    ),
}


def points(kind, random, size):
    if kind == "one spot":
        return np.full(size, 3.25)
    if kind == "two ends":
        return np.concatenate((random.normal(-300, 2, size // 2), random.normal(250, 2, size - size // 2)))
    return random.normal(0, {"narrow": 0.1, "usual": 3.0, "wide": 150.0}[kind], size)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ["one spot", "two ends", "narrow", "usual", "wide"])
def test_sums_are_those_over_all_pairs(function, kind):
    random = np.random.default_rng(1)
    source, target = points(kind, random, 6_000), points(kind, random, 500)
    mass = random.normal(size=len(source))
    expected = (FUNCTIONS[function](target[:, None] - source) * mass).sum(axis=1)
    found = smooth_sums.sums(function, source, mass, target)
    size = np.abs(mass).sum() * max(1.0, np.abs(FUNCTIONS[function](target[:, None] - source)).max())
    assert np.abs(found - expected).max() <= 1e-14 * size


@pytest.mark.parametrize("function", FUNCTIONS)
def test_sets_of_any_size_with_weights_of_either_sign(function):
    random = np.random.default_rng(2)
    x, mass = random.normal(0, 4, 3_000), random.normal(size=3_000)
    sets = [random.choice(3_000, size, replace=False) for size in (0, 1, 2, 40, 900, 3_000)]
    weight = np.array([1.0, 2.0, -1.0, 0.5, 3.0, -0.25])
    expected = np.zeros(3_000)
    for members, w in zip(sets, weight, strict=True):
        expected[members] += w * (FUNCTIONS[function](x[members, None] - x[members]) * mass[members]).sum(
            axis=1
        )
    starts = np.concatenate(([0], np.cumsum([len(s) for s in sets])))
    found = smooth_sums.within_sets(function, starts, np.concatenate(sets), weight, x, mass)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_nothing_to_sum():
    none = np.zeros(0)
    assert smooth_sums.sums(HALF_TANH, none, none, np.ones(2)).tolist() == [0.0, 0.0]
    assert smooth_sums.sums(HALF_TANH, np.ones(2), np.ones(2), none).tolist() == []
