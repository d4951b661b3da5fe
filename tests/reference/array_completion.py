"""Completion of skew matrices as numpy expressions of the matrix of one query."""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.matrix_completion import COMBINE

# accuracy of the plane relative to the last change, and the maximum number of iterations
INNER, MOST_TURNS = (1e-2, 500)
FINEST = 1e-28  # change of the plane (squared sine) that is rounding
NOTHING = 1e-14  # fraction of the largest row sum below which sums count as zero


def build_differences(votes, how, query):
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


def _gaps(value, bottom):
    return np.ones_like(value) if np.isinf(bottom) else bottom - value


def _combine_votes(net, heard, combine):
    if COMBINE[combine] == "mean":
        return net / np.where(heard > 0, heard, 1.0)
    return (
        np.asarray(np.log((heard + net + 2) / (heard - net + 2))) if COMBINE[combine] == "log_odds" else net
    )


class CompletionProblem:
    """The matrix of one query, its current leading plane, and the objective."""

    def __init__(self, table: F8, known: F8, shrink: float) -> None:
        self.table, self.known = table, known
        self.keep, self.cost = (1 - shrink) * (1 - known), known + shrink * (1 - known)
        self.error = float((table**2).sum())

    def solve(self, tolerance: float, most_steps: int) -> tuple[F8, int, float]:
        """Row means, number of projections (more than allowed: not converged), and the last change."""
        plane = find_start_plane(self.table)
        if plane is None:
            return np.zeros(len(self.table)), 0, 0.0
        x, plane = project_rank_two(self.table, plane, FINEST)
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
        return project_rank_two(self.table + self.keep * x, plane, (INNER * change) ** 2)

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


def find_start_plane(table: F8) -> F8 | None:
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


def project_rank_two(table: F8, plane: F8, tolerance: float) -> tuple[F8, F8]:
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
