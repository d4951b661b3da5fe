"""Agreement of two rankings of the same items; inputs are scores, larger is better, ties allowed.

>>> kendall_tau([4, 3, 2, 1], [3, 4, 1, 1]), spearman_rho([3, 2, 1], [1, 2, 3])
(0.5477..., -1.0)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.kernels import ranking_measures
from podium.kernels.dispatch import F8, I8

__all__ = [
    "compute_footrules",
    "compute_pair_accuracies",
    "compute_rbos",
    "compute_spearman_rhos",
    "compute_tau_aps",
    "compute_taus",
    "count_concordant_pairs",
    "footrule",
    "kendall_tau",
    "rbo",
    "spearman_rho",
    "tau_ap",
]

Scores = Sequence[float] | npt.NDArray[Any]


def kendall_tau(x: Scores, y: Scores, *, variant: str = "b") -> float:
    """Kendall's tau: concordant minus discordant pairs, over all pairs (`a`) or corrected for ties (`b`).

    NaN for fewer than two items and, in variant b, when all scores of a side are equal.
    """
    if variant not in ("a", "b"):
        raise ParameterError(f"variant is {variant!r}; accepted: a, b")
    return float(compute_taus(*_build_segment(x, y), variant)[0])


def tau_ap(x: Scores, reference: Scores) -> float:
    """Yilmaz, Aslam & Robertson's tau AP of the ranking `x`: mistakes near its top weigh more.

    A pair tied in the reference counts 0; ties in `x` give the mean over all orders of the tied items.
    """
    return float(compute_tau_aps(*_build_segment(x, reference))[0])


def spearman_rho(x: Scores, y: Scores) -> float:
    """Pearson's correlation of the ranks, tied items sharing their mean rank; NaN when a side is constant."""
    return float(compute_spearman_rhos(*_build_segment(x, y))[0])


def footrule(x: Scores, y: Scores) -> float:
    """1 - (sum of rank differences) / (largest possible sum): 1 for equal rankings, 0 for reversed ones."""
    return float(compute_footrules(*_build_segment(x, y))[0])


def rbo(a: Sequence[Hashable], b: Sequence[Hashable], p: float = 0.9) -> float:
    """Extrapolated rank-biased overlap of two lists of ids, which may differ in length and content.

    Webber, Moffat & Zobel, TOIS 2010, equation 32.

    >>> round(rbo("abc", "bac", p=0.9), 6)
    0.9
    """
    if not 0 < p < 1:
        raise ParameterError(f"p is {p}; accepted: numbers between 0 and 1, both excluded")
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        raise InputError("an item appears twice in a list", remedy="rankings hold each item once")
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    if not short:
        return 1.0 if not long else 0.0
    place = {item: i for i, item in enumerate(short, 1)}
    met = np.array([(place[item], i) for i, item in enumerate(long, 1) if item in place], np.int64).reshape(
        -1, 2
    )
    lengths = np.array([[len(short)], [len(long)]])
    return float(
        compute_rbos(np.zeros(len(met), np.int64), met[:, 0], met[:, 1], lengths[0], lengths[1], p)[0]
    )


# -- many rankings at once: segment q has rows starts[q] .. starts[q + 1] ---------------------------------


def _build_segment(x: Scores, y: Scores) -> tuple[I8, F8, F8]:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(
            f"the scores have shapes {a.shape} and {b.shape}", remedy="give one score per item on both sides"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a score is not a finite number", remedy="drop items that one side does not rank")
    return np.array([0, len(a)], np.int64), a, b


def _segment_of_row(starts: I8) -> I8:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _sum_by_segment(starts: I8, value: npt.NDArray[Any]) -> F8:
    return np.bincount(_segment_of_row(starts), weights=value, minlength=len(starts) - 1).astype(
        np.float64, copy=False
    )


def _divide_or_nan(a: F8, b: F8) -> F8:
    out = np.full(len(a), np.nan)
    np.divide(a, b, out=out, where=b > 0)
    return out


def _group_ties(starts: I8, *keys: npt.NDArray[Any]) -> tuple[I8, I8, I8]:
    """Rows sorted by segment and keys; the group of equal keys of each sorted row; the size of each group."""
    segment = _segment_of_row(starts)
    order = np.lexsort((*reversed(keys), segment))
    change = np.ones(len(order), np.bool_)
    change[1:] = np.any([k[order][1:] != k[order][:-1] for k in (segment, *keys)], axis=0)
    group = np.cumsum(change) - 1
    return order, group, np.bincount(group)


def _encode_dense(starts: I8, value: F8) -> I8:
    """Values as 0, 1, 2, ... within each segment."""
    order, group, _ = _group_ties(starts, value)
    code = np.empty(len(value), np.int64)
    code[order] = (
        group - np.repeat(group[np.minimum(starts[:-1], len(group) - 1)], np.diff(starts))
        if len(group)
        else group
    )
    return code


def _count_tied_pairs(starts: I8, *keys: F8) -> F8:
    _, group, size = _group_ties(starts, *keys)
    return _sum_by_segment(starts, (size[group] - 1) / 2)


def count_concordant_pairs(starts: I8, x: F8, y: F8) -> tuple[F8, F8]:
    """Numbers of concordant and discordant pairs of every segment."""
    n = np.diff(starts)
    order = np.lexsort((y, x, _segment_of_row(starts)))
    discordant = _sum_by_segment(
        starts, ranking_measures.count_earlier(starts, _encode_dense(starts, y)[order])[1]
    )
    tied = _count_tied_pairs(starts, x) + _count_tied_pairs(starts, y) - _count_tied_pairs(starts, x, y)
    return n * (n - 1) / 2 - tied - discordant, discordant


def compute_taus(starts: I8, x: F8, y: F8, variant: str = "b") -> F8:
    """Kendall's tau of every segment."""
    n = np.diff(starts)
    pairs = n * (n - 1) / 2
    concordant, discordant = count_concordant_pairs(starts, x, y)
    balance = concordant - discordant
    if variant == "a":
        return _divide_or_nan(balance, pairs)
    free = (pairs - _count_tied_pairs(starts, x)) * (pairs - _count_tied_pairs(starts, y))
    return np.clip(_divide_or_nan(balance, np.sqrt(free)), -1.0, 1.0)


def compute_pair_accuracies(starts: I8, x: F8, y: F8) -> F8:
    """Fraction of the pairs ordered by `y` that `x` puts in the same order; ties in `x` count half."""
    n = np.diff(starts)
    concordant, discordant = count_concordant_pairs(starts, x, y)
    pairs = n * (n - 1) / 2 - _count_tied_pairs(starts, y)
    return _divide_or_nan((pairs + concordant - discordant) / 2, pairs)


def compute_tau_aps(starts: I8, x: F8, reference: F8) -> F8:
    """Tau AP of every segment."""
    code, n = _encode_dense(starts, reference), np.diff(starts)
    _, group, size = _group_ties(starts, -x)
    first = np.cumsum(size) - size  # place of each tie group among all rows
    above = first[group] - np.repeat(starts[:-1], n)  # rows of better groups in the segment
    # within a tie group rows count for and against each other equally often, so only better groups matter:
    # by rising reference a row sees no larger one of its own group above it, by falling reference no smaller
    rising = np.lexsort((code, -x, _segment_of_row(starts)))
    falling = np.lexsort((-code, -x, _segment_of_row(starts)))
    right = ranking_measures.count_earlier(starts, code[rising])[1]
    wrong = ranking_measures.count_earlier(starts, code[falling])[0]
    balance = np.bincount(group, weights=right, minlength=len(size)) - np.bincount(
        group, weights=wrong, minlength=len(size)
    )
    place = above + np.arange(len(x)) - first[group]
    share = np.divide(1.0, place, out=np.zeros(len(x)), where=place > 0)
    mean_share = np.bincount(group, weights=share, minlength=len(size)) / size
    return _divide_or_nan(_sum_by_segment(starts, (balance * mean_share / size)[group]), n - 1.0)


def _mean_ranks(starts: I8, x: F8) -> F8:
    """Rank 1 for the largest value, ties sharing the mean of their places."""
    order, group, size = _group_ties(starts, -x)
    rank = np.empty(len(x))
    rank[order] = (np.cumsum(size) - (size - 1) / 2)[group] - np.repeat(starts[:-1], np.diff(starts))
    return rank


def compute_spearman_rhos(starts: I8, x: F8, y: F8) -> F8:
    """Spearman's rho of every segment."""
    middle = np.repeat((np.diff(starts) + 1) / 2, np.diff(starts))
    a, b = _mean_ranks(starts, x) - middle, _mean_ranks(starts, y) - middle
    spread = np.sqrt(_sum_by_segment(starts, a * a) * _sum_by_segment(starts, b * b))
    return np.clip(_divide_or_nan(_sum_by_segment(starts, a * b), spread), -1.0, 1.0)


def compute_footrules(starts: I8, x: F8, y: F8) -> F8:
    """Footrule agreement of every segment."""
    n = np.diff(starts)
    return 1.0 - _divide_or_nan(
        _sum_by_segment(starts, np.abs(_mean_ranks(starts, x) - _mean_ranks(starts, y))),
        (n * n // 2).astype(np.float64),
    )


def compute_rbos(segment: I8, place_a: I8, place_b: I8, lengths_a: I8, lengths_b: I8, p: float = 0.9) -> F8:
    """Extrapolated RBO of every pair of lists that are not empty.

    One row per item that both lists of a pair hold: its pair, and its places there, from 1; and the lengths
    of the two lists of each pair. Depth d adds (overlap at d) p^d / d, so an item that both hold from depth m
    on adds the tail of one series, which is tabulated.
    """
    s, n = np.minimum(lengths_a, lengths_b), np.maximum(lengths_a, lengths_b)
    pairs, deepest = len(s), int(n.max(initial=0))
    power = p ** np.arange(deepest + 1, dtype=np.float64)
    by_depth = np.cumsum(np.concatenate(([0.0], power[1:] / np.arange(1, deepest + 1))))
    plain = np.cumsum(np.concatenate(([0.0], power[1:])))
    met = np.maximum(place_a, place_b)
    early = np.bincount(segment[met <= s[segment]], minlength=pairs)  # overlap at the end of the shorter list
    common = np.bincount(segment, minlength=pairs)
    seen = np.bincount(segment, weights=by_depth[n[segment]] - by_depth[met - 1], minlength=pairs)
    beyond = (plain[n] - plain[s]) / s - (by_depth[n] - by_depth[s])
    rbos: F8 = (1 - p) / p * (seen + early * beyond) + ((common - early) / n + early / s) * power[n]
    return rbos
