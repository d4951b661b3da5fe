"""Distribution functions and quantiles of the normal, Student's t, beta, gamma, Poisson and hypergeometric
distributions, and the logarithm of the gamma function with its derivative.

Numbers or arrays of any shape; the arguments of functions of two are broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium._core import distributions as core

__all__ = [
    "beta_log_cdf",
    "beta_quantile",
    "digamma",
    "gamma_quantile",
    "hypergeometric_cdf",
    "log_gamma",
    "log_gamma_divergence",
    "logistic",
    "normal_cdf",
    "normal_log_cdf",
    "normal_quantile",
    "poisson_cdf",
    "scaled_erfc",
    "student_cdf",
    "student_quantile",
]

beta_log_cdf = core.beta_log_cdf
beta_quantile = core.beta_quantile
digamma = core.digamma
gamma_quantile = core.gamma_quantile
log_gamma = core.log_gamma
log_gamma_divergence = core.log_gamma_divergence
normal_cdf = core.normal_cdf
normal_log_cdf = core.normal_log_cdf
normal_quantile = core.normal_quantile
poisson_cdf = core.poisson_cdf
scaled_erfc = core.scaled_erfc
student_cdf = core.student_cdf
student_quantile = core.student_quantile


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow.

    >>> logistic([0.0, -1000.0]).tolist()
    [0.5, 0.0]
    """
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x, np.float64)))


def hypergeometric_cdf(count: int, total: int, marked: int, drawn: int) -> float:
    """Probability of at most `count` marked objects among `drawn` ones out of `total`, of which some are marked.

    >>> round(hypergeometric_cdf(0, 10, 3, 4), 6)  # none of three: (7 6 5 4) / (10 9 8 7)
    0.166667
    """
    low, high = max(0, drawn + marked - total), min(count, marked, drawn)
    if high < low:
        return 0.0
    hits = np.arange(low, high + 1, dtype=np.float64)
    log_chance = (
        _log_choose(marked, hits) + _log_choose(total - marked, drawn - hits) - _log_choose(total, drawn)
    )
    return float(min(1.0, np.exp(log_chance).sum()))


def _log_choose(whole: float, part: Any) -> Any:
    """Logarithm of the binomial coefficient."""
    part = np.asarray(part, np.float64)
    return log_gamma(whole + 1.0) - log_gamma(part + 1.0) - log_gamma(whole - part + 1.0)
