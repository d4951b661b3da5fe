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

from podium.kernels.dispatch import F8, I8, run_in_threads
from podium.kernels.pairwise_votes import Votes, compute_pair_work, is_large_pair_work

__all__ = ["COMBINE", "CompletionResult", "DifferenceRule", "build_differences", "complete_matrices"]

COMBINE = ("sum", "mean", "log_odds")
# accuracy of the plane relative to the last change, and the maximum number of iterations
INNER, MOST_TURNS = (1e-2, 500)
FINEST = 1e-28  # change of the plane (squared sine) that is rounding
NOTHING = 1e-14  # fraction of the largest row sum below which sums count as zero
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
    if is_large_pair_work(work):
        from podium.kernels.compiled.matrix_completion import complete_matrices as kernel

        run_in_threads(kernel, work, votes, *how, shrink, tolerance, most_steps, *found)
        return found
    for q in np.flatnonzero(np.diff(votes.slots) > 1).tolist():
        table, known = build_differences(votes, how, q)
        at = slice(int(votes.slots[q]), int(votes.slots[q + 1]))
        problem = _CompletionProblem(table, known, shrink)
        found.score[at], found.steps[q], found.change[q] = problem.solve(tolerance, most_steps)
        found.error[q], found.norm[q] = problem.error, (table**2).sum()
    return found


def build_differences(votes: Votes, how: DifferenceRule, query: int) -> tuple[F8, F8]:
    """Y of one query, and 1 where it is known."""
    base, size = int(votes.slots[query]), int(votes.slots[query + 1] - votes.slots[query])
    net, heard = np.zeros((size, size)), np.zeros((size, size))
    for lst in range(int(votes.query_starts[query]), int(votes.query_starts[query + 1])):
        rows, weight = slice(int(votes.starts[lst]), int(votes.starts[lst + 1])), votes.list_weight[lst]
        held, value = votes.item[rows].astype(np.int64) - base, how.value[rows]
        over = value - value[:, None]
        net[held[:, None], held] += weight * (np.sign(over) if how.binary else over)
        heard[held[:, None], held] += weight
        if votes.below and len(held):
            rest = np.setdiff1d(np.arange(size), held)
            gap = np.broadcast_to(_gaps(value, how.bottom[lst])[:, None], (len(held), len(rest)))
            net[held[:, None], rest] += weight * gap
            net[rest[:, None], held] -= weight * gap.T
            heard[held[:, None], rest] += weight
            heard[rest[:, None], held] += weight
    votes_on = slice(*votes.vote_starts[query : query + 2].tolist())
    won, lost = (side[votes_on].astype(np.int64) - base for side in (votes.winner, votes.loser))
    weight = votes.vote_weight[votes_on]
    for a, b, sign in ((won, lost, 1.0), (lost, won, -1.0)):
        np.add.at(net, (a, b), np.where(votes.tie[votes_on], 0.0, sign * weight))
        np.add.at(heard, (a, b), weight)
    np.fill_diagonal(heard, 0.0)
    return _combine_votes(net * how.unit, heard * how.unit, how.combine), (heard > 0).astype(np.float64)


def _gaps(value: F8, bottom: float) -> F8:
    return np.ones_like(value) if np.isinf(bottom) else bottom - value


def _combine_votes(net: F8, heard: F8, combine: int) -> F8:
    if COMBINE[combine] == "mean":
        return net / np.where(heard > 0, heard, 1.0)
    return (
        np.asarray(np.log((heard + net + 2) / (heard - net + 2))) if COMBINE[combine] == "log_odds" else net
    )


class _CompletionProblem:
    """The matrix of one query, its current leading plane, and the objective."""

    def __init__(self, table: F8, known: F8, shrink: float) -> None:
        self.table, self.known = table, known
        self.keep, self.cost = (1 - shrink) * (1 - known), known + shrink * (1 - known)
        self.error = float((table**2).sum())

    def solve(self, tolerance: float, most_steps: int) -> tuple[F8, int, float]:
        """Row means, number of projections (more than allowed: not converged), and the last change."""
        plane = _find_start_plane(self.table)
        if plane is None:
            return np.zeros(len(self.table)), 0, 0.0
        x, plane = _project_rank_two(self.table, plane, FINEST)
        steps, change = 1, 1.0
        while steps < most_steps:
            y, plane = self.project_filled(x, plane, change)
            change = float(np.linalg.norm(y - x) / np.linalg.norm(y))
            steps += 1
            if change <= tolerance:
                self.error = self.compute_misfit(y)
                return y.mean(axis=1), steps, change
            x, plane, more = self.extrapolate_step(x, y, plane, change)
            steps += more
        self.error = self.compute_misfit(x)
        return x.mean(axis=1), most_steps + 1, change

    def project_filled(self, x: F8, plane: F8, change: float) -> tuple[F8, F8]:
        """Fill in and project."""
        return _project_rank_two(self.table + self.keep * x, plane, (INNER * change) ** 2)

    def extrapolate_step(self, x: F8, y: F8, plane: F8, change: float) -> tuple[F8, F8, int]:
        """One more step from y, and one from the extrapolation of the three, if that is better."""
        z, plane = self.project_filled(y, plane, change)
        far = _extrapolate_matrices(x, y, z)
        if far is None:
            return z, plane, 1
        new, turned = self.project_filled(far, plane, change)
        return (new, turned, 2) if self.compute_misfit(new) <= self.compute_misfit(z) else (z, plane, 2)

    def compute_misfit(self, x: F8) -> float:
        """The minimized objective."""
        return float((self.cost * (x - self.table) ** 2).sum())


def _find_start_plane(table: F8) -> F8 | None:
    """A plane through the row sums; None when they are all zero."""
    sums = table.sum(axis=1)
    if np.abs(sums).max() <= NOTHING * np.abs(table).sum(axis=1).max():
        return None
    return _orthonormalize(np.stack((sums, table @ sums), axis=1))


def _orthonormalize(vectors: F8) -> F8:
    """Two orthonormal vectors with the same span."""
    u, v = vectors.T
    u = u / np.linalg.norm(u)
    v = v - (u @ v) * u
    v = v - (u @ v) * u
    return np.stack((u, v / np.linalg.norm(v)), axis=1)


def _project_rank_two(table: F8, plane: F8, tolerance: float) -> tuple[F8, F8]:
    """The nearest skew-symmetric matrix of rank two, and its plane, by power iteration from `plane`."""
    for _ in range(MOST_TURNS):
        new = _orthonormalize(table @ plane)
        off = new - plane @ (plane.T @ new)
        plane = new
        if (off**2).sum() <= max(tolerance, FINEST):
            break
    u, v = plane.T
    return (u @ table @ v) * (np.outer(u, v) - np.outer(v, u)), plane


def _extrapolate_matrices(x: F8, y: F8, z: F8) -> F8 | None:
    """Extrapolate three consecutive matrices; None where that leads no further than the third."""
    first, bend = y - x, z - 2 * y + x
    length = np.linalg.norm(bend)
    stride = float(np.linalg.norm(first) / length) if length > 0 else 1.0
    return x + 2 * stride * first + stride**2 * bend if stride > 1 else None
