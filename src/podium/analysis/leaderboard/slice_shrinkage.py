"""Scores of slices of the votes, shrunk toward a common center (a mixed model, fitted by empirical Bayes).

The score of an item in a slice is its common score plus a deviation, normal with one standard deviation for all
items and slices. At current scores the log likelihood of a slice is approximated by a quadratic function; the common
scores and the spread of the deviations maximize the restricted marginal likelihood of all slices, and the scores of
a slice follow from both. The approximation is repeated at the new scores. A slice does not count for the common
scores by its number of votes, but by what it tells about them: with large deviations all large slices count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.kernels.contextual_contests import ContextualVotes, add_up_gradients, compute_products
from podium.kernels.dispatch import F8
from podium.kernels.distributions import logistic

__all__ = ["SliceFit", "SliceVotes", "shrink_slices"]

ROUNDS, SETTLED = 8, 1e-4
NARROWEST, WIDEST = 0.01, 3.0  # standard deviations of deviations, in log odds
SEARCHES = 24  # steps of the golden section
GOLDEN = (5**0.5 - 1) / 2


class SliceVotes(NamedTuple):
    """The votes of a slice without covariates, and the log odds that their covariates add."""

    votes: ContextualVotes
    offset: F8


class SliceFit(NamedTuple):
    """Scores by slice with the covariances of their errors, and the spread; None where slices do not differ."""

    scores: list[F8]
    covariances: list[F8]
    spread: float


class QuadraticLikelihood(NamedTuple):
    """The log likelihood of a slice near its scores: target @ s - s @ hessian @ s / 2."""

    hessian: F8
    target: F8


class CommonScores(NamedTuple):
    """The common scores for one spread, their covariance, and the restricted log likelihood."""

    scores: F8
    covariance: F8
    value: float


def shrink_slices(slices: Sequence[SliceVotes], start: F8, l2: float) -> SliceFit | None:
    """Fit all slices together, from the scores of the whole board; None if they do not differ."""
    scores = [start for _ in slices]
    for _ in range(ROUNDS):
        parts = []
        for part, own in zip(slices, scores, strict=True):
            votes = part.votes
            chance = logistic(part.offset + own[votes.first] - own[votes.second])
            hessian = compute_products(votes, votes.weight * chance * (1 - chance))
            gradient = add_up_gradients(votes, votes.weight * (votes.outcome - chance))
            parts.append(QuadraticLikelihood(hessian, hessian @ own + gradient))
        spread = _estimate_spread(parts, l2)
        if spread == 0:
            return None
        center = _find_center(parts, spread, l2)
        shrunk = [np.linalg.inv(p.hessian + np.eye(len(start)) / spread**2) for p in parts]
        posteriors = [np.asarray(matrix, np.float64) for matrix in shrunk]
        new = [
            center.scores + posterior @ (p.target - p.hessian @ center.scores)
            for posterior, p in zip(posteriors, parts, strict=True)
        ]
        moved = max(float(np.abs(a - b).max()) for a, b in zip(new, scores, strict=True))
        scores = new
        if moved < SETTLED:
            break
    pulls = [posterior / spread**2 for posterior in posteriors]
    covariances = [
        posterior + pull @ center.covariance @ pull.T
        for posterior, pull in zip(posteriors, pulls, strict=True)
    ]
    return SliceFit(scores, covariances, spread)


def _find_center(parts: Sequence[QuadraticLikelihood], spread: float, l2: float) -> CommonScores:
    """The most likely common scores for a spread."""
    n = len(parts[0].target)
    precision, target, value = np.eye(n) * l2, np.zeros(n), 0.0
    for hessian, own in parts:
        posterior = np.linalg.inv(hessian + np.eye(n) / spread**2)
        precision += hessian @ posterior / spread**2
        target += posterior @ own / spread**2
        value += 0.5 * float(own @ posterior @ own)
        value -= 0.5 * float(np.linalg.slogdet(np.eye(n) + spread**2 * hessian)[1])
    covariance = np.asarray(np.linalg.inv(precision), np.float64)
    scores = covariance @ target
    value += 0.5 * float(target @ scores) - 0.5 * float(np.linalg.slogdet(precision)[1])
    return CommonScores(scores, covariance, value)


def _estimate_spread(parts: Sequence[QuadraticLikelihood], l2: float) -> float:
    """The spread with the largest restricted likelihood, by golden section of its logarithm; 0 if there is none."""
    low, high = np.log(NARROWEST), np.log(WIDEST)
    ends = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [_find_center(parts, float(np.exp(end)), l2).value for end in ends]
    for _ in range(SEARCHES):
        if values[0] >= values[1]:
            high = ends[1]
            ends, values = [high - GOLDEN * (high - low), ends[0]], [0.0, values[0]]
            values[0] = _find_center(parts, float(np.exp(ends[0])), l2).value
        else:
            low = ends[0]
            ends, values = [ends[1], low + GOLDEN * (high - low)], [values[1], 0.0]
            values[1] = _find_center(parts, float(np.exp(ends[1])), l2).value
        if high - low < 0.02:
            break
    best = float(np.exp(ends[int(values[1] > values[0])]))
    none = _find_center(parts, NARROWEST, l2).value
    return best if max(values) > none and best > 1.05 * NARROWEST else 0.0
