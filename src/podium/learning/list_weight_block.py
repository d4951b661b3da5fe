"""Training of weights by list: the global weight of the expert, times a factor learned from features of the list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.data.lists import Lists
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.lambdas import OptimizerState, compute_lambdas, update_weights
from podium.kernels.list_agreement import tilt_weights
from podium.learning.examples import Examples
from podium.learning.trainer import Block

__all__ = ["ExampleLists", "ListWeightBlock", "compute_exponents"]


class ExampleLists(NamedTuple):
    """The lists of the examples' queries, in the order of the examples, with their labeled rows."""

    which: I8  # the list in the preferences
    list_starts: I8  # lists of query q: list_starts[q] .. list_starts[q + 1]
    row_starts: I8  # labeled rows of list l: row_starts[l] .. row_starts[l + 1]
    example: I8  # by labeled row
    points: F8  # by labeled row

    @classmethod
    def from_lists(cls, lists: Lists, examples: Examples, codes: I8, points: F8, slots: int) -> ExampleLists:
        """Select them; `codes` are the examples' queries in the preferences, which have that many slots."""
        list_starts, which = segments.gather_segments(lists.query_starts, codes)
        starts, rows = segments.gather_segments(lists.starts, which)
        example_of_slot = np.full(slots, -1, np.int64)
        example_of_slot[examples.rows] = np.arange(len(examples))
        example = example_of_slot[lists.item[rows]]
        labeled = example >= 0
        return cls(
            which, list_starts, segments.offsets(labeled)[starts], example[labeled], points[rows][labeled]
        )

    def build_table(self, expert: I8, examples: int, width: int) -> F8:
        """Points by example and expert (by list: its number, -1 if unknown)."""
        table = np.zeros((examples, width))
        of_row = np.repeat(expert, np.diff(self.row_starts))
        known = of_row >= 0
        table[self.example[known], of_row[known]] = self.points[known]
        return table

    def select_queries(self, chosen: I8, example_starts: I8) -> tuple[ExampleLists, I8, I8]:
        """The lists of some queries, which number these lists here; then offsets and rows of their examples."""
        list_starts, which = segments.gather_segments(self.list_starts, chosen)
        row_starts, rows = segments.gather_segments(self.row_starts, which)
        offsets, examples = segments.gather_segments(example_starts, chosen)
        move = np.repeat(offsets[:-1] - example_starts[chosen], np.diff(row_starts[list_starts]))
        return (
            ExampleLists(which, list_starts, row_starts, self.example[rows] + move, self.points[rows]),
            offsets,
            examples,
        )


def compute_exponents(values: F8, expert: I8, slopes: F8) -> F8:
    """Logarithms of the factors, up to a constant per query.

    The first row of `slopes` is shared by all experts; the others are added, by expert (-1: unknown).
    """
    own = np.where((expert >= 0)[:, None], slopes[1:][expert], 0.0) if len(slopes) > 1 else 0.0
    # not BLAS, whose sums depend on the number of threads
    return np.asarray(np.einsum("ij,ij->i", values, slopes[0] + own), np.float64)


@dataclass(kw_only=True)
class ListWeightBlock(Block):
    """Examples with the lists of their queries; the weights to be trained are slopes, flattened."""

    lists: ExampleLists
    base: F8  # by list: the global weight of its expert
    expert: I8  # by list: its number
    values: F8  # by list: its features
    free: B1  # by expert (after a first row for all) and feature: which slopes are trained

    def compute_scores(self, weights: F8) -> F8:
        """Sums of points times weights by list."""
        return self._score_lists(self.lists, weights.reshape(self.free.shape), len(self.examples))[0]

    def visit_queries(
        self, visit: I8, optimizer: OptimizerState, random: np.random.Generator
    ) -> tuple[float, float]:
        """LambdaRank steps after every batch of queries."""
        for first in range(0, len(visit), self.plan.batch):
            chosen = visit[first : first + self.plan.batch]
            update_weights(optimizer, self.compute_gradient(chosen, optimizer.weights) / len(chosen))
        return 0.0, 0.0

    def compute_gradient(self, chosen: I8, weights: F8) -> F8:
        """The gradient of the LambdaRank objective of some queries with respect to the slopes."""
        part, offsets, rows = self.lists.select_queries(chosen, self.examples.starts)
        scores, weight = self._score_lists(part, weights.reshape(self.free.shape), len(rows))
        lambdas = compute_lambdas(scores, offsets, self.target.select_queries(rows, chosen))
        lists, queries = len(weight), len(part.list_starts) - 1
        list_of_row = np.repeat(np.arange(lists), np.diff(part.row_starts))
        query = np.repeat(np.arange(queries), np.diff(part.list_starts))
        pull = weight * np.bincount(list_of_row, part.points * lambdas[part.example], lists)
        # weights of a query have a fixed sum, so a raised one lowers the others
        share = weight / np.maximum(np.bincount(query, weight, queries), 1e-300)[query]
        pull = pull - share * np.bincount(query, pull, queries)[query]
        terms = pull[:, None] * self.values[part.which]
        gradient = np.zeros(self.free.shape)
        gradient[0] = terms.sum(axis=0)
        if len(gradient) > 1:
            known = self.expert[part.which] >= 0
            np.add.at(gradient, self.expert[part.which][known] + 1, terms[known])
        return np.asarray((gradient * self.free).ravel(), np.float64)

    def _score_lists(self, part: ExampleLists, slopes: F8, examples: int) -> tuple[F8, F8]:
        """Scores by example, and weights by list."""
        # all lists of this block, if `part` is its own
        which = slice(None) if part is self.lists else part.which
        exponent = compute_exponents(self.values[which], self.expert[which], slopes)
        queries = len(part.list_starts) - 1
        query = np.repeat(np.arange(queries), np.diff(part.list_starts))
        weight = tilt_weights(self.base[which], exponent, query, queries)
        of_row = np.repeat(weight, np.diff(part.row_starts))
        scores = np.bincount(part.example, part.points * of_row, examples)
        return np.asarray(scores, np.float64), weight
