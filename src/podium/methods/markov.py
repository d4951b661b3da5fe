"""Markov chains over items: a walk that moves to better items spends most of its time on the best ones.

The score is the stationary probability. A comparison counts as a list of two; with unlisted="below" the
unlisted items are the tied last block of a list. Weights are the odds of picking a list. An item in no list
jumps to a random item, so it ranks last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from podium.core.params import Range, Tune
from podium.data.preferences import Preferences
from podium.kernels import markov_chains
from podium.kernels.dispatch import F8
from podium.kernels.pairwise_votes import Votes
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.majority import collect_votes

__all__ = ["MC1", "MC2", "MC3", "MC4", "MarkovChain"]

TIE = 1e-9  # relative: probabilities closer than this are ties


@dataclass(kw_only=True, eq=False, repr=False)
class MarkovChain(Aggregator):
    """Stationary probabilities; the walk teleports to a random item at a small rate, so they are unique.

    The default of 0.15 is the usual one for PageRank. Iteration stops when the bound that the teleport
    gives on the summed error falls below `tolerance`.
    """

    citation: ClassVar[str] = "Dwork, Kumar, Naor & Sivakumar, WWW 2001"
    tags = Tags(accepts=ALL_FORMS, cost="iterate")

    teleport: Annotated[
        float, Range(1e-6, 1), Tune(0.001, 0.5, log=True), "probability of a jump to a random item"
    ] = 0.15
    tolerance: Annotated[float, Range(1e-14, 1e-3), "largest summed error of the probabilities"] = 1e-12
    max_iterations: Annotated[int, Range(1, 100_000_000), "maximum number of steps"] = 100_000

    kind: ClassVar[int]  # of a walk along lists; the time per step is proportional to their lengths

    def _solve_chain(self, votes: Votes) -> markov_chains.StationaryDistribution:
        return markov_chains.solve_list_chain(
            votes, self.kind, self.teleport, self.tolerance, self.max_iterations
        )

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        walk = self._solve_chain(collect_votes(preferences, weights)[0])
        notes = () if walk.converged else (f"stopped after {self.max_iterations} steps",)
        return Outcome(
            walk.probability, tolerance=TIE, converged=walk.converged, iterations=walk.steps, notes=notes
        )


@dataclass(kw_only=True, eq=False, repr=False)
class MC1(MarkovChain):
    """Go to a random item ranked at or above the current one, over all lists that hold it, with repeats.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcd", 2: "bad", 3: "acbe"}})
    >>> {item: round(score, 3) for item, score in MC1().aggregate(p).to_dict()["q"].items()}
    {'a': 0.49, 'b': 0.302, 'c': 0.13, 'd': 0.04, 'e': 0.038}
    """

    name = "mc1"
    kind = markov_chains.MULTISET


@dataclass(kw_only=True, eq=False, repr=False)
class MC2(MarkovChain):
    """Pick a list that holds the current item, then go to a random item of it ranked at or above that item.

    >>> from podium import Preferences
    >>> MC2().aggregate(Preferences.from_lists({"q": {1: "abcd", 2: "bad", 3: "acbe"}})).ranking("q")
    ['a', 'b', 'c', 'd', 'e']
    """

    name = "mc2"
    kind = markov_chains.ONE_LIST


@dataclass(kw_only=True, eq=False, repr=False)
class MC3(MarkovChain):
    """Pick a list that holds the current item, then a random item of it, and go there if it is ranked above.

    >>> from podium import Preferences
    >>> MC3().aggregate(Preferences.from_lists({"q": {1: "abcd", 2: "bad", 3: "acbe"}})).ranking("q")
    ['a', 'b', 'c', 'd', 'e']
    """

    name = "mc3"
    kind = markov_chains.ONE_LIST_ANY


@dataclass(kw_only=True, eq=False, repr=False)
class MC4(MarkovChain):
    """Draw a random item, and go there if most of the lists that rank both prefer it (ties count half).

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcd", 2: "bad", 3: "acbe"}})
    >>> {item: round(score, 3) for item, score in MC4().aggregate(p).to_dict()["q"].items()}
    {'a': 0.625, 'b': 0.142, 'c': 0.142, 'd': 0.045, 'e': 0.045}
    """

    name = "mc4"
    aliases = ("markov_chain_4",)
    tags = Tags(accepts=ALL_FORMS, pairwise="items", cost="iterate")

    def _solve_chain(self, votes: Votes) -> markov_chains.StationaryDistribution:
        return markov_chains.solve_majority_chain(votes, self.teleport, self.tolerance, self.max_iterations)

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 9)
