"""Paired tests against scipy, brute force and cases worked out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from podium import evaluate as evaluate_package
from podium.core.errors import InputError, ParameterError
from podium.evaluate.significance import (
    TESTS,
    assess_differences,
    holm,
    mean_interval,
    paired_t,
    randomization,
    wilcoxon,
)

CASES = [np.random.default_rng(seed).normal(0.2, 1, n) for seed, n in enumerate((2, 5, 12, 40, 200))]


@pytest.mark.parametrize("d", CASES, ids=len)
def test_t_and_wilcoxon_equal_scipy(d):
    assert paired_t(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert wilcoxon(d) == pytest.approx(stats.wilcoxon(d).pvalue)


def test_wilcoxon_leaves_out_zeros_and_accounts_for_ties():
    d = np.array([0.0, 1, 1, -1, 2, 2, 3, 0, -2, 5, 6, 7])
    assert wilcoxon(d) == pytest.approx(stats.wilcoxon(d[d != 0], method="approx").pvalue)
    # all ten positive: the exact two-sided p is 2 / 2^10
    assert wilcoxon(np.arange(1.0, 11)) == pytest.approx(2 / 2**10)


@pytest.mark.parametrize("d", [CASES[1], CASES[2], np.array([0.1, 0.2, 0.3, -0.6, 0.0, 0.1])], ids=len)
def test_randomization_is_exact_for_few_queries(d):
    signs = itertools.product((1, -1), repeat=len(d))
    sums = [abs(math.fsum(s * v for s, v in zip(sign, d, strict=True))) for sign in signs]
    expected = np.mean(np.array(sums) >= abs(math.fsum(d)) - 1e-12)
    assert randomization(d) == pytest.approx(expected)


def test_randomization_by_sampling_is_near_scipy_and_repeats():
    d = CASES[3]
    theirs = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=9999, rng=1).pvalue
    assert randomization(d, rounds=20_000) == pytest.approx(theirs, abs=0.02)
    assert randomization(d, seed=3) == randomization(d, seed=3) != randomization(d, seed=4)
    assert randomization(np.ones(100), rounds=99) == 0.01  # never 0: the observed signs count as one round


def test_the_interval_beside_t_is_scipys():
    for d in CASES:
        theirs = stats.ttest_1samp(d, 0).confidence_interval(0.9)
        assert mean_interval(d, level=0.9) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("d", [CASES[2], np.array([0.1, 0.2, 0.3, -0.6, 0.0, 0.1, 0.4, 0.0])], ids=len)
def test_the_randomization_interval_holds_what_the_test_does_not_reject(d):
    """One value at a time, by the test itself."""
    low, high = mean_interval(d, test="randomization")
    for value in np.linspace(d.min() - 0.2, d.max() + 0.2, 301):
        assert (low <= value <= high) == (randomization(d - value) > 0.05)


def test_the_randomization_interval_by_sampling_is_near_that_of_all_patterns(monkeypatch):
    d = CASES[2]
    whole = mean_interval(d, test="randomization")
    monkeypatch.setattr("podium.evaluate.significance.EXACT", 1)
    assert mean_interval(d, test="randomization", rounds=50_000) == pytest.approx(whole, abs=0.02)


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1 / 3, 0.07]), min_size=2, max_size=24),
    st.lists(st.sampled_from([-1.0, 1.0]), min_size=24, max_size=24),
    st.sampled_from(["t", "randomization"]),
    st.sampled_from([0.8, 0.95, 0.99]),
)
@settings(max_examples=300, deadline=None)
def test_an_interval_leaves_zero_out_exactly_when_p_is_small(sizes, signs, test, level):
    d = np.array(sizes) * signs[: len(sizes)]
    found = assess_differences(d[None], test=test, level=level, rounds=500)
    left_out = bool(found.low[0] > 0 or found.high[0] < 0)
    assert left_out == bool(found.p[0] <= 1 - level + 1e-12)


@pytest.mark.parametrize("queries", [10, 30, 100])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_intervals_leave_zero_out_in_five_percent_of_noise(test, queries):
    """Two results of which neither is better, by values that are skewed, bounded and often equal."""
    random = np.random.default_rng(queries)
    one, two = (random.beta(0.4, 1.0, (4000, queries)) for _ in range(2))
    d = np.where(random.random((4000, queries)) < 0.15, 0.0, one - two)
    found = assess_differences(d, test=test, rounds=999)
    missed = ((found.low > 0) | (found.high < 0)).mean()
    assert 0.04 <= missed <= 0.06
    assert missed == (found.p <= 0.05).mean()


def test_differences_that_are_all_alike_have_no_spread():
    """Two of 2^n sign patterns are as far from 0; too few queries have no interval, which would have no width."""
    assert paired_t([0.3 - 0.2, 0.4 - 0.3, 0.5 - 0.4]) == 0.25
    assert all(math.isnan(end) for end in mean_interval([0.5, 0.5, 0.5]))
    assert mean_interval([0.5] * 8) == (0.5, 0.5)
    assert mean_interval([0.0] * 3) == (0.0, 0.0)
    assert mean_interval([0.4, 0.5, 0.6], test="randomization") == (-math.inf, math.inf)


def test_holm_by_hand():
    # Holm 1979: 0.01 * 4, 0.013 * 3 (not below its forerunner), 0.03 * 2, 0.04 * 1 (likewise)
    assert holm([0.04, 0.01, 0.03, 0.013]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
    with_gap = holm([0.01, math.nan, 0.02])
    assert with_gap[[0, 2]].tolist() == [0.02, 0.02]
    assert math.isnan(with_gap[1])


@pytest.mark.parametrize("test", TESTS)
def test_degenerate_input(test):
    assert TESTS[test](np.zeros(10)) == 1.0
    with pytest.raises(InputError, match="finite"):
        TESTS[test]([1.0, math.nan])


def test_bad_settings():
    assert math.isnan(paired_t([1.0]))
    assert paired_t([0.5, 0.5, 0.5]) == 0.25
    with pytest.raises(ParameterError, match="level"):
        mean_interval([1.0, 2.0], level=95)
    with pytest.raises(ParameterError, match="rounds"):
        randomization([1.0, 2.0], rounds=0)


def test_the_british_spelling_of_the_test_works_with_a_warning():
    d = [0.1, 0.3, -0.2, 0.4, 0.5, 0.2, 0.1]
    with pytest.warns(DeprecationWarning, match="randomisation is now randomization"):
        assert mean_interval(d, test="randomisation") == mean_interval(d, test="randomization")
    with pytest.warns(DeprecationWarning, match="randomisation is now randomization"):
        assert evaluate_package.randomisation is randomization
