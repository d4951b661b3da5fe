"""Experts' preferences as potentials of a CRF, in an order that does not depend on ids; steps on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.data.preferences import Preferences
from podium.kernels import preference_svd, ranking_expectations
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials, sum_by_index
from podium.learning.examples import Examples
from podium.learning.trainer import Block
from podium.methods.learned.expert_matrices import Transform, build_expert_matrices

__all__ = [
    "ExpertStatements",
    "PotentialBlock",
    "build_potentials",
    "collect_statements",
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
    above: F8  # sum over j of Y(i, j)
    below: F8  # sum over j of Y(j, i)

    def select_entries(self, entries: I8) -> ExpertStatements:
        """Select some of the entries."""
        return ExpertStatements._make(column[entries] for column in self)


def collect_statements(
    preferences: Preferences, transform: Transform, power: float, counts: B1, others: bool = False
) -> ExpertStatements:
    """Statements of the experts that count; sums are divided by (items of the query) ** power.

    With `others`, by (items less one) ** power, the number of terms of a sum.
    """
    codes = np.where(counts, np.arange(len(counts)), -1)
    grouped = build_expert_matrices(preferences, transform, codes)
    m, sizes = grouped.matrices, grouped.matrices.sizes
    above, below = preference_svd.sum_rows_and_columns(m)
    base = m.slots[m.query] - m.starts_out[:-1]  # slot less entry
    which = np.arange(len(m.query))
    by_list = np.repeat(np.repeat(which, np.diff(m.list_starts)), np.diff(m.starts))
    by_vote = np.repeat(which, np.diff(m.vote_starts))
    listed = np.zeros(len(above), np.bool_)
    for slot, owner in ((m.item, by_list), (m.winner, by_vote), (m.loser, by_vote)):
        listed[slot - base[owner]] = True
    terms = np.maximum(sizes - 1, 1) if others else sizes
    spread = np.repeat(terms.astype(np.float64) ** power, sizes)
    entry = np.arange(len(above))
    return ExpertStatements(
        np.repeat(grouped.group, sizes),
        np.repeat(m.query, sizes),
        entry + np.repeat(base, sizes),
        listed,
        above / spread,
        below / spread,
    )


def count_rows_by_expert(preferences: Preferences) -> I8:
    """Number of rows and votes of every expert."""
    lists, votes, count = preferences.lists, preferences.comparisons, len(preferences.experts)
    rows = np.bincount(lists.expert[lists.list_of_row], minlength=count)
    return np.asarray(rows + np.bincount(votes.expert, minlength=count), np.int64)


def build_potentials(
    statements: ExpertStatements, group: I8, groups: int, slots: I8, n_slots: int
) -> Potentials:
    """The entries of the given slots, row by row, summed over the experts of a group.

    Values are (-listed, above, -below). A missing item gets the weight of its group; an expert without
    preferences in a query would add the same to all its items, so only listed items need an entry.
    """
    row_of = np.full(n_slots, -1, np.int64)
    row_of[slots] = np.arange(len(slots))
    row = row_of[statements.slot]
    keep = (row >= 0) & (statements.listed | (statements.above > 0) | (statements.below > 0))
    key, entry = np.unique(row[keep] * groups + group[statements.expert[keep]], return_inverse=True)
    columns = (-statements.listed[keep].astype(np.float64), statements.above[keep], -statements.below[keep])
    values = np.stack([sum_by_index(entry, c, len(key)) for c in columns], axis=1)
    starts = np.searchsorted(key, np.arange(len(slots) + 1) * groups)
    return Potentials(starts, key % groups, values)


@dataclass(kw_only=True)
class PotentialBlock(Block):
    """Examples with their potentials; each step is on `subset` sampled items per query."""

    potentials: Potentials
    subset: int

    def compute_scores(self, weights: F8) -> F8:
        """The weighted sums of the potentials."""
        return ranking_expectations.compute_row_scores(self.potentials, weights.reshape(-1, 3))

    def visit_queries(
        self, visit: I8, optimizer: OptimizerState, random: np.random.Generator
    ) -> tuple[float, float]:
        """Steps down the exact expected loss over all rankings of the sampled items."""
        draws = random.random((len(visit), 2 * self.subset))
        examples, target, batch = self.examples, self.target, self.plan.batch
        rows = ranking_expectations.sample_subsets(examples.starts, target.level, visit, self.subset, draws)
        weight = float(examples.weight[visit].sum())
        if self.plan.device == "cpu":
            loss = ranking_expectations.train_crf_pass(
                self.potentials, target, examples.weight, visit, rows, batch, optimizer
            )
            return loss * weight, weight
        if self.on_device is None:
            from podium.kernels.device.ranking_expectations import DeviceCrf
            from podium.kernels.device.torch_device import resolve_device

            where, groups = resolve_device(self.plan.device), len(optimizer.weights) // 3
            self.on_device = DeviceCrf(
                where, self.potentials, target, examples.weight, examples.starts, groups, self.subset
            )
        return self.on_device.learn(visit, rows, batch, optimizer) * weight, weight


def sum_squares_within(p: Potentials, query: I8, rows: I8, groups: int) -> F8:
    """Squared deviations of the three values among the rows of a query where a group is active, and counts.

    `query` is the query of each row and `rows` their number per query.
    """
    pair, at = np.unique(query[p.row] * groups + p.group, return_inverse=True)
    n = rows[pair // groups].astype(np.float64)
    squares = [
        float((np.bincount(at, weights=v * v) - np.bincount(at, weights=v) ** 2 / n).sum()) for v in p.values.T
    ]  # fmt: skip
    return np.array([*squares, n.sum()])


def compute_scales(parts: Sequence[F8]) -> F8:
    """The typical spread of each value, from `sum_squares_within` over parts; the two sums share one.

    One scale for all experts: a rare expert must not get large values.
    """
    missing, above, below, n = np.sum(parts, axis=0).tolist()
    squares = np.array([missing, *[(above + below) / 2] * 2]) / max(n, 1.0)
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
