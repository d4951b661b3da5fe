"""Which comparison to request next, and when to stop.

In the normal approximation, one more vote on a pair with score difference d yields 0.5 log(1 + I(d) v) nats
about the scores: v is the variance of the difference, I(d) the information of one vote (p (1 - p) for
Bradley-Terry). The gain is large where the outcome is uncertain and the difference poorly known. Only open
pairs are proposed: pairs that the tests separate, and pairs that are practically equal, are settled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.inference import pairwise_p, rank_draws, student_critical_values
from podium.analysis.leaderboard.score_estimate import (
    NEAR,
    Estimate,
    compute_information,
    compute_outcome_probabilities,
)
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import normal_quantile

__all__ = [
    "ComparisonCandidate",
    "StoppingDecision",
    "compute_gains",
    "compute_relevance",
    "decide_stopping",
    "find_equal_pairs",
    "find_next_pairs",
    "find_open_pairs",
]  # fmt: skip

# Two items are practically equal if the win probability is within this distance of one half, with confidence.
EQUAL = 0.01


class ComparisonCandidate(NamedTuple):
    """A comparison to request: two items, the expected gain (nats), and the probability that `first` wins."""

    first: int
    second: int
    gain: float
    chance: float
    votes: float  # votes between the two so far


class StoppingDecision(NamedTuple):
    """Whether to stop, and the reason; `between` holds the numbers of two items."""

    stop: bool
    reason: str  # settled, as good as equal, never met, open
    between: tuple[int, int] | None = None  # the open pair that needs the fewest votes
    votes: float | None = None  # estimated votes to separate the pair


def compute_gains(e: Estimate, matrix: F8) -> F8:
    """Expected gain in nats of one more vote, for every pair of items."""
    gap = e.scores[:, None] - e.scores
    return np.asarray(
        0.5 * np.log1p(compute_information(e.solution, gap) * compute_difference_variances(matrix)),
        np.float64,
    )


def compute_difference_variances(matrix: F8) -> F8:
    """Variances of all pairwise differences."""
    own = matrix.diagonal()
    return np.asarray(np.maximum(own[:, None] + own - 2 * matrix, 0.0), np.float64)


def compute_relevance(draws: F8, k: int) -> F8:
    """For every pair, uncertainty from 0 to 1 about which item is among the best k and which is not.

    Twice the smaller of the probabilities that only the first or only the second is among the best k.
    """
    inside = (rank_draws(draws) <= k).astype(np.float64)
    split = inside.T @ (1 - inside) / len(draws)
    return np.asarray(2 * np.minimum(split, split.T), np.float64)


def find_equal_pairs(e: Estimate, matrix: F8, level: float = 0.95, *, degrees: F8 | None = None) -> B1:
    """Pairs that are practically equal at this level: two one-sided tests against `EQUAL`."""
    size = len(e)
    i, j = np.divmod(np.arange(size * size), size)
    critical = compute_pair_critical_values(level, i, j, degrees).reshape(size, size)
    # an item compared with itself has no error, whatever its degrees of freedom
    error = np.sqrt(compute_difference_variances(matrix))
    margin = np.where(error > 0, critical, 0.0) * error
    farthest = np.abs(e.scores[:, None] - e.scores) + margin
    # beyond 500 units one item always wins; infinite gaps would turn into NaN in models with ties
    win, lose, _ = compute_outcome_probabilities(e.solution, np.minimum(farthest, 500.0))
    return np.asarray((win - lose) / 2 <= EQUAL, np.bool_)


def compute_pair_critical_values(level: float, i: I8, j: I8, degrees: F8 | None) -> F8:
    """The one-sided critical value of each pair: normal, or Student's with the degrees of the item that has fewer."""
    critical = float(normal_quantile(level))
    if degrees is None:
        return np.full(len(i), critical)
    return student_critical_values(critical, np.minimum(degrees[i], degrees[j]))


def find_open_pairs(
    e: Estimate, matrix: F8, p: F8, *, level: float = 0.95, top: int | None = None, degrees: F8 | None = None
) -> B1:
    """Pairs that more votes could settle: neither separated by the tests (`p`) nor practically equal.

    With `top`, only pairs with exactly one item among the best `top`.
    """
    return (
        _find_pairs_in_question(e, top)
        & (p > 1 - level)
        & ~find_equal_pairs(e, matrix, level, degrees=degrees)
    )


def _find_pairs_in_question(e: Estimate, top: int | None) -> B1:
    """All pairs, or those with exactly one item among the best `top`."""
    inside = np.isin(np.arange(len(e)), e.order[:top])
    return ~np.eye(len(e), dtype=np.bool_) if inside.all() else inside[:, None] != inside


def find_next_pairs(
    e: Estimate,
    matrix: F8,
    count: int,
    *,
    p: F8 | None = None,
    level: float = 0.95,
    top: int | None = None,
    draws: F8 | None = None,
    degrees: F8 | None = None,
) -> list[ComparisonCandidate]:
    """The comparisons with the largest expected gain, best first; only open pairs (see `find_open_pairs`).

    `p` holds the tests of all pairs, by default `pairwise_p`. With `top` (and `draws` of the scores) the gain
    of a pair is weighted by the uncertainty about which of the two is among the best `top`.
    """
    tests = pairwise_p(e.scores, matrix, degrees) if p is None else p
    value = compute_gains(e, matrix) * find_open_pairs(
        e, matrix, tests, level=level, top=top, degrees=degrees
    )
    if top is not None and draws is not None and 0 < top < len(e):
        value = value * compute_relevance(draws, top)
    place = np.empty(len(e), np.int64)
    place[e.order] = np.arange(len(e))
    a, b = np.triu_indices(len(e), 1)
    worth = value[a, b]
    some = np.flatnonzero(worth > 0)
    some = some[np.lexsort((place[b[some]] + place[a[some]], -np.round(worth[some], 12)))][:count]
    c = e.contests
    met = np.zeros((len(e), len(e)))
    np.add.at(met, (c.first, c.second), c.won + c.lost + c.tied)
    met += met.T
    candidates = []
    for i, j in zip(a[some].tolist(), b[some].tolist(), strict=True):
        i, j = (i, j) if place[i] < place[j] else (j, i)
        win, _, tie = compute_outcome_probabilities(e.solution, np.array([e.scores[i] - e.scores[j]]))
        candidates.append(
            ComparisonCandidate(i, j, float(value[i, j]), float(win[0] + tie[0] / 2), float(met[i, j]))
        )
    return candidates


def decide_stopping(
    e: Estimate,
    matrix: F8,
    *,
    p: F8 | None = None,
    level: float = 0.95,
    top: int | None = None,
    degrees: F8 | None = None,
) -> StoppingDecision:
    """Stop when no pair is open (see `find_open_pairs`), so that `find_next_pairs` has nothing to propose."""
    if len(e) < 2:
        return StoppingDecision(True, "there is nothing to compare")
    if e.solution.component.any():
        apart = int(np.flatnonzero(e.solution.component != e.solution.component[e.order[0]])[0])
        return StoppingDecision(False, "never met", (int(e.order[0]), apart))
    tests = pairwise_p(e.scores, matrix, degrees) if p is None else p
    is_open = find_open_pairs(e, matrix, tests, level=level, top=top, degrees=degrees)
    over, under = np.nonzero(np.triu(is_open, 1))
    if not len(over):
        equal = bool((tests[_find_pairs_in_question(e, top)] > 1 - level).any())
        return StoppingDecision(True, "as good as equal" if equal else "settled")
    needed = votes_to_separate(e, matrix, over, under, level=level, degrees=degrees)
    least = int(needed.argmin())
    i, j = int(over[least]), int(under[least])
    pair = (i, j) if e.scores[i] >= e.scores[j] else (j, i)
    return StoppingDecision(False, "open", pair, float(needed[least]))


def votes_to_separate(
    e: Estimate, matrix: F8, i: I8, j: I8, *, level: float = 0.95, degrees: F8 | None = None
) -> F8:
    """Votes between two items until their difference, if correctly estimated, is as many standard errors
    from 0 as the level requires when all pairs are tested; infinite for equal scores.

    Further votes count as independent ones; where errors are over experts, that means votes of further experts.
    """
    gap = np.abs(e.scores[i] - e.scores[j])
    now = matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]
    tests = len(e) * (len(e) - 1) / 2
    far = gap > NEAR
    critical = compute_pair_critical_values(1 - (1 - level) / 2 / tests, i, j, degrees)
    wanted = (critical / np.where(far, gap, 1.0)) ** 2
    known = np.divide(1.0, now, out=np.zeros(len(gap)), where=now > 0)
    more = np.maximum(0.0, np.ceil((wanted - known) / compute_information(e.solution, gap)))
    return np.where(far, more, np.inf)
