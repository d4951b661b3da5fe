"""Singular value projection of skew-symmetric matrices: complete the missing cells to rank two.

Y(i, j) = -Y(j, i) is the strength with which i is preferred to j, and `known` marks cells with data. Scores s
give the matrix s 1' - 1 s', of rank two. From X = 0, the known cells of Y with the others taken from X are
repeatedly projected onto rank two (Jain, Meka & Dhillon, NIPS 2010; Gleich & Lim, KDD 2011). Few known cells
leave much undetermined, so the cells taken from X are shrunk by a factor: X then minimizes the squared
distance to the known cells plus `shrink` times the squares of its other cells. Where it lowers this
objective, a matrix is extrapolated from the last three (Varadhan & Roland, Scandinavian Journal of Statistics
2008). The leading plane is computed by power iteration from the row sums: of several leading planes the one
nearest to them results, independent of ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import matrix_completion as core
from podium.kernels.dispatch import F8, I8, run_in_threads
from podium.kernels.pairwise_votes import Votes, compute_pair_work

__all__ = ["COMBINE", "CompletionResult", "DifferenceRule", "build_differences", "complete_matrices"]

COMBINE = ("sum", "mean", "log_odds")
WORK = 200  # passes over its matrix per query, for scheduling


class DifferenceRule(NamedTuple):
    """How the strength with which a list prefers one item to another is measured."""

    value: F8  # position of each row on its list's scale; the difference is the strength
    bottom: F8  # by list: the position of unlisted items, or infinity where strengths against them are 1
    binary: bool  # strengths are 1
    combine: int  # index into COMBINE
    unit: float  # of the weights


class CompletionResult(NamedTuple):
    """Row means of the completed matrices by slot, and by query how they were computed."""

    score: F8
    steps: I8  # projections
    change: F8  # relative change by one more projection
    error: F8  # the minimized objective
    norm: F8  # squared norm of the known cells


def complete_matrices(
    votes: Votes, how: DifferenceRule, shrink: float, tolerance: float, most_steps: int
) -> CompletionResult:
    """Complete the matrix of every query; returns its row means."""
    queries = len(votes.slots) - 1
    found = CompletionResult(
        np.zeros(int(votes.slots[-1])),
        np.zeros(queries, np.int64),
        *(np.zeros(queries) for _ in range(3)),
    )
    work = WORK * compute_pair_work(votes)
    run_in_threads(core.complete_matrices, work, votes, *how, float(shrink), tolerance, most_steps, *found)
    return found


def build_differences(votes: Votes, how: DifferenceRule, query: int) -> tuple[F8, F8]:
    """Y of one query, and 1 where it is known."""
    table, known = core.build_differences(votes, query, *how)
    return table, known
