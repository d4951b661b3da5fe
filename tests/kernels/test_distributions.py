"""Distribution functions against scipy's, over all sizes of argument that occur."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from podium.evaluate.significance import wilcoxon
from podium.kernels import distributions

RANDOM = np.random.default_rng(0)
REAL = np.concatenate((RANDOM.normal(0, 3, 2000), RANDOM.uniform(-37, 37, 2000), [0.0, -0.0]))
SHARE = np.concatenate((RANDOM.uniform(0, 1, 2000), 10 ** RANDOM.uniform(-300, 0, 2000)))
DEGREES = np.concatenate((10 ** RANDOM.uniform(-0.5, 4, 3700), np.arange(1.0, 301.0)))


@pytest.mark.parametrize(
    ("ours", "theirs", "arguments", "tolerance"),
    [
        (distributions.normal_cdf, special.ndtr, (REAL,), 1e-12),
        (distributions.normal_log_cdf, special.log_ndtr, (REAL,), 1e-12),
        (distributions.normal_quantile, special.ndtri, (SHARE,), 1e-12),
        (distributions.scaled_erfc, special.erfcx, (np.maximum(REAL, -20),), 1e-14),
        (distributions.log_gamma, special.gammaln, (np.arange(1.0, 500.0),), 1e-13),
        (distributions.digamma, special.digamma, (np.concatenate((DEGREES, SHARE)),), 1e-13),
        (distributions.logistic, special.expit, (REAL,), 1e-10),
        (distributions.student_cdf, special.stdtr, (DEGREES, RANDOM.standard_t(3, 4000)), 1e-11),
        (distributions.student_quantile, special.stdtrit, (DEGREES, np.clip(SHARE, 1e-12, 1)), 1e-10),
        (distributions.poisson_cdf, special.pdtr, (np.arange(4000.0), np.arange(4000.0) * 0.9 + 1), 1e-11),
        (distributions.gamma_quantile, special.gammaincinv, (DEGREES, RANDOM.uniform(0, 1, 4000)), 1e-11),
        (
            distributions.beta_quantile,
            special.betaincinv,
            (DEGREES + 0.2, DEGREES[::-1] + 0.2, RANDOM.uniform(0, 1, 4000)),
            1e-10,
        ),
    ],
)
def test_values_are_those_of_scipy(ours, theirs, arguments, tolerance):
    expected = theirs(*arguments)
    known = np.abs(expected) > 1e-290  # both underflow below
    np.testing.assert_allclose(
        np.asarray(ours(*arguments))[known], expected[known], rtol=tolerance, atol=1e-13
    )


def test_log_gamma_divergence_loses_no_digits():
    """It is the integral of (y - s) trigamma(s) from x to y, which has no cancellation."""
    x = 10 ** RANDOM.uniform(-3, 6, 500)
    y = x * (1 + RANDOM.uniform(-0.7, 0.7, 500) * 10 ** RANDOM.uniform(-6, 0, 500))
    place, share = np.polynomial.legendre.leggauss(60)
    node = x[:, None] + (y - x)[:, None] * (place + 1) / 2
    integral = ((y[:, None] - node) * special.polygamma(1, node) * share).sum(axis=1) * (y - x) / 2
    divergence = distributions.log_gamma_divergence(x, y)
    np.testing.assert_allclose(divergence, integral, rtol=1e-9, atol=1e-13)
    assert distributions.log_gamma_divergence(3.0, 3.0) == 0
    assert np.isnan(distributions.log_gamma_divergence([0.0, 1.0, -1.0], [1.0, 0.0, 1.0])).all()


def test_limits_and_shapes():
    assert distributions.digamma([0.0, np.inf]).tolist() == [-np.inf, np.inf]
    assert np.isnan(distributions.digamma([-1.0, np.nan])).all()
    assert distributions.normal_quantile([0.0, 1.0, 0.5]).tolist() == [-np.inf, np.inf, 0.0]
    assert np.isnan(distributions.normal_quantile([-0.1, 1.1, np.nan])).all()
    assert distributions.student_cdf(np.inf, 0.0) == 0.5
    assert distributions.student_quantile(np.array([[3.0], [30.0]]), np.array([0.5, 0.975])).shape == (2, 2)
    assert isinstance(float(distributions.normal_cdf(0.3)), float)
    assert distributions.poisson_cdf(3.0, 0.0) == 1.0


def test_wilcoxon_is_that_of_scipy():
    for n in (1, 2, 5, 12, 30, 50, 51, 200):
        for ties in (False, True):
            d = RANDOM.normal(0.2, 1, n)
            d = np.round(d * 3) if ties else d
            kept = d[d != 0]
            if not len(kept):
                continue
            exact = len(kept) <= 50 and len(np.unique(np.abs(kept))) == len(kept)
            expected = stats.wilcoxon(kept, method="exact" if exact else "approx").pvalue
            assert wilcoxon(d) == pytest.approx(expected, rel=1e-12)
