"""Order statistics of uniform numbers: how likely it is that they are as small as those observed.

Tables have one row per item and one column per rank; all results are logarithms, which do not underflow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.kernels import distributions
from podium.kernels.dispatch import F8, I4, I8

__all__ = ["compute_joint_log_chance", "compute_smallest_log_chance", "group_by_count"]


def group_by_count(item: I4, value: F8, slots: int) -> Iterator[tuple[I8, F8]]:
    """Slots with equally many rows, and the table of their values, smallest first.

    >>> [(s.tolist(), v.tolist()) for s, v in group_by_count(np.array([0, 2, 0]), np.array([3.0, 1.0, 2.0]), 3)]
    [([2], [[1.0]]), ([0], [[2.0, 3.0]])]
    """
    order = np.lexsort((value, item))
    count = np.bincount(item, minlength=slots)
    first = np.concatenate(([0], np.cumsum(count)))[:-1]
    for number in np.unique(count[count > 0]).tolist():
        rows = np.flatnonzero(count == number)
        yield rows, value[order[first[rows, None] + np.arange(number)]]


def compute_smallest_log_chance(ranks: F8) -> F8:
    """The smallest over k of log P(k-th smallest of n uniform numbers <= the k-th smallest of the row)."""
    n = ranks.shape[1]
    k = np.arange(1.0, n + 1)
    # the k-th smallest of n uniform numbers has the beta distribution (k, n + 1 - k)
    return np.asarray(distributions.beta_log_cdf(k, n + 1 - k, ranks).min(axis=1), np.float64)


def compute_joint_log_chance(ranks: F8) -> F8:
    """log P(for every k: k-th smallest of n uniform numbers <= the k-th smallest of the row).

    The chance that j numbers lie below the k-th rank, and at least i below the i-th for every i <= k, follows
    from that for k - 1: m = j - j' of them lie between the two ranks. All terms are positive, unlike those of
    the published recursion, which cancel from about twenty ranks on.
    """
    items, n = ranks.shape
    log_factorial = distributions.log_gamma(np.arange(n + 1) + 1.0)
    # equal ranks have no gap, whose logarithm -inf is right
    with np.errstate(divide="ignore"):
        log_gap = np.log(np.diff(ranks, axis=1, prepend=0.0))
    log_below = np.full((items, n + 1), -np.inf)  # by number of uniform numbers so far
    log_below[:, 0] = 0.0
    for k in range(n):
        after = log_below.copy()
        for m in range(1, n + 1 - k):
            moved = log_below[:, k : n + 1 - m] + (m * log_gap[:, k] - log_factorial[m])[:, None]
            np.logaddexp(after[:, k + m :], moved, out=after[:, k + m :])
        # at least k + 1 numbers lie below the rank number k + 1
        after[:, k] = -np.inf
        log_below = after
    return np.asarray(log_below[:, n] + log_factorial[n], np.float64)
