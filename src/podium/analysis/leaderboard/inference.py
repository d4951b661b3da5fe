"""Uncertainty of scores from contests: standard errors, intervals, ranks, and votes that flip the lead.

Everything here concerns the contests of one query and refers to items by number. Scores of a choice model are
identified up to a shift, so they are measured from the mean of the *core*, the largest group of items in
which chains of wins link every item to every other (from the mean of all items if there is no such group).
Outside the core the likelihood has no maximum: an item that never lost could be arbitrarily strong. Only the
prior bounds such scores, their intervals are open on that side, and their errors are those of the prior.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from podium.analysis.leaderboard.vote_gradients import compute_cluster_meat, compute_vote_meat
from podium.core.errors import InputError, ParameterError
from podium.evaluate.significance import holm
from podium.kernels import bootstrap as drawing
from podium.kernels import contest_scores as choice
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.contest_scores import Contests, ContestSolution
from podium.kernels.dispatch import B1, F8, I8
from podium.methods.choice import BradleyTerry

__all__ = [
    "ErrorKind",
    "Estimate",
    "Flip",
    "bootstrap_scores",
    "center_covariance",
    "compute_covariance",
    "critical_value",
    "estimate_scores",
    "find_tied_groups",
    "pairwise_p",
    "rank_bounds",
    "rank_draws",
    "sample_scores",
    "student_critical_values",
    "top_share",
    "votes_to_flip",
]  # fmt: skip

ErrorKind = Literal["fisher", "sandwich"]
MOST_ITEMS = 5_000  # largest covariance matrix (items x items) that is inverted
NEAR = 1e-9  # scores closer than this are equal
STILL = 1e-9  # below this share of Fisher's variance, votes are constant and carry no error estimate
DRAWS = 4_000  # draws from the normal distribution
STRATA = 200  # strata of the chi-square distribution behind Student's t draws
LEAST = 0.05  # with at most this many degrees of freedom, the error is practically unknown
LOST = 1e13  # condition number of the Hessian beyond which errors have fewer than three digits
L2 = BradleyTerry.l2  # prior of the method


@dataclass(frozen=True, eq=False)
class Estimate:
    """The contests of one query, their solution, and which scores are unbounded."""

    contests: Contests
    solution: ContestSolution
    scores: F8  # per item, mean 0 over the origin
    core: B1  # empty if no two items are linked by wins in both directions
    above: B1  # outside the core: unbounded from above
    below: B1  # ... unbounded from below

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def prior_only(self) -> B1:
        """Items bounded only by the prior."""
        return ~self.core

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
        second = choice.compute_hessian(self.contests, self.solution, 0).toarray()
        with contextlib.suppress(np.linalg.LinAlgError):
            found = np.asarray(np.linalg.inv(second), np.float64)
            if np.linalg.norm(second, 1) * np.linalg.norm(found, 1) < LOST:
                return found
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
    found = choice.fit_contests(contests, model=model, ties=ties, l2=l2, start=start, tolerance=tolerance)
    counted = contests._replace(tied=np.zeros_like(contests.tied)) if ties == "ignore" else contests
    core, above, below = _find_bounds(counted, found.scores)
    origin = core if core.any() else ~core
    scores = found.scores - (found.scores[origin].mean() if len(origin) else 0.0)
    return Estimate(contests, found, scores, core, above, below)


def _find_bounds(contests: Contests, scores: F8) -> tuple[B1, B1, B1]:
    """The core, and the items that no chain of wins from it reaches, or from which none leads to it.

    If no two items are linked in both directions there is no core: an item that beat another has no upper
    bound, one that lost no lower bound, and groups that were never compared have neither.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    parts, size = choice.find_components(contests), len(scores)
    if not size:
        return (np.zeros(0, np.bool_),) * 3
    up, down = contests.won + contests.tied > 0, contests.lost + contests.tied > 0
    over = np.concatenate((contests.first[up], contests.second[down]))
    under = np.concatenate((contests.second[up], contests.first[down]))
    root = _find_core(contests, parts.strong, scores)
    beaten, beats = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    if root is None:
        apart = bool(parts.weak.any())  # the first group is that of item 0
        beats[over] = beaten[under] = True
        return np.zeros(size, np.bool_), beats | apart, beaten | apart
    # a chain of losses to the core bounds a score from above, a chain of wins over it from below
    for mark, ends in ((beaten, (over, under)), (beats, (under, over))):
        graph = csr_array((np.ones(len(over), np.int8), ends), shape=(size, size))
        mark[breadth_first_order(graph, root, return_predecessors=False)] = True
    return parts.strong == root, ~beaten, ~beats


def _find_core(contests: Contests, strong: I8, scores: F8) -> int | None:
    """Label of the largest group; ties by most votes, then best score, so that ids do not matter."""
    size = len(strong)
    members = np.bincount(strong, minlength=size)
    if members.max() < 2:
        return None
    total = contests.won + contests.lost + contests.tied
    votes = np.bincount(strong[contests.first], weights=total, minlength=size)
    votes += np.bincount(strong[contests.second], weights=total, minlength=size)
    mean = np.bincount(strong, weights=scores, minlength=size) / np.maximum(members, 1)
    return int(np.lexsort((np.arange(size), -np.round(mean / NEAR), -votes, -members))[0])


def center_covariance(matrix: F8, of: B1) -> F8:
    """Covariance of the scores minus their mean over some items."""
    mean = matrix[:, of].mean(axis=1)
    return np.asarray(matrix - mean - mean[:, None] + mean[of].mean(), np.float64)


def compute_covariance(
    e: Estimate,
    errors: ErrorKind = "sandwich",
    clusters: Clusters | None = None,
    squares: Squares | None = None,
) -> F8:
    """Covariance of the scores minus the mean of the origin.

    `fisher` trusts the model: the inverse of the observed information (with the prior). `sandwich` measures
    how much single votes, or whole `clusters` of them, deviate from the model; it stays valid when votes of
    one expert are correlated, and when ties count as half a win. Where a weight is not a number of votes,
    `squares` holds the sums of squared weights by pair. Scores bounded only by the prior, and those whose
    votes do not vary at all (nothing but ties), have Fisher's errors.
    """
    c, size = e.contests, len(e)
    own = e.inverse_hessian[:size]
    half = own - own[e.origin].mean(axis=0)  # center first: the squared level would swamp the rest
    fisher = center_covariance(own[:, :size], e.origin)
    if squares is not None:
        met = c._replace(won=squares.won, lost=squares.lost, tied=squares.tied)
        fisher = np.asarray(half @ choice.compute_hessian(met, e.solution, 0) @ half.T, np.float64)
    if errors == "fisher":
        return fisher
    if errors != "sandwich":
        raise ParameterError(f"errors is {errors!r}; accepted: fisher, sandwich")
    singles = squares or Squares(c.won, c.lost, c.tied)
    meat = compute_vote_meat(e, singles) if clusters is None else compute_cluster_meat(e, clusters)
    robust: F8 = half @ meat @ half.T
    other = e.prior_only | (robust.diagonal() <= STILL * fisher.diagonal())
    robust[other], robust[:, other] = fisher[other], fisher[:, other]
    return robust


def bootstrap_scores(
    e: Estimate,
    rounds: int,
    *,
    clusters: Clusters | None = None,
    squares: Squares | None = None,
    seed: int = 0,
    tolerance: float = 1e-5,
) -> F8:
    """Scores (minus the mean of the origin) of bootstrap resamples of votes or clusters; one row per round.

    Scores bounded only by the prior do not vary between resamples, nor do scores whose votes are all ties;
    they get Fisher's spread.
    """
    if rounds < 2:
        raise ParameterError(f"rounds is {rounds}; accepted: whole numbers from 2")
    c = e.contests
    second = None if squares is None else np.concatenate(squares)
    draw = clusters or drawing.build_poisson_tables(np.concatenate((c.won, c.lost, c.tied)), second)
    scores = drawing.fit_resamples(
        c, e.solution, e.inverse_hessian, draw, rounds=rounds, seed=seed, tolerance=tolerance
    )
    scores -= scores[:, e.origin].mean(axis=1, keepdims=True)
    held, varied = (
        center_covariance(e.inverse_hessian[: len(e), : len(e)], e.origin).diagonal(),
        scores.var(axis=0),
    )
    other = e.prior_only | (varied <= STILL * held)
    if other.any():  # add only the variance that the resamples lack
        spread = np.sqrt(np.maximum(held - varied, 0.0))[other]
        scores[:, other] += np.random.default_rng([seed, 1]).normal(size=(rounds, len(spread))) * spread
    return scores


def sample_scores(
    scores: F8, matrix: F8, *, draws: int = DRAWS, seed: int = 0, degrees: F8 | None = None
) -> F8:
    """Scores drawn from a normal distribution with this covariance, or Student's t with these `degrees`."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # rounding may make eigenvalues of 0 negative
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(draws, len(scores))) @ root.T
    if degrees is not None and np.isfinite(degrees).any():
        from scipy.special import gammaincinv

        # one stratum per draw, so that items with the same degrees of freedom have the same factor
        few = np.clip(degrees, LEAST, 1e6) / 2
        quantiles = np.sqrt(gammaincinv(few, (np.arange(STRATA)[:, None] + 0.5) / STRATA) / few)
        drawn /= quantiles[random.integers(0, STRATA, draws)]
    return np.asarray(scores + drawn, np.float64)


def student_critical_values(critical: float, degrees: F8) -> F8:
    """Critical value of the normal distribution adjusted for `degrees` of freedom; infinite if too few."""
    from scipy.special import ndtr, stdtrit

    known = np.maximum(degrees, LEAST)
    return np.where(
        degrees > LEAST, np.where(np.isinf(known), critical, stdtrit(known, ndtr(critical))), np.inf
    )


def critical_value(level: float, matrix: F8 | None = None, *, seed: int = 0) -> float:
    """Half-width of an interval in standard errors; with a covariance matrix, for all intervals at once."""
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    if matrix is None:
        return float(ndtri((1 + level) / 2))
    errors = np.sqrt(matrix.diagonal())
    some = errors > 0
    drawn = sample_scores(np.zeros(len(matrix)), matrix, seed=seed)[:, some] / errors[some]
    return float(np.quantile(np.abs(drawn).max(axis=1, initial=0.0), level))


def pairwise_p(scores: F8, matrix: F8, degrees: F8 | None = None) -> F8:
    """Holm-adjusted two-sided p-values of all differences being 0; 1 on the diagonal.

    z-tests or, with `degrees` of freedom by item, t-tests, each with the smaller degrees of its two items.
    """
    from scipy.special import ndtr, stdtr

    size = len(scores)
    a, b = np.triu_indices(size, 1)
    spread = np.sqrt(np.maximum(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b], 0.0))
    gap = np.abs(scores[a] - scores[b])
    z = np.divide(gap, spread, out=np.where(gap > NEAR, np.inf, 0.0), where=spread > 0)
    tail = ndtr(-z)
    if degrees is not None and np.isfinite(degrees).any():
        fewer = np.minimum(degrees[a], degrees[b])
        few = np.flatnonzero(np.isfinite(fewer))
        tail[few] = np.where(fewer[few] > LEAST, stdtr(np.maximum(fewer[few], LEAST), -z[few]), 0.5)
    table = np.ones((size, size))
    table[a, b] = table[b, a] = holm(2 * tail)
    return table


def rank_bounds(scores: F8, p: F8, level: float = 0.95) -> tuple[I8, I8]:
    """Best and worst rank of every item: only items that the tests separate are above or below.

    With Holm's correction all these intervals hold simultaneously at the level.
    """
    separated = p <= 1 - level
    over = scores[:, None] > scores
    better, worse = (separated & over.T).sum(axis=1), (separated & over).sum(axis=1)
    return 1 + better, len(scores) - worse


def rank_draws(draws: F8) -> I8:
    """Ranks from 1 within each row."""
    return np.asarray(np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1) + 1, np.int64)


def top_share(draws: F8, k: int) -> F8:
    """Per item, the share of rows in which it is among the best k."""
    return np.asarray((rank_draws(draws) <= k).mean(axis=0), np.float64)


def find_tied_groups(order: I8, p: F8, level: float = 0.95) -> list[list[int]]:
    """Longest runs of adjacent items in which the tests separate no two; runs may overlap.

    >>> p = np.ones((3, 3)); p[0, 2] = p[2, 0] = 0.001
    >>> find_tied_groups(np.array([0, 1, 2]), p)
    [[0, 1], [1, 2]]
    """
    separated = p[np.ix_(order, order)] <= 1 - level
    runs: list[list[int]] = []
    reach = 0
    for begin in range(len(order)):
        end = max(begin + 1, reach)
        while end < len(order) and not separated[begin:end, end].any():
            end += 1
        if end > reach:
            runs.append(order[begin:end].tolist())
        reach = max(reach, end)
    return runs


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
        scores = drawing.refit_contests(extra, e.solution, 1e-10).scores
        return bool(scores[challenger] - scores[leader] > NEAR)

    low, high = 0, 1
    while not is_ahead(high):
        low, high = high, high * 4
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_ahead(middle) else (middle, high)
    return Flip(high, leader, challenger)


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
