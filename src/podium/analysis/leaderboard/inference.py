"""Uncertainty of scores from contests: standard errors, intervals, tests of all pairs, and ranks.

Errors are measured from the gradients of the votes. Clusters of votes are few and of unequal size, and the
scores were fitted to them, so the gradient of a cluster at the fitted scores is biased toward 0. It is
therefore divided by the square root of one minus its leverage on each item (the CR2 correction, with the
share of the item's votes as leverage). The measured variance of an item counts as coming from the effective
number of clusters that voted on it (one over the sum of the squared shares).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from podium.analysis.leaderboard.score_estimate import NEAR, Estimate, estimate_scores
from podium.core.errors import ParameterError
from podium.evaluate.significance import holm
from podium.kernels import bootstrap as drawing
from podium.kernels import contest_scores as choice
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.contest_models import compute_terms
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import (
    gamma_quantile,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)
from podium.kernels.sparse_rows import SparseRows

__all__ = [
    "NEAR",
    "ErrorKind",
    "Estimate",
    "bootstrap_scores",
    "center_covariance",
    "compute_cluster_gradients",
    "compute_covariance",
    "compute_dispersion",
    "compute_vote_slopes",
    "count_effective_clusters",
    "critical_value",
    "estimate_scores",
    "find_tied_groups",
    "pairwise_p",
    "rank_bounds",
    "rank_draws",
    "sample_scores",
    "student_critical_values",
    "top_share",
]  # fmt: skip

ErrorKind = Literal["fisher", "sandwich"]
STILL = 1e-9  # below this share of Fisher's variance, votes are constant and carry no error estimate
DRAWS = 4_000  # draws from the normal distribution
STRATA = 200  # strata of the chi-square distribution behind Student's t draws
LEAST = 0.25  # with at most this many degrees of freedom, the error is practically unknown


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
        fisher = half @ choice.compute_hessian(met, e.solution, 0).multiply(half.T)
    if errors == "fisher":
        return fisher
    if errors != "sandwich":
        raise ParameterError(f"errors is {errors!r}; accepted: fisher, sandwich")
    if clusters is None:
        # single votes: all votes of a pair with one outcome have the same gradient, times their weight
        pair, meat = np.arange(len(c.first)), np.zeros((len(e.inverse_hessian),) * 2)
        for slopes, square in zip(
            _compute_outcome_slopes(e, pair), squares or (c.won, c.lost, c.tied), strict=True
        ):
            g = _build_gradients(e, *slopes, pair, pair)
            meat += g.multiply_columns(right=g.values * square[g.rows])
    else:
        g = compute_cluster_gradients(e, clusters)
        left = 1 - _compute_vote_shares(e, clusters).values
        # 0 if one cluster has all votes of an item: then its leverage cannot be corrected
        corrected = g.values / np.sqrt(np.where(left > 0, left, 1.0))
        meat = g.multiply_columns(corrected, corrected)
    robust: F8 = half @ meat @ half.T
    other = ~e.core | (robust.diagonal() <= STILL * fisher.diagonal())
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
    other = ~e.core | (varied <= STILL * held)
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
        # one stratum per draw, so that items with the same degrees of freedom have the same factor
        few = np.clip(degrees, LEAST, 1e6) / 2
        quantiles = np.sqrt(gamma_quantile(few, (np.arange(STRATA)[:, None] + 0.5) / STRATA) / few)
        drawn /= quantiles[random.integers(0, STRATA, draws)]
    return np.asarray(scores + drawn, np.float64)


def student_critical_values(critical: float, degrees: F8) -> F8:
    """Critical value of the normal distribution adjusted for `degrees` of freedom; infinite if too few."""
    known = np.maximum(degrees, LEAST)
    return np.where(
        degrees > LEAST,
        np.where(np.isinf(known), critical, student_quantile(known, normal_cdf(critical))),
        np.inf,
    )


def critical_value(level: float, matrix: F8 | None = None, *, seed: int = 0) -> float:
    """Half-width of an interval in standard errors; with a covariance matrix, for all intervals at once."""
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    if matrix is None:
        return float(normal_quantile((1 + level) / 2))
    errors = np.sqrt(matrix.diagonal())
    some = errors > 0
    drawn = sample_scores(np.zeros(len(matrix)), matrix, seed=seed)[:, some] / errors[some]
    return float(np.quantile(np.abs(drawn).max(axis=1, initial=0.0), level))


def pairwise_p(scores: F8, matrix: F8, degrees: F8 | None = None) -> F8:
    """Holm-adjusted two-sided p-values of all differences being 0; 1 on the diagonal.

    z-tests or, with `degrees` of freedom by item, t-tests, each with the smaller degrees of its two items.
    """
    size = len(scores)
    a, b = np.triu_indices(size, 1)
    spread = np.sqrt(np.maximum(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b], 0.0))
    gap = np.abs(scores[a] - scores[b])
    z = np.divide(gap, spread, out=np.where(gap > NEAR, np.inf, 0.0), where=spread > 0)
    tail = normal_cdf(-z)
    if degrees is not None and np.isfinite(degrees).any():
        fewer = np.minimum(degrees[a], degrees[b])
        few = np.flatnonzero(np.isfinite(fewer))
        tail[few] = np.where(fewer[few] > LEAST, student_cdf(np.maximum(fewer[few], LEAST), -z[few]), 0.5)
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


# -- gradients of the votes ------------------------------------------------------------------------------------


def compute_cluster_gradients(e: Estimate, clusters: Clusters) -> SparseRows:
    """Clusters x unknowns: what the votes of each cluster add to the gradient of the negative log likelihood."""
    slopes = _compute_slopes(e, *clusters[2:], clusters.pair)
    return _build_gradients(e, *slopes, clusters.pair, _cluster_of_row(clusters))


def compute_vote_slopes(e: Estimate) -> tuple[F8, F8, F8]:
    """By pair: derivative of the negative log likelihood of a vote for first, for second and for neither."""
    first, second, neither = (
        slopes[0] for slopes in _compute_outcome_slopes(e, np.arange(len(e.contests.first)))
    )
    return first, second, neither


def count_effective_clusters(e: Estimate, clusters: Clusters) -> F8:
    """Effective number of clusters per item: one over the sum of squared shares of its votes."""
    share = _compute_vote_shares(e, clusters)
    squared = np.bincount(share.columns, weights=share.values**2, minlength=len(e))[: len(e)]
    return np.asarray(1 / np.maximum(squared, 1e-300), np.float64)


def compute_dispersion(
    e: Estimate, pair: I8, cluster: I8, sums: tuple[F8, F8, F8], squares: Squares, unit: I8 | None = None
) -> float:
    """How much more the votes of a cluster vary together than independent votes: 1 if they are independent.

    The mean over the core items of the squared cluster gradients, divided by what is expected from single
    votes (or from the `unit` of each row). Scores are fitted, so the expectation is reduced by the leverage.
    """
    d = _compute_slopes(e, *sums, pair)[0]
    together = _build_matrix(e, (d, -d), pair, cluster)
    if unit is None:
        slopes = np.array([slope for slope, _ in _compute_outcome_slopes(e, pair)])
        columns = (np.array(squares) * slopes**2, np.array(sums), np.array(squares))
        apart, total, square = (
            _build_matrix(e, (by_row, by_row), pair, cluster).values
            for by_row in (c.sum(axis=0) for c in columns)
        )
        votes = total**2 / square
    else:
        # per cluster and item that meet: sum of the squared gradients of its units, and their number
        alone = _build_matrix(e, (d, -d), pair, unit)
        of_unit = np.zeros(alone.height, np.int64)
        of_unit[unit] = cluster
        place, shape = (of_unit[alone.rows], alone.columns), (int(cluster.max(initial=0)) + 1, len(e))
        squared, ones = alone.values**2, np.ones(len(alone.values))
        apart, votes = (SparseRows.from_entries(c, *place, shape).values for c in (squared, ones))
    item = together.columns
    by_item = np.bincount(item, weights=apart, minlength=len(e))
    counted = e.core[item] & (by_item[item] > 0)
    own, item, votes = apart[counted], item[counted], votes[counted]
    expected = own * (1 - own / by_item[item] * (1 - 1 / votes))
    seen = float((together.values[counted] ** 2 / by_item[item]).sum())
    wanted = float((expected / by_item[item]).sum())
    return seen / wanted if wanted > 0 else 1.0


def _compute_outcome_slopes(e: Estimate, pair: I8) -> list[tuple[F8, F8]]:
    """Per row: slopes of one vote for first, for second and for neither."""
    one, none = np.ones(len(pair)), np.zeros(len(pair))
    counts = (one, none, none), (none, one, none), (none, none, one)
    return [_compute_slopes(e, won, lost, tied, pair) for won, lost, tied in counts]


def _compute_slopes(e: Estimate, won: F8, lost: F8, tied: F8, pair: I8) -> tuple[F8, F8]:
    """Per row: derivatives of the negative log likelihood by the difference, and by the width of ties."""
    c, s = e.contests, e.solution
    problem = choice.build_query_problem(c, 0, s.model, s.component)
    gap = (s.scores[c.first] - s.scores[c.second])[pair]
    if c.side is not None:
        gap = gap + c.side[pair] * s.extra["advantage"][0]
    width = float(s.extra["width"][0]) if problem.widths else 0.0
    half = tied / 2 if s.model.half else 0.0
    terms = compute_terms(problem.model.kind, gap, width, won + half, lost + half, tied)
    return terms.d, terms.e


def _build_gradients(e: Estimate, d: F8, width: F8, pair: I8, row: I8) -> SparseRows:
    """Rows x unknowns, as a sparse matrix: contribution of each row's votes to the gradient."""
    side = e.contests.side
    return _build_matrix(e, (d, -d, width, d if side is None else d * side[pair]), pair, row)


def _compute_vote_shares(e: Estimate, clusters: Clusters) -> SparseRows:
    """Clusters x unknowns, laid out like their gradients: the cluster's share of each item's votes."""
    total = clusters.won + clusters.lost + clusters.tied
    votes = _build_matrix(e, (total,) * 4, clusters.pair, _cluster_of_row(clusters))
    by_column = np.bincount(votes.columns, weights=votes.values)
    return votes._replace(values=votes.values / by_column[votes.columns])


def _build_matrix(e: Estimate, values: tuple[F8, ...], pair: I8, row: I8) -> SparseRows:
    """Rows x items, as a sparse matrix, from values of first and second.

    With values of the width of ties and the advantage too: rows x unknowns, as far as the model has these.
    """
    c, columns, size = e.contests, len(e), len(pair)
    parts = [(values[0], c.first[pair]), (values[1], c.second[pair])]
    if len(values) > 2:
        columns = len(e.inverse_hessian)
        if columns > len(e) + (c.side is not None):
            parts.append((values[2], np.full(size, len(e))))
        if c.side is not None:
            parts.append((values[3], np.full(size, columns - 1)))
    data, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    shape = int(row.max(initial=0)) + 1, columns
    return SparseRows.from_entries(data, np.tile(row, len(parts)), column, shape)


def _cluster_of_row(clusters: Clusters) -> I8:
    return np.repeat(np.arange(len(clusters.starts) - 1), np.diff(clusters.starts))
