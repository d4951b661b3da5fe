"""The supervised Markov chain: a mixture of one chain per expert, whose shares come from quadratic programs."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from podium.core.params import Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.pair_labels import PairLabels
from podium.data.preferences import Preferences
from podium.kernels.bounded_minimum import minimize_smooth
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import count_items_above
from podium.learning.examples import Examples, Training
from podium.methods.base import LIST_FORMS, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.input_checks import match_experts
from podium.methods.learned.supervised_method import SupervisedAggregator
from podium.methods.learned.weighted_rules import select_weights

__all__ = ["WeightedMarkov"]

TIE = 1e-9  # relative: probabilities closer than this are ties
STEPS = 300  # of the solver of one program


class ListChains(NamedTuple):
    """One chain per list, over all items of its query, in the layout of the rows of lists."""

    starts: I8  # rows of list l: starts[l] .. starts[l + 1]
    query_starts: I8  # lists of query q
    slots: I8  # items of query q
    item: I8  # slot of each row
    expert: I8  # of each list, the number in training or -1
    head: I8  # of each row, the first row of its rank
    reach: F8  # of each row, the number of items at or above it in its list

    @classmethod
    def from_preferences(cls, preferences: Preferences, codes: I8) -> ListChains:
        """`codes` are the numbers of the experts in training."""
        lists = preferences.lists
        above, upto = count_items_above(lists.starts, lists.rank)
        return cls(
            lists.starts,
            lists.query_starts,
            preferences.index.starts,
            lists.item.astype(np.int64),
            codes[lists.expert],
            lists.starts[lists.list_of_row] + above,
            upto.astype(np.float64),
        )

    def step_by_expert(self, mass: F8, experts: int) -> F8:
        """(slot, expert): the mass after one step of each expert's chain; what it does not list is spread evenly."""
        sizes, lengths = np.diff(self.slots), np.diff(self.starts)
        query, expert = np.repeat(np.arange(len(sizes)), sizes), np.repeat(self.expert, lengths)
        # every item spreads its mass evenly over those at or above it, so it receives from those at or below it
        sums = np.concatenate(([0.0], np.cumsum(mass[self.item] / self.reach)))
        received = sums[np.repeat(self.starts[1:], lengths)] - sums[self.head]
        table, held = np.zeros((len(mass), experts)), np.zeros((len(sizes), experts))
        table[self.item, expert] = received
        np.add.at(held, (query[self.item], expert), mass[self.item])
        total = np.bincount(query, mass, len(sizes))
        rest = np.maximum(total[:, None] - held, 0.0) / np.maximum(sizes, 1)[:, None]
        return table + rest[query]

    def solve_stationary(self, shares: F8, teleport: float) -> F8:
        """The stationary distribution of the mixture in every query."""
        out = np.zeros(int(self.slots[-1]))
        for q, (first, last) in enumerate(itertools.pairwise(self.slots.tolist())):
            size = last - first
            moves, listed = np.zeros((size, size)), np.zeros(size)
            for number in range(int(self.query_starts[q]), int(self.query_starts[q + 1])):
                share = shares[self.expert[number]] if self.expert[number] >= 0 else 0.0
                if share <= 0:
                    continue
                rows = slice(int(self.starts[number]), int(self.starts[number + 1]))
                held, reach = self.item[rows] - first, self.reach[rows]
                moves[held[:, None], held] += (np.arange(len(held)) < reach[:, None]) * (share / reach)[
                    :, None
                ]
                listed[held] += share
            if size:
                moves += (1.0 - listed)[:, None] / size
                system = np.eye(size) - (1 - teleport) * moves.T
                out[first:last] = np.linalg.solve(system, np.full(size, teleport / size))
        return out


class OrderProgram(NamedTuple):
    """Minimize l2/2 |a|^2 + sum of weight/2 slack^2 over a >= 0, with slack >= 1 - (rows[better] - rows[worse]) a."""

    rows: F8  # (row, expert)
    better: I8
    worse: I8
    weight: F8  # by pair; they add up to 1

    def compute_value(self, shares: F8, l2: float) -> tuple[float, F8]:
        """The objective with the smallest slacks, and its gradient."""
        # not BLAS, whose sums depend on the number of threads
        scores = np.einsum("ij,j->i", self.rows, shares)
        slack = np.maximum(1.0 - (scores[self.better] - scores[self.worse]), 0.0)
        pull = self.weight * slack
        slope = np.bincount(self.worse, pull, len(scores)) - np.bincount(self.better, pull, len(scores))
        value = float(pull @ slack) / 2 + l2 / 2 * float(shares @ shares)
        return value, np.einsum("i,ij->j", slope, self.rows) + l2 * shares


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedMarkov(SupervisedAggregator):
    """The supervised Markov chain: a walk that picks an expert by its learned share, then moves up in its list.

    Every expert has the chain of `mc2`: from an item to a random one at or above it in the list, from an item that it
    does not list to any item. The walk follows the mixture of these chains; items are ranked by the time it spends on
    them. The shares solve a quadratic program: one step of the mixture from the present distribution must place better
    items above worse ones by a margin, with squared slacks. The first program starts from the distribution of equal
    shares; with more `rounds`, the distribution of the new shares gives the next program, and those whose stationary
    distribution has the smallest slack are kept. Labels may be grades, rankings or pairs. No expert is used in reverse.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = WeightedMarkov().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> model.weights_["good"] > model.weights_["bad"], model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "weighted_markov"
    citation = "Liu, Liu, Qin, Ma & Li, Supervised rank aggregation, WWW 2007"
    tags = Tags(accepts=LIST_FORMS, weighted=False, supervised=True, pairwise="items")

    teleport: Annotated[
        float, Range(1e-3, 1), Tune(0.01, 0.5, log=True), "probability of a jump to a random item"
    ] = 0.15
    l2: Annotated[float, Range(1e-9, 1e6), Tune(1e-5, 0.1, log=True), "penalty on the squared shares"] = 1e-3
    rounds: Annotated[int, Range(1, 1000), "number of quadratic programs, one after another"] = 1

    def _learn(self, training: Training) -> None:
        experts, examples = len(self.experts_), training.examples
        chains = ListChains.from_preferences(training.preferences, np.arange(experts))
        better, worse, weight = _collect_pairs(examples)
        index = training.preferences.index
        unit = index.sizes[index.query_of_slot].astype(np.float64)
        equal = np.full(experts, 1.0 / experts)
        mass, kept, best = chains.solve_stationary(equal, self.teleport), equal, np.inf
        self.iterations_, self.converged_ = 0, True
        for done in range(1, self.rounds + 1):
            # in units of the mean probability, so that the margin does not depend on the number of items
            table = (chains.step_by_expert(mass, experts) * unit[:, None])[examples.rows]
            program = OrderProgram(table, better, worse, weight)
            minimum = minimize_smooth(
                functools.partial(program.compute_value, l2=self.l2),
                equal,
                nonnegative=True,
                steps=STEPS,
                value_tolerance=1e-14,
                slope_tolerance=1e-9,
            )
            self.iterations_ += minimum.steps
            self.converged_ &= minimum.converged
            total = float(minimum.x.sum())
            # without any expert that helps, all stay alike
            shares = minimum.x / total if total > 0 else equal
            mass = chains.solve_stationary(shares, self.teleport)
            position = (mass * unit)[examples.rows]
            gap = position[better] - position[worse]
            slack = float(weight @ np.maximum(1.0 - gap * max(total, 1.0), 0.0) ** 2)
            if slack < best:
                kept, best = shares, slack
            training.progress(done, self.rounds, "learning")
        self.weights_: dict[Id, float] = dict(zip(self.experts_, kept.tolist(), strict=True))

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 32, cube=1)

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        codes = match_experts(self, preferences)
        chains, shares = ListChains.from_preferences(preferences, codes), np.array([*self.weights_.values()])
        return Outcome(
            chains.solve_stationary(shares, self.teleport),
            tolerance=TIE,
            converged=self.converged_,
            iterations=self.iterations_,
            expert_weights=select_weights(self.weights_, codes),
        )


def _collect_pairs(examples: Examples) -> tuple[I8, I8, F8]:
    """Rows of better and worse items, and weights that add up to 1; every query counts by its own weight."""
    labels = examples.labels
    if isinstance(labels, PairLabels):
        better, worse, weight = labels.pairs.better, labels.pairs.worse, labels.pairs.weight
    else:
        parts = []
        for query in examples.find_useful_queries().tolist():
            a, b = examples.starts[query : query + 2].tolist()
            grades = labels.grades[a:b]
            parts.append(np.stack(np.nonzero(grades[:, None] > grades)) + a)
        better, worse = np.concatenate(parts, axis=1)
        weight = np.ones(len(better))
    query = labels.index.query_of_slot[better]
    weight = weight * (examples.weight / np.maximum(np.bincount(query, weight, len(labels)), 1e-300))[query]
    return better, worse, weight / weight.sum()
