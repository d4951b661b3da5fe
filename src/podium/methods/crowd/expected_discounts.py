"""Scores of CrowdAgg: the expected discount of every item's rank, summed over annotators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.data.preferences import Preferences
from podium.kernels import poisson_binomial
from podium.kernels.dispatch import F8
from podium.kernels.poisson_binomial import OpponentTable
from podium.methods.crowd.annotator_contests import AnnotatorContests

__all__ = ["ExpectedExcess", "ScoreSums", "choose_expectation", "sum_scores"]

ExpectedExcess = Callable[[OpponentTable, F8], F8]  # by row, from the contests and the tilt by group


class ScoreSums(NamedTuple):
    """Scores, and what they are summed from."""

    scores: F8
    magnitude: F8  # by query: the largest term of a score
    own: F8  # by entry: the term that its annotator adds, once if its weight makes it several


def choose_expectation(
    measure: str, persistence: float, discount: Sequence[float] | F8 | None, size: int
) -> ExpectedExcess:
    """The excess of every row as a function of the contests and the tilt, for queries of at most `size` items."""
    if discount is None:
        powers = poisson_binomial.approximate_log_discount(size)
        if measure == "rbp":
            powers = poisson_binomial.PowerSum(-np.log([persistence]), np.array([1 - persistence]))
        return lambda contests, tilt: poisson_binomial.compute_power_excess(contests, tilt, powers)
    worth = np.zeros(max(size, 1))
    given = np.asarray(discount[:size], np.float64)
    if given.ndim != 1 or not np.isfinite(given).all():
        raise ParameterError(
            f"the discounts are {discount!r}; accepted: finite numbers, one per rank from the top"
        )
    worth[: len(given)] = given

    def compute_excess(contests: OpponentTable, tilt: F8) -> F8:
        table = poisson_binomial.compute_discount_drops(contests, worth[:-1] - worth[1:])
        return poisson_binomial.compute_excess_discount(contests, tilt, table)

    return compute_excess


def sum_scores(preferences: Preferences, answers: AnnotatorContests, weights: F8, excess: F8) -> ScoreSums:
    """Scores by slot and their terms; a list's term for unlisted items goes to all slots but its own."""
    index, lists = preferences.index, len(answers.rest)
    excess = weights[answers.expert][answers.contests.group] * excess
    magnitude = np.zeros(len(index))
    np.maximum.at(magnitude, answers.query[answers.contests.group], np.abs(excess))
    value = excess[answers.row]
    rest = np.where(answers.rest >= 0, excess[answers.rest], 0.0) if lists else np.zeros(0)
    if rest.any():
        value[: preferences.lists.rows] -= rest[preferences.lists.list_of_row]
    scores = np.bincount(answers.slot, weights=value, minlength=len(index.items)).astype(np.float64)
    if rest.any():
        base = np.bincount(answers.query[:lists], weights=rest, minlength=len(index))
        scores += np.repeat(base, index.sizes)
    times = np.maximum(weights[answers.expert], 1.0)[answers.contests.group[answers.row]]
    return ScoreSums(scores, magnitude, value / times)
