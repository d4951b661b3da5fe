"""Least squares on pairwise differences, and how much of the preferences no ranking can express."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple, cast

import numpy as np

from podium.core.params import Choice
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels import graphs
from podium.kernels.dispatch import F8, I8
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.input_checks import check_forms
from podium.methods.learned.expert_matrices import Transform, scale_ranks

__all__ = ["CyclicShares", "HodgeRank"]

TIE = 1e-9  # relative to strengths of at most 1
MOST_TRIANGLES = 40  # items up to which cycles of three are distinguished from longer ones


class CyclicShares(NamedTuple):
    """Shares of the squared strengths of one query, which add up to 1; 0 for all without any strength."""

    query: Id
    consistent: float  # differences of scores
    triangles: float  # cycles of three items; NaN if there are too many items
    longer: float  # cycles that no chain of triangles explains; NaN as before


class DifferenceTable(NamedTuple):
    """The pairs of one query: mean net strength of the first item over the second, and weight of that."""

    slots: slice
    strength: F8  # skew-symmetric
    weight: F8  # symmetric

    def fit_scores(self, group: I8) -> F8:
        """Scores whose differences are closest to the strengths, with mean 0 in each group of connected items."""
        degree = self.weight.sum(axis=1)
        # one more equation per group, that its scores sum to 0, makes the solution unique
        same = group[:, None] == group
        anchor = same * (max(float(degree.mean()), 1e-300) / same.sum(axis=1))
        return np.linalg.solve(
            np.diag(degree) - self.weight + anchor, (self.weight * self.strength).sum(axis=1)
        )

    def sum_squares(self, strength: F8) -> float:
        """The weighted squares of all pairs, each counted once."""
        return float((self.weight * strength * strength).sum() / 2)


@dataclass(kw_only=True, eq=False, repr=False)
class HodgeRank(Aggregator):
    """Least-squares ranking: scores whose differences are closest to the mean preference of every pair.

    The strength of a pair is the mean over the experts that compare it of the difference of its ranks (`rank`) or log
    ranks (`log`) over the largest one, or of 1 for the preferred item (`binary`, and votes); -1 to 1, a tie 0. A pair
    weighs as much as the experts that compare it. What is left over goes in cycles, which no scores can express: the
    notes report its share, and `decompose` divides it by query.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons(["q"] * 4, ["e"] * 4, ["a", "b", "c", "a"], ["b", "c", "a", "d"])
    >>> found = HodgeRank().aggregate(p)
    >>> {item: round(score, 2) for item, score in found.to_dict()["q"].items()}, found.diagnostics.notes
    ({'a': 0.25, 'b': 0.25, 'c': 0.25, 'd': -0.75}, ('cyclic share 75.0%',))
    """

    name = "hodge"
    aliases = ("least_squares",)
    citation = (
        "Jiang, Lim, Yao & Ye, Statistical ranking and combinatorial Hodge theory, Math. Programming 2011"
    )
    tags = Tags(accepts=ALL_FORMS, pairwise="items")

    strength: Annotated[
        str, Choice("binary", "rank", "log"), "strength of a pair: 1, or the difference of ranks or log ranks"
    ] = "rank"

    def decompose(self, preferences: Preferences) -> list[CyclicShares]:
        """How much of the preferences of each query is consistent, and how much goes in cycles.

        >>> from podium import Preferences
        >>> p = Preferences.from_comparisons(["q"] * 3, ["e"] * 3, ["a", "b", "c"], ["b", "c", "a"])
        >>> HodgeRank().decompose(p)
        [CyclicShares(query='q', consistent=0.0, triangles=1.0, longer=0.0)]
        """
        check_forms(self, preferences)
        self._check_costs(preferences)
        rows = []
        weights, group = self.expert_weights_for(preferences.experts), _label_groups(preferences)
        for query, table in zip(preferences.queries, self._build_tables(preferences, weights), strict=True):
            scores = table.fit_scores(group[table.slots])
            rest = table.strength - (scores[:, None] - scores)
            total, left = table.sum_squares(table.strength), table.sum_squares(rest)
            if total <= 0:
                rows.append(CyclicShares(query, 0.0, 0.0, 0.0))
                continue
            triangles = _sum_triangles(rest, table.weight)
            # rounding to 0 what the solver leaves of consistent strengths
            shares = [0.0 if part < TIE * total else part / total for part in (left, triangles)]
            rows.append(CyclicShares(query, 1 - shares[0], shares[1], max(0.0, shares[0] - shares[1])))
        return rows

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 40, cube=1)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        slots = len(preferences.index.items)
        scores, met, total, left = np.zeros(slots), np.zeros(slots), 0.0, 0.0
        group = _label_groups(preferences, weights)
        for table in self._build_tables(preferences, weights):
            if not len(table.weight):
                continue
            here = scores[table.slots] = table.fit_scores(group[table.slots])
            met[table.slots] = table.weight.sum(axis=1)
            total += table.sum_squares(table.strength)
            left += table.sum_squares(table.strength - (here[:, None] - here))
        notes = [f"cyclic share {left / total if total > 0 else 0.0:.1%}"]
        index = preferences.index
        known = np.flatnonzero(met > 0)
        groups = np.unique(index.query_of_slot[known] * max(1, slots) + group[known])
        several = int((np.bincount(groups // max(1, slots), minlength=1) > 1).sum())
        if several:
            notes.append(
                f"in {several} of {len(index)} queries the compared items fall into groups without comparisons between "
                "them, whose scores each have mean 0"
            )
        return Outcome(scores, met == 0, tolerance=TIE, floor=1.0, objective=left, notes=tuple(notes))

    def _build_tables(self, preferences: Preferences, weights: F8) -> Iterator[DifferenceTable]:
        """The table of each query."""
        lists, votes, index = preferences.lists, preferences.comparisons, preferences.index
        value = scale_ranks(lists, cast(Transform, self.strength))
        unit = float(weights.max(initial=0.0)) or 1.0
        heaviest = float(votes.weight.max(initial=0.0)) if len(votes) else 1.0
        scale = unit * max(heaviest, 1.0)
        list_weight = weights[lists.expert] / scale
        vote_weight = weights[votes.expert] * votes.weight / scale
        for q, (first, last) in enumerate(itertools.pairwise(index.starts.tolist())):
            net, weight = np.zeros((last - first, last - first)), np.zeros((last - first, last - first))
            for number in range(int(lists.query_starts[q]), int(lists.query_starts[q + 1])):
                rows = slice(int(lists.starts[number]), int(lists.starts[number + 1]))
                held, w = lists.item[rows].astype(np.int64) - first, list_weight[number]
                over = value[rows][None, :] - value[rows][:, None]
                net[held[:, None], held] += w * (np.sign(over) if self.strength == "binary" else over)
                weight[held[:, None], held] += w
                if preferences.unlisted == "below" and len(held):
                    rest = np.setdiff1d(np.arange(last - first), held)
                    net[held[:, None], rest] += w
                    net[rest[:, None], held] -= w
                    weight[held[:, None], rest] += w
                    weight[rest[:, None], held] += w
            rows = slice(int(votes.query_starts[q]), int(votes.query_starts[q + 1]))
            won, lost = (side[rows].astype(np.int64) - first for side in (votes.winner, votes.loser))
            signed = np.where(votes.tie[rows], 0.0, vote_weight[rows])
            for one, two, sign in ((won, lost, 1.0), (lost, won, -1.0)):
                np.add.at(net, (one, two), sign * signed)
                np.add.at(weight, (one, two), vote_weight[rows])
            np.fill_diagonal(weight, 0.0)
            yield DifferenceTable(slice(first, last), net / np.where(weight > 0, weight, 1.0), weight)


def _label_groups(preferences: Preferences, weights: F8 | None = None) -> I8:
    """By slot, the smallest slot of the items that comparisons connect it with."""
    lists, votes = preferences.lists, preferences.comparisons
    counts = np.ones(len(preferences.experts)) if weights is None else weights
    used = np.flatnonzero(counts[lists.expert][lists.list_of_row] > 0)
    head = lists.item[lists.starts[lists.list_of_row[used]]].astype(np.int64)
    links = [(head, lists.item[used].astype(np.int64))]
    if preferences.unlisted == "below":
        # a list connects its first item with every item of the query
        index, filled = preferences.index, np.flatnonzero((lists.lengths > 0) & (counts[lists.expert] > 0))
        query = lists.query_of_list[filled]
        sizes = index.sizes[query]
        slot = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes - index.starts[query], sizes)
        links.append((np.repeat(lists.item[lists.starts[filled]].astype(np.int64), sizes), slot))
    cast_votes = np.flatnonzero(counts[votes.expert] * votes.weight > 0)
    links.append((votes.winner[cast_votes].astype(np.int64), votes.loser[cast_votes].astype(np.int64)))
    upper, lower = (np.concatenate(sides) for sides in zip(*links, strict=True))
    return graphs.label_weak_components(upper, lower, len(preferences.index.items))


def _sum_triangles(rest: F8, weight: F8) -> float:
    """The weighted squares of the part of a cyclic flow that circulates in triangles of compared items."""
    size = len(rest)
    first, second = np.nonzero(np.triu(weight, 1))
    pairs = len(first)
    if pairs == size * (size - 1) // 2:
        return float((weight * rest * rest).sum() / 2)  # without gaps every cycle is a sum of triangles
    if size > MOST_TRIANGLES:
        return float("nan")
    number = np.full((size, size), -1)
    number[first, second] = np.arange(pairs)
    triples = np.array(list(itertools.combinations(range(size), 3)), np.int64).reshape(-1, 3)
    edges = number[triples[:, [0, 1, 0]], triples[:, [1, 2, 2]]]
    edges = edges[(edges >= 0).all(axis=1)]
    root = np.sqrt(weight[first, second])
    curl = np.zeros((pairs, len(edges)))
    for column, sign in enumerate((1.0, 1.0, -1.0)):
        curl[edges[:, column], np.arange(len(edges))] = sign
    flow = root * rest[first, second]
    curl /= root[:, None]
    return float(np.sum((curl @ np.linalg.lstsq(curl, flow, rcond=None)[0]) ** 2)) if len(edges) else 0.0
