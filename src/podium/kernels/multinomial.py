"""The multinomial preference model: every preference of an expert is a draw from all ordered pairs of items.

Expert k prefers i to j with probability exp(t_k (s_i - s_j)) / Z, Z the sum over all pairs of two items. Of
the strengths Y_k only their total and, for every item, its row sum minus its column sum matter; and Z =
(sum_i exp(t s_i)) (sum_i exp(-t s_i)) - M, so no computation here loops over pairs. A group holds the
preferences of one expert on one query, or of all experts where they share one t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import multinomial as core
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8, run_in_threads

__all__ = ["MultinomialFit", "PreferenceGroups", "compute_adherence_slopes", "fit_adherence", "fit_scores"]

CLOSE = 1e-8  # relative change of an adherence at convergence
STRIDES = 2  # Newton steps of the adherences between two fits of the scores


class PreferenceGroups(NamedTuple):
    """Preferences by query and group."""

    slots: I8  # items of query q: slots[q] .. slots[q + 1]
    starts: I8  # groups of query q: starts[q] .. starts[q + 1]
    offsets: I8  # entries of group g: offsets[g] .. offsets[g + 1], one for every item of its query
    net: F8  # by entry: row sum minus column sum of the strengths
    total: F8  # by group: sum of the strengths

    @property
    def query(self) -> I8:
        """The query of each group."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class MultinomialFit(NamedTuple):
    """Scores by slot with mean 0 in every query, and by query how they were computed."""

    score: F8
    gradient: F8  # largest component, relative to the largest net strength
    steps: I8
    value: F8  # log-posterior of the scores


def fit_scores(
    groups: PreferenceGroups,
    adherence: F8,
    prior: float,
    tolerance: float,
    most_steps: int,
    fit: MultinomialFit,
    active: B1,
) -> None:
    """Maximum-posterior scores of the active queries given the adherence of every group, from those in `fit`.

    `prior` is the precision of a normal prior with mean 0.
    """
    work = groups.offsets[groups.starts]
    given = (groups, adherence, float(prior), tolerance, most_steps, active, *fit)
    run_in_threads(core.fit_scores, work, *given)


def fit_adherence(
    groups: PreferenceGroups,
    adherence: F8,
    own: I8,
    tied: I8,
    score: F8,
    active: B1,
    prior: float,
    steady: float,
) -> B1:
    """Move the adherences of the active queries towards their optimum for given scores; returns which moved.

    Groups with the same `own` share an adherence, with a normal prior of precision `steady` around 1. Groups
    with the same `tied` share a scale: the likelihood does not change when scores are multiplied by a number
    and adherences divided by it, so the priors determine that number. Updates `adherence` and `score` in
    place.
    """
    which = np.flatnonzero(active[groups.query])
    # these groups alone, each as a query of its own
    offsets, entries = segments.gather_segments(groups.offsets, which)
    slots, count = groups.slots[groups.query[which]], np.arange(len(which) + 1)
    part = PreferenceGroups(slots, count, offsets, groups.net[entries], groups.total[which])
    before = adherence[which]
    _, label, counted = np.unique(own[which], return_index=True, return_inverse=True)
    value = before[label]
    for _ in range(STRIDES):
        slope, bend = compute_adherence_slopes(part, value[counted], score)
        up = np.bincount(counted, slope, len(value)) - steady * (value - 1)
        down = np.bincount(counted, bend, len(value)) - steady
        # far from the optimum a Newton step can overshoot or change sign
        value = np.clip(value - up / down, value / 4, 4 * value + 0.1)
    scale = tied[which]
    # factors on the scores, one for each scale
    of_value, scales = scale[label], int(scale.max(initial=-1)) + 1
    of_query = np.zeros(len(active), np.int64)
    of_query[groups.query[active[groups.query]]] = scale
    has_votes = active & (np.diff(groups.starts) > 0)
    rescaled = np.flatnonzero(np.repeat(has_votes, np.diff(groups.slots)))
    of_slot = np.repeat(of_query, np.diff(groups.slots))[rescaled]
    squares, first, second = (
        np.bincount(at, term, scales).astype(np.float64, copy=False)
        for at, term in ((of_slot, score[rescaled] ** 2), (of_value, value), (of_value, value**2))
    )
    factor = _solve_rescaling(squares, prior, first, second, steady)
    score[rescaled] *= factor[of_slot]
    adherence[which] = value[counted] / factor[scale]
    moved = np.zeros(len(active), np.bool_)
    moved[groups.query[which][np.abs(adherence[which] - before) > CLOSE * (1 + before)]] = True
    return moved


def compute_adherence_slopes(groups: PreferenceGroups, adherence: F8, score: F8) -> tuple[F8, F8]:
    """The first two derivatives of the log-likelihood of every group with respect to its adherence."""
    sizes = np.diff(groups.offsets)
    first = groups.slots[groups.query]
    entry = np.arange(groups.offsets[-1]) + np.repeat(first - groups.offsets[:-1], sizes)
    s, owner = score[entry], np.repeat(np.arange(len(sizes)), sizes)
    up = np.exp(np.repeat(adherence, sizes) * s)

    def sum_by_group(values: F8) -> F8:
        return np.bincount(owner, values, len(sizes)).astype(np.float64, copy=False)

    (a, a1, a2), (b, b1, b2) = ([sum_by_group(e * s**n) for n in range(3)] for e in (up, 1 / up))
    # a query of one item has no pairs: Z is 0 except for rounding
    z = np.maximum(a * b - sizes, 1e-300)
    slope, bend = (a1 * b - a * b1) / z, (a2 * b - 2 * a1 * b1 + a * b2) / z
    return sum_by_group(groups.net * s) - groups.total * slope, groups.total * (slope**2 - bend)


def _solve_rescaling(squares: F8, prior: float, first: F8, second: F8, steady: float) -> F8:
    """The c that minimizes prior c^2 squares + steady sum (t / c - 1)^2; `first`, `second` sum t and t^2."""
    c = np.ones_like(squares)
    for _ in range(60):
        # the derivative times c^3 / 2, a polynomial
        value = prior * squares * c**4 + steady * (first * c - second)
        slope = 4 * prior * squares * c**3 + steady * first
        c = np.maximum(c - value / np.where(slope > 0, slope, 1.0), c / 8)
    return c
