"""Experts' preferences as potentials of a CRF, in an order that does not depend on ids; steps on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.data.preferences import Preferences
from podium.kernels import ranking_expectations
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials, sum_by_index
from podium.learning.examples import Examples
from podium.learning.trainer import Block

__all__ = [
    "ExpertStatements",
    "PotentialBlock",
    "append_features",
    "build_potentials",
    "compute_scales",
    "count_rows_by_expert",
    "order_by_content",
    "sum_squares_within",
]

U8 = npt.NDArray[np.uint64]


class ExpertStatements(NamedTuple):
    """One entry for every item of a query and every expert with a list or a vote there."""

    expert: I8
    query: I8
    slot: I8
    listed: B1
    standing: F8  # how far the expert prefers the item to the others of the query
    values: F8  # (entries, columns): the potentials

    def select_entries(self, entries: I8) -> ExpertStatements:
        """Select some of the entries."""
        return ExpertStatements._make(column[entries] for column in self)


def count_rows_by_expert(preferences: Preferences) -> I8:
    """Number of rows and votes of every expert."""
    lists, votes, count = preferences.lists, preferences.comparisons, len(preferences.experts)
    rows = np.bincount(lists.expert[lists.list_of_row], minlength=count)
    return np.asarray(rows + np.bincount(votes.expert, minlength=count), np.int64)


def build_potentials(
    statements: ExpertStatements, unlisted: F8, group: I8, groups: int, slots: I8, n_slots: int
) -> Potentials:
    """The entries of the given slots, row by row, summed over the experts of a group.

    Values are differences from `unlisted`, the values of an item that an expert does not list: what an expert adds
    to all items of a query alike changes no ranking, so items without a difference need no entry.
    """
    row_of = np.full(n_slots, -1, np.int64)
    row_of[slots] = np.arange(len(slots))
    row, values = row_of[statements.slot], statements.values - unlisted
    keep = (row >= 0) & (values != 0).any(axis=1)
    key, entry = np.unique(row[keep] * groups + group[statements.expert[keep]], return_inverse=True)
    sums = np.stack([sum_by_index(entry, c, len(key)) for c in values[keep].T], axis=1)
    starts = np.searchsorted(key, np.arange(len(slots) + 1) * groups)
    return Potentials(starts, key % groups, sums)


def append_features(p: Potentials, table: F8, groups: int) -> Potentials:
    """The same with item features as the entries of further groups, as many as hold one weight per feature.

    `table` has one row of features per row; the last group is filled up with zeros.
    """
    rows, width = len(p.starts) - 1, p.values.shape[1]
    more = -(-table.shape[1] // width)
    if not more:
        return p
    padded = np.zeros((rows, more * width))
    padded[:, : table.shape[1]] = table
    starts = p.starts + more * np.arange(rows + 1)
    own = np.ones(int(starts[-1]), np.bool_)
    last = (starts[1:, None] - 1 - np.arange(more)[::-1]).ravel()
    own[last] = False
    group, values = np.empty(len(own), np.int64), np.empty((len(own), width))
    group[own], values[own] = p.group, p.values
    group[last], values[last] = np.tile(groups + np.arange(more), rows), padded.reshape(-1, width)
    return Potentials(starts, group, values)


@dataclass(kw_only=True)
class PotentialBlock(Block):
    """Examples with their potentials; each step is on `subset` sampled items per query."""

    potentials: Potentials
    subset: int

    @property
    def columns(self) -> int:
        """Weights per group."""
        return int(self.potentials.values.shape[1])

    def compute_scores(self, weights: F8) -> F8:
        """The weighted sums of the potentials."""
        return ranking_expectations.compute_row_scores(self.potentials, weights.reshape(-1, self.columns))

    def visit_queries(
        self, visit: I8, optimizer: OptimizerState, random: np.random.Generator
    ) -> tuple[float, float]:
        """Steps down the exact expected loss over all rankings of the sampled items."""
        draws = random.random((len(visit), 2 * self.subset))
        examples, target, batch = self.examples, self.target, self.plan.batch
        if target.pairs is None:
            rows = ranking_expectations.sample_subsets(
                examples.starts, target.level, visit, self.subset, draws
            )
        else:
            rows = ranking_expectations.sample_pair_subsets(
                examples.starts, target.pairs, visit, self.subset, draws
            )
        weight = float(examples.weight[visit].sum())
        if self.plan.device == "cpu":
            loss = ranking_expectations.train_crf_pass(
                self.potentials, target, examples.weight, visit, rows, batch, optimizer
            )
            return loss * weight, weight
        if self.on_device is None:
            from podium.kernels.device.ranking_expectations import DeviceCrf
            from podium.kernels.device.torch_device import resolve_device

            where, groups = resolve_device(self.plan.device), len(optimizer.weights) // self.columns
            self.on_device = DeviceCrf(
                where, self.potentials, target, examples.weight, examples.starts, groups, self.subset
            )
        return self.on_device.learn(visit, rows, batch, optimizer) * weight, weight


def sum_squares_within(p: Potentials, query: I8, rows: I8, groups: int) -> F8:
    """Squared deviations of each value among the rows of a query where a group is active, and counts.

    `query` is the query of each row and `rows` their number per query. Groups from `groups` on hold item features,
    which do not count.
    """
    mine = np.flatnonzero(p.group < groups)
    pair, at = np.unique(query[p.row[mine]] * groups + p.group[mine], return_inverse=True)
    n = rows[pair // groups].astype(np.float64)
    squares = [
        float((np.bincount(at, weights=v * v) - np.bincount(at, weights=v) ** 2 / n).sum())
        for v in p.values[mine].T
    ]
    return np.array([*squares, n.sum()])


def compute_scales(parts: Sequence[F8], owner: I8) -> F8:
    """The typical spread of each value, from `sum_squares_within` over parts; values of one owner share it.

    `owner` is the number of the potential of each value. One scale for all experts: a rare expert must not get
    large values.
    """
    *by_column, n = np.sum(parts, axis=0).tolist()
    shared = np.bincount(owner, weights=by_column) / np.bincount(owner)
    squares = shared[owner] / max(n, 1.0)
    return np.sqrt(np.where(squares > 1e-24, squares, 1.0))


def order_by_content(p: Potentials, examples: Examples) -> I8:
    """Rows by query and grade, then by a hash of their statements: results do not depend on ids.

    First each group's statements are hashed, to identify groups without their names, then the statements
    about each row. Values are rounded to single precision, because their last bits depend on the order of
    summation.
    """
    index, grades = examples.labels.index, examples.labels.grades
    largest = np.abs(p.values).max(axis=0, initial=0.0)
    rounded = (p.values / np.where(largest > 0, largest, 1.0) + 0.0).astype(np.float32).view(np.uint32)
    content = np.zeros(len(rounded), np.uint64)
    for column in rounded.T:
        content = _mix_bits(content + column.astype(np.uint64))
    place = _mix_bits(index.query_of_slot.astype(np.uint64)) + (grades + 0.0).view(np.uint64)
    groups = np.zeros(int(p.group.max(initial=-1)) + 1, np.uint64)
    np.add.at(groups, p.group, _mix_bits(content + _mix_bits(place)[p.row]))
    rows = np.zeros(len(grades), np.uint64)
    np.add.at(rows, p.row, _mix_bits(content + _mix_bits(groups)[p.group]))
    return np.lexsort((rows, -grades, index.query_of_slot))


def _mix_bits(x: U8) -> U8:
    """Steele, Lea & Flood's splitmix64: every bit of the result depends on every bit of x."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
