"""Contests of long lists, without expanding them into pairs.

In the Bradley-Terry model with ties as half a win the likelihood needs two things from a list: how often each
item won and lost, and which pairs met. The latter is a sum over sets: N_ij, the weight of the contests
between i and j, sums the weights of the sets that hold both; a list is one set. Ignored ties are sets of
negative weight. Where unlisted items are below, N_ij = held_i + held_j minus the lists that hold both, where
held is the weight of the lists by item. Sums over pairs are then computed by `smooth_sums`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import segments, smooth_sums
from podium.kernels.contest_models import ContestProblem
from podium.kernels.contest_solvers import SparseNewton
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import Votes, count_items_above

__all__ = ["ListContests", "Listwise", "list_tallies", "sets_of"]


class ListContests(NamedTuple):
    """Which items met in the lists of one query, and which won; items count from 0."""

    starts: I8  # items of set s: starts[s] .. starts[s + 1]
    item: I8
    weight: F8  # by set
    held: F8 | None  # by item, where N also contains held_i + held_j
    net: F8  # by item: wins minus losses


def list_tallies(votes: Votes) -> tuple[F8, F8]:
    """Wins and losses of every slot in the lists of one query, ties half, in integer weights."""
    base, size = int(votes.slots[0]), int(votes.slots[1] - votes.slots[0])
    lengths = np.diff(votes.starts)
    above, upto = count_items_above(votes.starts, votes.rank)
    weight, length = np.repeat(votes.list_weight, lengths), np.repeat(lengths, lengths)
    ties = (upto - above - 1) / 2
    item = votes.item.astype(np.int64) - base
    beaten = (size if votes.below else length) - upto
    wins = np.bincount(item, weight * (beaten + ties), size).astype(np.float64)
    losses = np.bincount(item, weight * (above + ties), size).astype(np.float64)
    if votes.below:
        losses += (votes.list_weight * lengths).sum() - np.bincount(item, weight * length, size)
    return wins, losses


def sets_of(votes: Votes, unit: float, *, ties: bool) -> ListContests:
    """The lists of one query; `ties` determines whether equal ranks count (as half a win for each)."""
    base, size = int(votes.slots[0]), int(votes.slots[1] - votes.slots[0])
    lengths, item = np.diff(votes.starts), votes.item.astype(np.int64) - base
    sign = -1.0 if votes.below else 1.0
    # full rankings hold the same set of items, so one set with their total weight stands for all
    full = (lengths == size) & (votes.list_weight > 0)
    kept = ~full & (lengths > 1 - votes.below) & (votes.list_weight > 0)
    parts = [
        (
            np.full(int(full.any()), size),
            np.arange(size * int(full.any())),
            votes.list_weight[full].sum(keepdims=True),
        ),
        (lengths[kept], item[np.repeat(kept, lengths)], votes.list_weight[kept]),
    ]
    parts = [(length, members, sign * weight[: len(length)]) for length, members, weight in parts]
    if not ties:
        above, upto = count_items_above(votes.starts, votes.rank)
        block, row = upto - above, np.arange(len(item)) - np.repeat(votes.starts[:-1], lengths)
        tied = (block > 1) & np.repeat(votes.list_weight > 0, lengths)
        head = tied & (row == above)
        parts.append((block[head], item[tied], -np.repeat(votes.list_weight, lengths)[head]))
    length, members, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    held = None
    if votes.below:
        held = np.bincount(item, np.repeat(votes.list_weight * unit, lengths), size).astype(np.float64)
    wins, losses = list_tallies(votes)
    return ListContests(segments.offsets(length), members, weight * unit, held, (wins - losses) * unit)


def sum_pairs(lists: ListContests, kind: int, x: F8, mass: F8) -> F8:
    """By item i: the sum over all j (including i) of N_ij mass_j f(x_i - x_j)."""
    out = smooth_sums.within_sets(kind, lists.starts, lists.item, lists.weight, x, mass)
    if lists.held is not None:
        out += lists.held * smooth_sums.sums(kind, x, mass, x)
        out += smooth_sums.sums(kind, x, lists.held * mass, x)
    return out


class Listwise(SparseNewton):
    """Steps by conjugate gradients for lists together with the pairs of single comparisons."""

    def __init__(self, problem: ContestProblem, tolerance: float, lists: ListContests) -> None:
        super().__init__(problem, tolerance)
        self.lists, self.table = lists, False
        self.ones = np.ones(problem.size)
        members = np.diff(lists.starts)
        # `sum_pairs` also pairs each item with itself, which is no contest: subtracted below
        self.itself = np.bincount(lists.item, np.repeat(lists.weight, members), problem.size).astype(
            np.float64
        )
        if lists.held is not None:
            self.itself += 2 * lists.held

    def _sums(self, x: F8) -> tuple[F8, F8]:
        sums, corners = super()._sums(x)
        self.x = x[: self.problem.size]
        self.curve = sum_pairs(self.lists, smooth_sums.LOGISTIC_SLOPE, self.x, self.ones)
        # an item against itself adds tanh(0) = 0 here and a slope of 1/4 below
        sums[0] += sum_pairs(self.lists, smooth_sums.HALF_TANH, self.x, self.ones) - self.lists.net / 2
        # sums by series are rounded, and a curvature below 0 would spoil the preconditioner
        sums[1] += np.maximum(self.curve - self.itself / 4, 0.0)
        return sums, corners

    def _pair_product(self, bend: F8, v: F8) -> F8:
        image = self.curve * v - sum_pairs(self.lists, smooth_sums.LOGISTIC_SLOPE, self.x, v)
        return super()._pair_product(bend, v) + image

    def compute_value(self, x: F8) -> float:
        """The negative log likelihood."""
        scores = x[: self.problem.size]
        cosh = sum_pairs(self.lists, smooth_sums.LOG_COSH, scores, self.ones) - self.itself * 2 * np.log(2)
        return super().compute_value(x) + float(cosh.sum() / 4 - (self.lists.net * scores).sum() / 2)
