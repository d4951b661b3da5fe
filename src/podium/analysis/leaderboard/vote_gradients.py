"""Gradients of a choice model by vote and by cluster of votes, and their variation.

Clusters are few and of unequal size, and the scores were fitted to them, so the gradient of a cluster at the
fitted scores is biased toward 0. It is therefore divided by the square root of one minus its leverage on each
item (the CR2 correction, with the share of the item's votes as leverage). The measured variance of an item
counts as coming from the effective number of clusters that voted on it (one over the sum of the squared
shares).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.kernels import contest_scores as choice
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.contest_models import compute_terms
from podium.kernels.dispatch import F8, I8

if TYPE_CHECKING:
    from podium.analysis.leaderboard.inference import Estimate

__all__ = ["compute_cluster_meat", "compute_dispersion", "compute_vote_meat", "count_effective_clusters"]


def compute_vote_meat(e: Estimate, squares: Squares) -> F8:
    """Single votes: all votes of a pair with one outcome have the same gradient, times their weight."""
    pair = np.arange(len(e.contests.first))
    total = np.zeros((len(e.inverse_hessian),) * 2)
    for slopes, square in zip(_outcome_slopes(e, pair), squares, strict=True):
        g = _build_gradients(e, *slopes, pair, pair, len(pair))
        total += (g.T @ (g * square[:, None])).toarray()
    return total


def compute_cluster_meat(e: Estimate, clusters: Clusters) -> F8:
    """Whole clusters, each corrected for its leverage."""
    which, count = _cluster_of_row(clusters)
    g = _build_gradients(e, *_compute_slopes(e, *clusters[2:], clusters.pair), clusters.pair, which, count)
    share = _compute_vote_shares(e, clusters)
    left = 1 - share.data  # 0 if one cluster has all votes of an item: then no correction exists
    g.data /= np.sqrt(np.where(left > 0, left, 1.0))
    return np.asarray((g.T @ g).toarray(), np.float64)


def count_effective_clusters(e: Estimate, clusters: Clusters) -> F8:
    """Effective number of clusters per item: one over the sum of squared shares of its votes."""
    share = _compute_vote_shares(e, clusters)
    squared = np.bincount(share.indices, weights=share.data**2, minlength=len(e))[: len(e)]
    return np.asarray(1 / np.maximum(squared, 1e-300), np.float64)


def compute_dispersion(
    e: Estimate, pair: I8, cluster: I8, sums: tuple[F8, F8, F8], squares: Squares, unit: I8 | None = None
) -> float:
    """How much more the votes of a cluster vary together than independent votes: 1 if they are independent.

    The mean over the core items of the squared cluster gradients, divided by what is expected from single
    votes (or from the `unit` of each row). Scores are fitted, so the expectation is reduced by the leverage.
    """
    count = int(cluster.max(initial=0)) + 1
    d = _compute_slopes(e, *sums, pair)[0]
    together = _build_item_matrix(e, d, -d, pair, cluster, count)
    if unit is None:
        slopes = np.array([found[0] for found in _outcome_slopes(e, pair)])
        single, both = (np.array(squares) * slopes**2).sum(axis=0), (np.array(sums), np.array(squares))
        total, square = (
            _build_item_matrix(e, c, c, pair, cluster, count).data
            for c in (part.sum(axis=0) for part in both)
        )
        apart, votes = _build_item_matrix(e, single, single, pair, cluster, count), total**2 / square
    else:
        apart, votes = _square_by_unit(e, d, pair, cluster, unit, count)
    item = together.indices
    by_item = np.bincount(item, weights=apart.data, minlength=len(e))
    counted = e.core[item] & (by_item[item] > 0)
    own, item, votes = apart.data[counted], item[counted], votes[counted]
    expected = own * (1 - own / by_item[item] * (1 - 1 / votes))
    seen = float((together.data[counted] ** 2 / by_item[item]).sum())
    wanted = float((expected / by_item[item]).sum())
    return seen / wanted if wanted > 0 else 1.0


def _square_by_unit(e: Estimate, d: F8, pair: I8, cluster: I8, unit: I8, count: int) -> tuple[Any, F8]:
    """Per cluster and item: sum of the squared gradients of its units, and their number."""
    from scipy.sparse import csr_array

    units = int(unit.max(initial=0)) + 1
    alone = _build_item_matrix(e, d, -d, pair, unit, units)
    of_unit = np.zeros(units, np.int64)
    of_unit[unit] = cluster
    place = np.repeat(of_unit, np.diff(alone.indptr)), alone.indices
    shape = count, len(e)
    apart, votes = (csr_array((c, place), shape=shape) for c in (alone.data**2, np.ones(alone.nnz)))
    return apart, votes.data


def _outcome_slopes(e: Estimate, pair: I8) -> list[tuple[F8, F8]]:
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
    found = compute_terms(problem.model.kind, gap, width, won + half, lost + half, tied)
    return found.d, found.e


def _build_gradients(e: Estimate, d: F8, width: F8, pair: I8, row: I8, rows: int) -> Any:
    """Rows x unknowns, as a sparse matrix: contribution of each row's votes to the gradient."""
    side = e.contests.side
    return _build_unknowns_matrix(e, (d, -d, width, d if side is None else d * side[pair]), pair, row, rows)


def _compute_vote_shares(e: Estimate, clusters: Clusters) -> Any:
    """Clusters x unknowns, laid out like their gradients: the cluster's share of each item's votes."""
    which, count = _cluster_of_row(clusters)
    total = clusters.won + clusters.lost + clusters.tied
    votes = _build_unknowns_matrix(e, (total,) * 4, clusters.pair, which, count)
    votes.data /= np.bincount(votes.indices, weights=votes.data)[votes.indices]
    return votes


def _build_item_matrix(e: Estimate, of_first: F8, of_second: F8, pair: I8, row: I8, rows: int) -> Any:
    """Rows x items, as a sparse matrix."""
    from scipy.sparse import csr_array

    c = e.contests
    place = np.tile(row, 2), np.concatenate((c.first[pair], c.second[pair]))
    return csr_array((np.concatenate((of_first, of_second)), place), shape=(rows, len(e)))


def _build_unknowns_matrix(e: Estimate, values: tuple[F8, F8, F8, F8], pair: I8, row: I8, rows: int) -> Any:
    """Rows x unknowns, as a sparse matrix: values of first, second, the width of ties and the advantage."""
    from scipy.sparse import csr_array

    c, unknowns = e.contests, len(e.inverse_hessian)
    parts = [(values[0], c.first[pair]), (values[1], c.second[pair])]
    if unknowns > len(e) + (c.side is not None):
        parts.append((values[2], np.full(len(pair), len(e))))
    if c.side is not None:
        parts.append((values[3], np.full(len(pair), unknowns - 1)))
    data, columns = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return csr_array((data, (np.tile(row, len(parts)), columns)), shape=(rows, unknowns))


def _cluster_of_row(clusters: Clusters) -> tuple[I8, int]:
    count = len(clusters.starts) - 1
    return np.repeat(np.arange(count), np.diff(clusters.starts)), count
