"""Many features of the experts' preferences about an item, kept separate by expert.

A feature is a table (slot, expert). Sums of features over the experts, standardized per query, are the
consensus columns; because they are sums, each expert's contribution to them is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.errors import Option
from podium.data.index import ItemIndex
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.preference_svd import sum_rows_and_columns
from podium.methods.learned import expert_matrices
from podium.methods.learned.svd_features import build_svd_columns, check_table_size

__all__ = ["ExpertFeatures", "build_expert_features", "standardize_by_query"]

TABLES = 24  # tables by (slot, expert) that the features and their columns need at once
STEEP = 5.0  # 1 / (5 + rank): a reciprocal rank that emphasizes the top


class ExpertFeatures(NamedTuple):
    """Tables by (slot, expert), all of one shape; and those whose sums over the experts are a consensus."""

    own: list[F8]
    shared: list[F8]
    spread: list[F8]  # statistics over the experts, by slot; for nonlinear learners

    def compute_consensus(self, index: ItemIndex) -> F8:
        """The consensus columns, standardized per query."""
        return standardize_by_query(index, np.stack([table.sum(axis=1) for table in self.shared], axis=1))[0]


def standardize_by_query(index: ItemIndex, values: F8) -> tuple[F8, F8, F8]:
    """Values with mean 0 and standard deviation 1 per query (constant ones: 0); both statistics by slot.

    Values that differ by less than 1e-9 of the largest value in the query, or of 1, count as constant: sums
    over the experts can cancel to rounding error. (For item features, which are not sums, see
    `normalize_by_query`.)
    """
    query, n = index.query_of_slot, np.maximum(index.sizes, 1)[:, None]
    mean = np.stack([np.bincount(query, weights=c, minlength=len(index)) for c in values.T], axis=1) / n
    off = values - mean[query]
    square = (
        np.stack([np.bincount(query, weights=c, minlength=len(index)) for c in (off * off).T], axis=1) / n
    )
    size, filled = np.ones(square.shape), np.flatnonzero(index.sizes)
    size[filled] = np.maximum(1.0, np.maximum.reduceat(np.abs(values), index.starts[filled], axis=0))
    spread = np.sqrt(square)
    spread = np.where(spread > 1e-9 * size, spread, np.inf)[query]
    return off / spread, mean[query], spread


def build_expert_features(preferences: Preferences, groups: I8, n: int, depth: float) -> ExpertFeatures:
    """All features; `groups` numbers each expert (-1: excluded) and `depth` is the rank that scores 0."""
    lists, index = preferences.lists, preferences.index
    check_table_size(
        preferences, n * TABLES, ("use crf, or svd with ", Option("matrices", "hybrid", of="method"))
    )
    size = np.maximum(index.sizes, 1)[index.query_of_slot][:, None]
    expert = groups[lists.expert][lists.list_of_row]
    rows = np.flatnonzero(expert >= 0)

    def fill_table(values: F8) -> F8:
        table = np.zeros((len(index.items), n))
        table[lists.item[rows], expert[rows]] = values[rows]
        return table

    rank = lists.rank.astype(np.float64)
    length = lists.lengths[lists.list_of_row]
    place = segments.fractional_ranks(lists.starts, lists.rank)
    vectors = build_svd_columns(preferences, "log", groups, n, scaled=True).values
    steep, high = (
        fill_table(1 / (STEEP + rank)),
        fill_table(np.maximum(0.0, 1 - np.log(rank) / np.log(depth + 1))),
    )
    within = fill_table(1 - (place - 1) / np.maximum(length, 1))
    wins, losses = _sum_matrices(preferences, groups, n, "log")
    more, fewer = _sum_matrices(preferences, groups, n, "binary")
    listed = 1.0 - vectors[:, 2 * n :]
    own = [
        vectors[:, :n],
        vectors[:, n : 2 * n],
        1 - listed,
        wins / size,
        losses / size,
        (1 + STEEP) * steep,
        high,
        within,
    ]
    shared = [fill_table(1 / (60 + rank)), steep, wins - losses, more - fewer, listed, within]
    return ExpertFeatures(own, shared, _compute_statistics(high, listed))


def _sum_matrices(
    preferences: Preferences, groups: I8, n: int, transform: expert_matrices.Transform
) -> tuple[F8, F8]:
    """Row and column sums of every expert's matrix: its support for an item, and against it."""
    grouped = expert_matrices.build_expert_matrices(preferences, transform, groups)
    up, down = sum_rows_and_columns(grouped.matrices)
    return expert_matrices.build_group_table(grouped, up, n), expert_matrices.build_group_table(
        grouped, down, n
    )


def _compute_statistics(high: F8, listed: F8) -> list[F8]:
    """The best few of the experts' values, their median, mean and deviation, regardless of the expert."""
    best = -np.sort(-high, axis=1)
    picked = [best[:, min(k, best.shape[1] - 1)] for k in (0, 1, 2, 4, 7)]
    count = np.maximum(listed.sum(axis=1), 1)
    mean = high.sum(axis=1) / count
    deviation = np.sqrt(np.maximum((high * high).sum(axis=1) / count - mean * mean, 0.0))
    return [*picked, np.median(high, axis=1), mean, deviation]
