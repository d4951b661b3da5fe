"""Scores fitted to the contests of one query: which votes bound them, what they predict, what flips the lead.

Items are referred to by number. Scores of a choice model are identified up to a shift, so they are measured
from the mean of the *core*, the largest group of items in which chains of wins link every item to every other
(from the mean of all items if there is no such group). Outside the core the likelihood has no maximum: an
item that never lost could be arbitrarily strong. Only the prior bounds such scores, their intervals are open
on that side, and their errors are those of the prior.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.kernels import contest_scores as choice
from podium.kernels import graphs
from podium.kernels.bootstrap import refit_contests
from podium.kernels.contest_models import DAVIDSON, LOGIT, PROBIT, compute_terms
from podium.kernels.contest_scores import Contests, ContestSolution
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import normal_cdf
from podium.methods.choice import BradleyTerry

__all__ = [
    "Estimate",
    "Flip",
    "compute_information",
    "compute_outcome_probabilities",
    "estimate_scores",
    "votes_to_flip",
]

MOST_ITEMS = 5_000  # largest covariance matrix (items x items) that is inverted
NEAR = 1e-9  # scores closer than this are equal
LOST = 1e13  # condition number of the Hessian beyond which errors have fewer than three digits
L2 = BradleyTerry.l2  # prior of the method


@dataclass(frozen=True, eq=False)
class Estimate:
    """The contests of one query, their solution, and which scores are unbounded."""

    contests: Contests
    solution: ContestSolution
    scores: F8  # per item, mean 0 over the origin
    core: B1  # none if no two items are linked by wins in both directions; the prior alone bounds the others
    above: B1  # outside the core: unbounded from above
    below: B1  # ... unbounded from below

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def origin(self) -> B1:
        """Items whose mean score is the origin: the core, or all items without one."""
        return self.core if self.core.any() else ~self.core

    @functools.cached_property
    def inverse_hessian(self) -> F8:
        """Inverse Hessian, prior included: the Fisher and Laplace covariance, with the level in it."""
        if len(self) > MOST_ITEMS:
            raise ParameterError(
                f"{len(self):,} items are too many for intervals, which need a matrix for at most "
                f"{MOST_ITEMS:,}; drop items with few votes"
            )
        second = choice.compute_hessian(self.contests, self.solution, 0).to_dense()
        with contextlib.suppress(np.linalg.LinAlgError):
            inverse = np.asarray(np.linalg.inv(second), np.float64)
            if np.linalg.norm(second, 1) * np.linalg.norm(inverse, 1) < LOST:
                return inverse
        raise InputError(
            f"the votes of an item weigh {np.abs(second).max():.3g}, too much relative to the prior",
            remedy="use smaller weights, or a larger l2",
        )

    @functools.cached_property
    def order(self) -> I8:
        """Items, best first; ties by number."""
        return np.argsort(-np.round(self.scores / NEAR) * NEAR, kind="stable")


def estimate_scores(
    contests: Contests,
    *,
    model: str = "bradley_terry",
    ties: str = "half",
    l2: float = L2,
    start: F8 | None = None,
    tolerance: float = 1e-10,
) -> Estimate:
    """Most likely scores of the contests of one query (see `podium.kernels.contest_scores.fit_contests`)."""
    solution = choice.fit_contests(contests, model=model, ties=ties, l2=l2, start=start, tolerance=tolerance)
    counted = contests._replace(tied=np.zeros_like(contests.tied)) if ties == "ignore" else contests
    core, above, below = _find_bounds(counted, solution.scores)
    origin = core if core.any() else ~core
    scores = solution.scores - (solution.scores[origin].mean() if len(origin) else 0.0)
    return Estimate(contests, solution, scores, core, above, below)


def _find_bounds(contests: Contests, scores: F8) -> tuple[B1, B1, B1]:
    """The core, and the items that no chain of wins from it reaches, or from which none leads to it.

    The core is the largest group; ties by most votes, then best score, so that ids do not matter. If no two
    items are linked in both directions there is no core: an item that beat another has no upper bound, one
    that lost no lower bound, and groups that were never compared have neither.
    """
    parts, size = choice.find_components(contests), len(scores)
    if not size:
        return (np.zeros(0, np.bool_),) * 3
    up, down = contests.won + contests.tied > 0, contests.lost + contests.tied > 0
    over = np.concatenate((contests.first[up], contests.second[down]))
    under = np.concatenate((contests.second[up], contests.first[down]))
    members = np.bincount(parts.strong, minlength=size)
    if members.max() < 2:
        apart = bool(parts.weak.any())  # the first group is that of item 0
        beaten, beats = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        beats[over] = beaten[under] = True
        return np.zeros(size, np.bool_), beats | apart, beaten | apart
    total = contests.won + contests.lost + contests.tied
    votes = np.bincount(parts.strong[contests.first], weights=total, minlength=size)
    votes += np.bincount(parts.strong[contests.second], weights=total, minlength=size)
    mean = np.bincount(parts.strong, weights=scores, minlength=size) / np.maximum(members, 1)
    root = int(np.lexsort((np.arange(size), -np.round(mean / NEAR), -votes, -members))[0])
    # a chain of losses to the core bounds a score from above, a chain of wins over it from below
    beaten = graphs.mark_reachable(over, under, size, root)
    beats = graphs.mark_reachable(under, over, size, root)
    return parts.strong == root, ~beaten, ~beats


def compute_outcome_probabilities(solution: ContestSolution, gap: F8) -> tuple[F8, F8, F8]:
    """Probabilities of a win, a loss and a tie at the given score differences."""
    kind, width = solution.model.kind, float(solution.extra["width"][0])
    if kind >= DAVIDSON and np.isnan(width):
        kind = LOGIT  # no ties observed
    if kind == LOGIT:
        win, lose = _logistic(gap), _logistic(-gap)
    elif kind == PROBIT:
        win, lose = normal_cdf(gap), normal_cdf(-gap)
    elif kind == DAVIDSON:
        top = np.maximum(np.abs(gap) / 2, width)
        parts = [np.exp(v - top) for v in (gap / 2, -gap / 2, np.full_like(gap, width))]
        win, lose = parts[0] / sum(parts), parts[1] / sum(parts)
    else:
        win, lose = _logistic(gap - width), _logistic(-gap - width)
    return win, lose, np.maximum(1 - win - lose, 0.0)


def _logistic(x: F8) -> F8:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))), np.float64)


def compute_information(solution: ContestSolution, gap: F8) -> F8:
    """Expected information of one vote about the difference, at the given differences."""
    win, lose, tie = compute_outcome_probabilities(solution, gap)
    kind, width = solution.model.kind, float(solution.extra["width"][0])
    if kind >= DAVIDSON and np.isnan(width):
        kind, width = LOGIT, 0.0
    return compute_terms(kind, gap, width, win, lose, tie).dd


class Flip(NamedTuple):
    """The number of additional votes for the challenger against the leader that would put it ahead."""

    votes: int
    leader: int
    challenger: int


def votes_to_flip(e: Estimate, most: int = 1 << 40) -> Flip | None:
    """The smallest number of extra votes for the runner-up over the leader after which it scores higher.

    All are wins of the second item over the first, each of weight 1, and all scores are fitted again. Every
    such vote moves the two scores toward each other, so bisection finds the number; None with fewer than two
    items, or if `most` votes do not suffice.
    """
    if len(e) < 2:
        return None
    leader, challenger = e.order[:2].tolist()

    def is_ahead(votes: int) -> bool:
        extra = add_votes(e.contests, challenger, leader, votes)
        scores = refit_contests(extra, e.solution, 1e-10).scores
        return bool(scores[challenger] - scores[leader] > NEAR)

    votes = find_least_count(is_ahead, most)
    return None if votes is None else Flip(votes, leader, challenger)


def find_least_count(is_enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 to about `most` that is enough, by bisection; None if there is none.

    >>> find_least_count(lambda votes: votes >= 11, 100)
    11
    """
    low, high = 0, 1
    while not is_enough(high):
        low, high = high, high * 4
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def add_votes(contests: Contests, winner: int, loser: int, votes: float) -> Contests:
    """The contests of one query with additional votes for one item over another."""
    low, high = min(winner, loser), max(winner, loser)
    size = int(contests.starts[-1])
    keys = contests.first.astype(np.int64) * size + contests.second
    at = int(np.searchsorted(keys, low * size + high))
    if at == len(keys) or keys[at] != low * size + high or contests.side is not None:
        insert = {"first": low, "second": high, "won": 0.0, "lost": 0.0, "tied": 0.0, "side": 0.0}
        columns: dict[str, Any] = {
            n: np.insert(getattr(contests, n), at, v)
            for n, v in insert.items()
            if getattr(contests, n) is not None
        }
        contests = contests._replace(pair_starts=np.array([0, len(keys) + 1]), **columns)
    name = "won" if winner == low else "lost"
    count = getattr(contests, name).copy()
    count[at] += votes
    return contests._replace(**{name: count})
