"""Kemeny's rule: the ranking with the fewest disagreements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Choice, Fixed, Range
from podium.data.preferences import Preferences
from podium.kernels import linear_ordering as ordering
from podium.kernels import majority
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import compute_margins, compute_vote_matrix, find_unranked_slots
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.majority import collect_votes

__all__ = ["ExactLimit", "Kemeny", "NodeLimit", "Solver"]

Solver = Annotated[str, Choice("auto", "exact", "local"), Fixed(), "solver for each group"]
ExactLimit = Annotated[int, Range(0, 200), "largest group for which `auto` seeks a proof"]
NodeLimit = Annotated[int, Range(1, 10**9), "maximum number of branches for `exact`"]


@dataclass(kw_only=True, eq=False, repr=False)
class Kemeny(Aggregator):
    """The ranking with the smallest total weight of votes against it; score = items below minus items above.

    The items are first split into groups that no majority cycle connects, and each group is solved
    separately. `exact` uses dynamic programming up to 14 items, then linear programming and, where its bound
    leaves a gap, branch and bound, which can take long. `local` moves single items from several good starts
    until no move helps. `auto` does all but the branching for groups of up to `exact_limit` items, and
    `local` for larger ones. The objective is the weight of the votes against the ranking; the notes state
    whether it is proved minimal. Linear programming needs the solver HiGHS (the extra `exact`): without it,
    `auto` takes the result of `local` for groups of more than 14 items, and `exact` refuses them.

    Optimal rankings are often not unique. Items that no vote distinguishes are tied; other choices are made
    by net votes (won minus lost), then by id. In groups of more than 14 items the solver's choice stands.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "c", "a"], 3: ["a", "b", "c"]}})
    >>> found = Kemeny().aggregate(p)
    >>> found.ranking("q"), found.diagnostics.objective, found.diagnostics.notes
    (['a', 'b', 'c'], 2.0, ('optimal',))
    """

    name = "kemeny"
    aliases = ("kemeny_young",)
    citation = "Kemeny, Daedalus 1959"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items", cost="search")
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "renaming_items": "optimal rankings are not unique: ids decide among equal net votes, at the same cost"
    }

    method: Solver = "auto"
    exact_limit: ExactLimit = 50
    most_nodes: NodeLimit = 10_000

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 32, cube=1)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        votes, unit = collect_votes(preferences, weights)
        scores, cost, unproved = np.zeros(int(votes.slots[-1])), 0.0, 0
        for q in np.flatnonzero(np.diff(votes.slots)).tolist():
            table = compute_vote_matrix(votes, q)
            blocks, proved = self._order_items(compute_margins(table))
            scores[votes.slots[q] : votes.slots[q + 1]] = majority.score_blocks(blocks, len(table))
            order = np.concatenate(blocks)
            cost += float(np.tril(table[np.ix_(order, order)], -1).sum())
            unproved += not proved
        note = "optimal"
        if unproved:
            note = f"local search: not proved optimal in {unproved} of {len(preferences)} queries"
            if self.method == "auto" and not ordering.has_solver():
                note += "; proofs need highspy: pip install 'podium-rank[exact]'"
        return Outcome(scores, find_unranked_slots(votes), objective=cost * unit, notes=(note,))

    def _order_items(self, margin: F8) -> tuple[list[I8], bool]:
        """Tied blocks of items in an optimal order, and whether it is proved optimal."""
        label = ordering.label_equal_items(margin)
        first = np.full(label.max() + 1, len(label))
        np.minimum.at(first, label, np.arange(len(label)))
        rank = np.lexsort((first, -margin.sum(axis=1)[first]))  # classes by net votes, then id
        count = np.bincount(label)[rank]
        merged = margin[np.ix_(first[rank], first[rank])] * count * count[:, None]
        solved = [
            (part, *self._order_group(merged[np.ix_(part, part)]))
            for part in ordering.find_ordered_components(merged)
        ]
        blocks = [np.flatnonzero(label == rank[c]) for part, order, _ in solved for c in part[order]]
        return blocks, all(proved for *_, proved in solved)

    def _order_group(self, margin: F8) -> tuple[I8, bool]:
        """A good order of one group, and whether it is proved optimal."""
        size = len(margin)
        exact = self.method == "exact" or (self.method == "auto" and size <= self.exact_limit)
        if size <= 2 or (exact and size <= ordering.FEW):
            return ordering.order_few(margin), True
        keys = (margin.sum(axis=1), np.sign(margin).sum(axis=1), majority.greedy(np.maximum(margin, 0)))
        starts = (np.argsort(-key, kind="stable") for key in keys)
        orders = [ordering.improve_order(margin, start) for start in starts]
        best = max(orders, key=lambda order: ordering.compute_order_value(margin, order))
        nodes = self.most_nodes if self.method == "exact" else 0
        return ordering.order_many(margin, best, nodes) if exact else (best, False)
