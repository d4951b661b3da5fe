"""Paired tests against scipy, brute force and cases worked out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from podium.errors import InputError, ParameterError
from podium.evaluate.significance import TESTS, bootstrap_interval, holm, paired_t, randomisation, wilcoxon

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
def test_randomisation_is_exact_for_few_queries(d):
    signs = itertools.product((1, -1), repeat=len(d))
    sums = [abs(math.fsum(s * v for s, v in zip(sign, d, strict=True))) for sign in signs]
    expected = np.mean(np.array(sums) >= abs(math.fsum(d)) - 1e-12)
    assert randomisation(d) == pytest.approx(expected)


def test_randomisation_by_sampling_is_near_scipy_and_repeats():
    d = CASES[3]
    theirs = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=9999, rng=1).pvalue
    assert randomisation(d, rounds=20_000) == pytest.approx(theirs, abs=0.02)
    assert randomisation(d, seed=3) == randomisation(d, seed=3) != randomisation(d, seed=4)
    assert randomisation(np.ones(100), rounds=99) == 0.01  # never 0: the observed signs count as one round


def test_bootstrap_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(200):
        low, high = bootstrap_interval(rng.normal(0.3, 1, 60), level=0.9, rounds=500, seed=seed)
        hits += low <= 0.3 <= high
    assert 0.82 <= hits / 200 <= 0.96


def test_bootstrap_is_near_scipy():
    d = CASES[4]
    theirs = stats.bootstrap((d,), np.mean, method="percentile", rng=1).confidence_interval
    assert bootstrap_interval(d) == pytest.approx(tuple(theirs), abs=0.02)
    assert bootstrap_interval(np.full(9, 0.5)) == (0.5, 0.5)
    assert all(map(math.isnan, bootstrap_interval([])))


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
    assert paired_t([0.5, 0.5, 0.5]) == 0.0
    with pytest.raises(ParameterError, match="level"):
        bootstrap_interval([1.0, 2.0], level=95)
    with pytest.raises(ParameterError, match="rounds"):
        randomisation([1.0, 2.0], rounds=0)
