"""How sure are scores that come from contests: standard errors, intervals, ranks, and what could still change.

Everything here is about the contests of one query and speaks of items by their number. Scores of a choice model are
known up to a shift, so they are measured from the mean of the *core*, the largest group of items among which wins lead
from each to each (from the mean of all items where no two are so linked). Outside it the likelihood has no maximum: an
item that never lost could be arbitrarily strong. Such scores are held by the prior alone, their intervals are open on
that side, and their errors are those of the prior.
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
MOST_ITEMS = 5_000  # a matrix of so many items squared is inverted
NEAR = 1e-9  # scores nearer than this are equal
STILL = 1e-9  # share of Fisher's variance below which votes that do not vary say nothing of the error
DRAWS = 4_000  # of the normal law
STRATA = 200  # equal shares of the chi-square law that Student's is drawn with
LEAST = 0.05  # degrees of freedom up to which an error is as good as unknown
LOST = 1e13  # condition of the second derivatives from which errors have fewer than three digits
L2 = BradleyTerry.l2  # the prior that the method has


@dataclass(frozen=True, eq=False)
class Estimate:
    """The contests of one query, their solution, and what it leaves open."""

    contests: Contests
    solution: ContestSolution
    scores: F8  # by item, mean 0 at the origin
    core: B1  # none where no two items are linked by wins in both directions
    above: B1  # outside the core: no votes bound the score from above
    below: B1  # ... from below

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def prior_only(self) -> B1:
        """Items that only the prior holds."""
        return ~self.core

    @property
    def origin(self) -> B1:
        """Items from whose mean scores are measured: the core, or all items where there is none."""
        return self.core if self.core.any() else ~self.core

    @functools.cached_property
    def inverse_hessian(self) -> F8:
        """Of the second derivatives, prior included: the covariance of Fisher and Laplace, with the level in it."""
        if len(self) > MOST_ITEMS:
            raise ParameterError(
                f"{len(self):,} items are too many for intervals, which need a table of all pairs of at most "
                f"{MOST_ITEMS:,}; leave out the items with few votes"
            )
        second = choice.compute_hessian(self.contests, self.solution, 0).toarray()
        with contextlib.suppress(np.linalg.LinAlgError):
            found = np.asarray(np.linalg.inv(second), np.float64)
            if np.linalg.norm(second, 1) * np.linalg.norm(found, 1) < LOST:
                return found
        raise InputError(
            f"the votes of an item weigh {np.abs(second).max():.3g} together, too much beside the prior",
            remedy="give smaller weights, or a larger l2",
        )

    @functools.cached_property
    def order(self) -> I8:
        """Items, best first; equal scores by number."""
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
    """The most likely scores of the contests of one query (see `podium.kernels.contest_scores.fit_contests`)."""
    found = choice.fit_contests(contests, model=model, ties=ties, l2=l2, start=start, tolerance=tolerance)
    counted = contests._replace(tied=np.zeros_like(contests.tied)) if ties == "ignore" else contests
    core, above, below = _find_bounds(counted, found.scores)
    origin = core if core.any() else ~core
    scores = found.scores - (found.scores[origin].mean() if len(origin) else 0.0)
    return Estimate(contests, found, scores, core, above, below)


def _find_bounds(contests: Contests, scores: F8) -> tuple[B1, B1, B1]:
    """The core, and the items that no chain of wins from it reaches, or that reach it by none.

    Where no two items are linked in both directions there is no core: who beat somebody has no bound above, who lost
    none below, and groups that never met have none at all.
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
    for mark, ends in ((beaten, (over, under)), (beats, (under, over))):
        graph = csr_array((np.ones(len(over), np.int8), ends), shape=(size, size))
        mark[breadth_first_order(graph, root, return_predecessors=False)] = True
    return parts.strong == root, ~beaten, ~beats


def _find_core(contests: Contests, strong: I8, scores: F8) -> int | None:
    """The label of the largest group; of several, that with the most votes, then the best: names must not decide."""
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
    """The covariance of scores less their mean over some items."""
    mean = matrix[:, of].mean(axis=1)
    return np.asarray(matrix - mean - mean[:, None] + mean[of].mean(), np.float64)


def compute_covariance(
    e: Estimate,
    errors: ErrorKind = "sandwich",
    clusters: Clusters | None = None,
    squares: Squares | None = None,
) -> F8:
    """Covariance of the scores less the mean of the origin.

    `fisher` trusts the model: the inverse of the observed information (with the prior). `sandwich` sees how much single
    votes, or whole `clusters` of them, differ from what the model expects; it is honest when votes of one expert hang
    together, and when ties count as half a win. Where a weight is not a number of votes, `squares` are the sums of
    their squares by pair. Scores that only the prior holds, and those whose votes do not differ at all (nothing but
    ties), have Fisher's errors.
    """
    c, size = e.contests, len(e)
    own = e.inverse_hessian[:size]
    half = own - own[e.origin].mean(axis=0)  # first: the level, squared, would drown the rest
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
    """Scores (less the mean of the origin) from votes or clusters drawn with replacement, a row for every round.

    What only the prior holds does not vary among drawn votes, nor do votes that are all ties; such scores get Fisher's
    spread.
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
    if other.any():
        spread = np.sqrt(np.maximum(held - varied, 0.0))[other]
        scores[:, other] += np.random.default_rng([seed, 1]).normal(size=(rounds, len(spread))) * spread
    return scores


def sample_scores(
    scores: F8, matrix: F8, *, draws: int = DRAWS, seed: int = 0, degrees: F8 | None = None
) -> F8:
    """Scores drawn from the normal law with that covariance, or from Student's with these `degrees` of freedom."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(draws, len(scores))) @ root.T
    if degrees is not None and np.isfinite(degrees).any():
        from scipy.special import gammaincinv

        # one share per draw, so that items with the same degrees of freedom have the same factor
        few = np.clip(degrees, LEAST, 1e6) / 2
        quantiles = np.sqrt(gammaincinv(few, (np.arange(STRATA)[:, None] + 0.5) / STRATA) / few)
        drawn /= quantiles[random.integers(0, STRATA, draws)]
    return np.asarray(scores + drawn, np.float64)


def student_critical_values(critical: float, degrees: F8) -> F8:
    """What a critical value of the normal law becomes with few degrees of freedom; infinite where there are none."""
    from scipy.special import ndtr, stdtrit

    known = np.maximum(degrees, LEAST)
    return np.where(
        degrees > LEAST, np.where(np.isinf(known), critical, stdtrit(known, ndtr(critical))), np.inf
    )


def critical_value(level: float, matrix: F8 | None = None, *, seed: int = 0) -> float:
    """Standard errors to either side of an interval at this level; with a covariance matrix, of all at once."""
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
    """Holm-adjusted p-values of all differences being 0, two-sided; 1 on the diagonal.

    They are z-tests or, with `degrees` of freedom by item, t-tests, each with those of the item that has fewer.
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
    """Best and worst rank of every item: only items told apart by the tests are surely above or below.

    With Holm's correction all these intervals hold at once at the level.
    """
    told = p <= 1 - level
    over = scores[:, None] > scores
    better, worse = (told & over.T).sum(axis=1), (told & over).sum(axis=1)
    return 1 + better, len(scores) - worse


def rank_draws(draws: F8) -> I8:
    """Ranks 1.. within every row."""
    return np.asarray(np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1) + 1, np.int64)


def top_share(draws: F8, k: int) -> F8:
    """By item, the share of rows in which it is among the best k."""
    return np.asarray((rank_draws(draws) <= k).mean(axis=0), np.float64)


def find_tied_groups(order: I8, p: F8, level: float = 0.95) -> list[list[int]]:
    """Longest runs of neighbours in the order in which no two items are told apart; they may overlap.

    >>> p = np.ones((3, 3)); p[0, 2] = p[2, 0] = 0.001
    >>> find_tied_groups(np.array([0, 1, 2]), p)
    [[0, 1], [1, 2]]
    """
    told = p[np.ix_(order, order)] <= 1 - level
    runs: list[list[int]] = []
    reach = 0
    for begin in range(len(order)):
        end = max(begin + 1, reach)
        while end < len(order) and not told[begin:end, end].any():
            end += 1
        if end > reach:
            runs.append(order[begin:end].tolist())
        reach = max(reach, end)
    return runs


class Flip(NamedTuple):
    """So many more votes for the challenger against the leader would put it ahead."""

    votes: int
    leader: int
    challenger: int


def votes_to_flip(e: Estimate, most: int = 1 << 40) -> Flip | None:
    """The smallest number of extra votes of the runner-up over the leader after which it scores higher.

    All are wins of the second in the order over the first, each of weight 1, and all scores are fitted again. Every
    such vote moves the two towards each other, so a search by halves finds the number; None with fewer than two items,
    or when `most` votes do not suffice.
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
    """The contests of one query with more votes for one item over another."""
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
