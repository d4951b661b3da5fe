"""Which comparison to ask for next, and whether to ask at all.

One more vote on a pair with score difference d tells, in the normal approximation, 0.5 log(1 + I(d) v) nats about the
scores: v is the variance of the difference, I(d) the information of one vote (p (1 - p) for Bradley-Terry). The gain
is large where the outcome is open and the difference little known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.evaluate.uncertainty import NEAR, Estimate, pairwise_p, ranks_of
from podium.kernels.contest_models import DAVIDSON, LOGIT, PROBIT, terms
from podium.kernels.contests import Solution
from podium.kernels.dispatch import F8, I8

__all__ = ["Candidate", "Stopping", "chances", "gains", "information", "next_pairs", "relevance", "stopping"]

ENOUGH = 1e-4  # nats; a vote that tells less is not worth asking for


class Candidate(NamedTuple):
    """A comparison worth asking for: two items, what the vote would tell (nats), and the chance that first wins."""

    first: int
    second: int
    gain: float
    chance: float
    votes: float  # that the two had so far


class Stopping(NamedTuple):
    """Whether to stop asking, and why, in words with the numbers of items in `between`."""

    stop: bool
    reason: str  # settled, little to learn, never met, open
    between: tuple[int, int] | None = None  # the two neighbours (or sides of the boundary) least told apart
    votes: float | None = None  # between these two that would tell them apart, if the scores are right


def chances(solution: Solution, gap: F8) -> tuple[F8, F8, F8]:
    """Probabilities of a win, a loss and a tie at these score differences."""
    kind, width = solution.model.kind, float(solution.extra["width"][0])
    if kind >= DAVIDSON and np.isnan(width):
        kind = LOGIT  # no ties were seen
    if kind == LOGIT:
        win, lose = _logistic(gap), _logistic(-gap)
    elif kind == PROBIT:
        from scipy.special import ndtr

        win, lose = ndtr(gap), ndtr(-gap)
    elif kind == DAVIDSON:
        top = np.maximum(np.abs(gap) / 2, width)
        parts = [np.exp(v - top) for v in (gap / 2, -gap / 2, np.full_like(gap, width))]
        win, lose = parts[0] / sum(parts), parts[1] / sum(parts)
    else:
        win, lose = _logistic(gap - width), _logistic(-gap - width)
    return win, lose, np.maximum(1 - win - lose, 0.0)


def _logistic(x: F8) -> F8:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))), np.float64)


def information(solution: Solution, gap: F8) -> F8:
    """What one vote at these differences is expected to add to the information about the difference."""
    win, lose, tie = chances(solution, gap)
    kind, width = solution.model.kind, float(solution.extra["width"][0])
    if kind >= DAVIDSON and np.isnan(width):
        kind, width = LOGIT, 0.0
    return terms(kind, gap, width, win, lose, tie).dd


def gains(e: Estimate, matrix: F8) -> F8:
    """Nats that one more vote is expected to tell, for every two items."""
    gap = e.scores[:, None] - e.scores
    return np.asarray(0.5 * np.log1p(information(e.solution, gap) * spread(matrix)), np.float64)


def spread(matrix: F8) -> F8:
    """Variances of all differences."""
    own = matrix.diagonal()
    return np.asarray(np.maximum(own[:, None] + own - 2 * matrix, 0.0), np.float64)


def relevance(draws: F8, k: int) -> F8:
    """For every two items, how far from settled it is which of them is among the best k and which is not: 0 to 1.

    Twice the smaller of the probabilities that the one is in and the other out, and the other way round.
    """
    inside = (ranks_of(draws) <= k).astype(np.float64)
    split = inside.T @ (1 - inside) / len(draws)
    return np.asarray(2 * np.minimum(split, split.T), np.float64)


def next_pairs(
    e: Estimate, matrix: F8, count: int, *, top: int | None = None, draws: F8 | None = None
) -> list[Candidate]:
    """The comparisons that are expected to tell most, best first.

    With `top` (and `draws` of the scores) the gain of a pair counts as far as it is open which of the two is among the
    best `top`.
    """
    value = gains(e, matrix)
    if top is not None and draws is not None and 0 < top < len(e):
        value = value * relevance(draws, top)
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
    found = []
    for i, j in zip(a[some].tolist(), b[some].tolist(), strict=True):
        i, j = (i, j) if place[i] < place[j] else (j, i)
        win, _, tie = chances(e.solution, np.array([e.scores[i] - e.scores[j]]))
        found.append(Candidate(i, j, float(value[i, j]), float(win[0] + tie[0] / 2), float(met[i, j])))
    return found


def stopping(
    e: Estimate, matrix: F8, *, level: float = 0.95, top: int | None = None, enough: float = ENOUGH,
    degrees: F8 | None = None,
) -> Stopping:  # fmt: skip
    """Stop when all neighbours in the order are told apart (with `top`: the best `top` from all others), or when the
    most telling vote would tell less than `enough` nats; tests are corrected by Holm.
    """
    if len(e) < 2:
        return Stopping(True, "there is nothing to compare")
    if e.solution.component.any():
        apart = int(np.flatnonzero(e.solution.component != e.solution.component[e.order[0]])[0])
        return Stopping(False, "never met", (int(e.order[0]), apart))
    over, under = _boundary(e.order, top)
    open_ = np.flatnonzero(pairwise_p(e.scores, matrix, degrees)[over, under] > 1 - level)
    if not len(open_):
        return Stopping(True, "settled")
    if float(gains(e, matrix).max()) < enough:
        return Stopping(True, "little to learn")
    over, under = over[open_], under[open_]
    z = (e.scores[over] - e.scores[under]) / np.sqrt(np.maximum(spread(matrix)[over, under], 1e-300))
    pair = int(over[z.argmin()]), int(under[z.argmin()])
    return Stopping(False, "open", pair, votes_to_separate(e, matrix, *pair, level=level))


def _boundary(order: I8, top: int | None) -> tuple[I8, I8]:
    """Pairs that have to be told apart."""
    if top is None or top >= len(order):
        return order[:-1], order[1:]
    a, b = np.meshgrid(order[:top], order[top:], indexing="ij")
    return a.ravel(), b.ravel()


def votes_to_separate(e: Estimate, matrix: F8, i: int, j: int, *, level: float = 0.95) -> float:
    """Votes between two items after which their difference, if it is what it seems, is as many standard errors from 0
    as the level asks for when all pairs are tested; infinite for equal scores.
    """
    from scipy.special import ndtri

    gap = abs(float(e.scores[i] - e.scores[j]))
    if gap <= NEAR:
        return float("inf")
    now = float(matrix[i, i] + matrix[j, j] - 2 * matrix[i, j])
    tests = len(e) * (len(e) - 1) / 2
    needed = (float(ndtri(1 - (1 - level) / 2 / tests)) / gap) ** 2
    one = float(information(e.solution, np.array([gap]))[0])
    return float(max(0.0, np.ceil((needed - (1 / now if now > 0 else 0.0)) / one)))
