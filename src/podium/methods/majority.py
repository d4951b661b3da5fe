"""Methods based on the majority preference for each pair of items.

They read lists (rankings, top-k lists, ratings through the ranks they imply) and comparisons: an expert
prefers i to j when it lists i at a better rank, or votes for i; with unlisted="below" it also prefers every
listed item to every unlisted one. A tie counts for neither side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from podium.core.params import Choice
from podium.data.preferences import Preferences
from podium.kernels import majority, segments
from podium.kernels.dispatch import B1, F8
from podium.kernels.pairwise_votes import Votes, find_unranked_slots, whole_weights
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost

__all__ = [
    "CondorcetFuse",
    "Copeland",
    "GreedyOrder",
    "MajorityVote",
    "Minimax",
    "PairwiseMajority",
    "RankedPairs",
    "Schulze",
    "SplitCycle",
]


Strength = Annotated[
    str, Choice("winning", "margin"), "strength of a majority: its votes, or its votes minus those against"
]


def collect_votes(preferences: Preferences, weights: F8) -> tuple[Votes, float]:
    """The votes of all experts with integer weights, and the unit of these weights."""
    lists, pairs = preferences.lists, preferences.comparisons
    plain = bool((pairs.weight == 1).all())
    given = weights[pairs.expert] if plain else weights[pairs.expert] * pairs.weight
    whole, unit = whole_weights(weights if plain else np.concatenate((weights, given)))
    by_expert, by_vote = whole[: len(weights)], whole[len(weights) :]
    votes = Votes(
        slots=preferences.index.starts,
        query_starts=lists.query_starts,
        starts=lists.starts,
        item=lists.item,
        rank=lists.rank,
        list_weight=by_expert[lists.expert],
        vote_starts=pairs.query_starts,
        winner=pairs.winner,
        loser=pairs.loser,
        tie=pairs.tie,
        vote_weight=by_expert[pairs.expert] if plain else by_vote,
        below=preferences.unlisted == "below",
    )
    return votes, unit


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseMajority(Aggregator):
    """Scores from the matrix of votes of each query."""

    tables: ClassVar[int] = 2  # matrices held at once per query, eight bytes per pair
    cube: ClassVar[float] = 0.0  # operations per cubed number of items, for the cost estimate (measured)
    cubic: ClassVar[float] = 0.0  # cost per cubed number of items relative to a matrix cell, for scheduling
    kernel: ClassVar[Callable[..., F8]]

    def _kernel_options(self) -> tuple[bool, ...]:
        return ()

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 8 * self.tables, cube=self.cube)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        votes, _ = collect_votes(preferences, weights)
        scores = majority.score_by_majority(type(self).kernel, votes, self.cubic, *self._kernel_options())
        return Outcome(scores, find_unranked_slots(votes))


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityStrengths(PairwiseMajority):
    """Scores from how strong the majorities are."""

    strength: Strength

    def _kernel_options(self) -> tuple[bool, ...]:
        return (self.strength == "winning",)


@dataclass(kw_only=True, eq=False, repr=False)
class CondorcetFuse(PairwiseMajority):
    """Sort by majority so that no item directly follows one that it beats; score = items below minus above.

    A merge sort by majority starts from the order of net votes (won minus lost). Items with equal net votes
    are split recursively by wins minus losses among themselves; those that remain equal stay tied, and are
    compared with others by their summed votes.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "a", "c"], 3: ["a", "c", "b"]}})
    >>> CondorcetFuse().aggregate(p).ranking("q")
    ['a', 'b', 'c']
    """

    name = "condorcet"
    aliases = ("condorcet_fuse",)
    citation = "Montague & Aslam, CIKM 2002"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    kernel = staticmethod(majority.condorcet)


@dataclass(kw_only=True, eq=False, repr=False)
class Copeland(PairwiseMajority):
    """Number of items beaten by majority minus number of items lost to.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons([0] * 3, ["j"] * 3, ["a", "a", "b"], ["b", "c", "c"])
    >>> Copeland().aggregate(p).to_dict()
    {0: {'a': 2.0, 'b': 0.0, 'c': -2.0}}
    """

    name = "copeland"
    citation = "Copeland, 1951"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    kernel = staticmethod(majority.copeland)


@dataclass(kw_only=True, eq=False, repr=False)
class GreedyOrder(PairwiseMajority):
    """Repeatedly take the item with the largest outgoing minus incoming preference among those left.

    Items with equal values are compared recursively among themselves only; the remaining ties are taken
    together.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "c", "a"]}})
    >>> GreedyOrder().aggregate(p).to_dict()
    {'q': {'b': 2.0, 'a': -1.0, 'c': -1.0}}
    """

    name = "greedy"
    citation = "Cohen, Schapire & Singer, JAIR 1999"
    tags = Tags(accepts=ALL_FORMS, pairwise="items")
    kernel = staticmethod(majority.greedy)


@dataclass(kw_only=True, eq=False, repr=False)
class Schulze(MajorityStrengths):
    """Items beaten minus items lost to, where i beats j if its strongest path of majorities to j is stronger.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "c", "a"], 3: ["c", "a", "b"]}})
    >>> Schulze().aggregate(p).to_dict()
    {'q': {'a': 0.0, 'b': 0.0, 'c': 0.0}}
    """

    name = "schulze"
    citation = "Schulze, Social Choice and Welfare 2011"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    cubic = 1 / 32
    cube = 0.5
    kernel = staticmethod(majority.schulze)

    strength: Strength = "winning"


@dataclass(kw_only=True, eq=False, repr=False)
class RankedPairs(PairwiseMajority):
    """Lock majorities by falling margin, skipping contradictions; score = items dominated minus dominators.

    Equal margins are locked together, except those on a cycle with each other and with the locked majorities.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "bca", 3: "cab", 4: "abc"}})
    >>> RankedPairs().aggregate(p).ranking("q")
    ['a', 'b', 'c']
    """

    name = "ranked_pairs"
    citation = "Tideman, Social Choice and Welfare 1987"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    cubic = 1 / 2
    cube = 3.0
    kernel = staticmethod(majority.ranked_pairs)


@dataclass(kw_only=True, eq=False, repr=False)
class Minimax(MajorityStrengths):
    """Take the items whose strongest defeat is weakest, then those of the rest; score = items below minus above.

    A defeat is a majority against the item; its strength is measured among the items that are left.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "bca", 3: "cab", 4: "abc"}})
    >>> Minimax().aggregate(p).to_dict()
    {'q': {'a': 2.0, 'b': 0.0, 'c': -2.0}}
    """

    name = "minimax"
    aliases = ("simpson", "simpson_kramer")
    citation = "Simpson, Quarterly Journal of Economics 1969; Kramer, Journal of Economic Theory 1977"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    cubic = 1 / 16
    cube = 0.5
    kernel = staticmethod(majority.minimax)

    strength: Strength = "margin"


@dataclass(kw_only=True, eq=False, repr=False)
class SplitCycle(MajorityStrengths):
    """Take the items without a defeat, then those that none of the rest defeats; score = items below minus above.

    Item i defeats j if a majority prefers it, unless that majority is the weakest of a cycle of majorities: no
    path of majorities from j to i may be as strong. Defeats have no cycles.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "bca", 3: "cab", 4: "abc"}})
    >>> SplitCycle().aggregate(p).ranking("q")
    ['a', 'b', 'c']
    """

    name = "split_cycle"
    citation = "Holliday & Pacuit, Public Choice 2023"
    tags = Tags(accepts=ALL_FORMS, condorcet=True, pairwise="items")
    tables = 3
    cubic = 1 / 16
    cube = 1.0
    kernel = staticmethod(majority.split_cycle)

    strength: Strength = "margin"


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityVote(Aggregator):
    """The mean of the votes on an item.

    Ratings: the weighted mean rating over the experts that rated it. Rankings and comparisons: the weighted
    mean over lists of the fraction of the other listed items it beats, ties half (a comparison is a list of
    two; a list of one gives 1/2). In a query with other votes beside ratings, ratings count through the ranks
    they imply. Items without votes come last, with a score below all others.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {"ann": {"a": 3, "b": 5}, "bob": {"a": 4}}})
    >>> MajorityVote().aggregate(p).to_dict()
    {'q': {'b': 5.0, 'a': 3.5}}
    """

    name = "majority"
    tags = Tags(accepts=ALL_FORMS)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists, pairs, slots = preferences.lists, preferences.comparisons, len(preferences.index.items)
        # integer weights, so that sums do not depend on their order
        votes, _ = collect_votes(preferences, weights)
        # the fraction of the other items of its list that each row beats
        below = preferences.unlisted == "below"
        others = (preferences.index.sizes[lists.query_of_list] if below else lists.lengths) - 1.0
        others = others[lists.list_of_row]
        place = segments.fractional_ranks(lists.starts, lists.rank)
        value = np.where(others > 0, 1 - (place - 1) / np.maximum(others, 1), 0.5)
        rated = np.zeros(len(lists), np.bool_)
        if lists.score is not None:
            rated = self._find_rated_queries(preferences)[lists.query_of_list]
            value = np.where(rated[lists.list_of_row], lists.score, value)
        weight, none = votes.list_weight, np.zeros(len(lists))
        total = lists.sum_affine(value, none, weight, slots)
        votes_cast = lists.sum_affine(None, weight, none, slots)
        if below:
            # each list gets its unlisted items, tied at the last place
            weight = np.where(rated, 0.0, weight)
            sizes = preferences.index.sizes
            size = sizes[lists.query_of_list]
            share = weight * np.maximum(size - lists.lengths - 1, 0) / 2 / np.maximum(size - 1, 1)
            held = lists.sum_affine(None, share, share, slots)
            everywhere = (
                np.bincount(lists.query_of_list, weights=w, minlength=len(sizes)) for w in (share, weight)
            )
            shares, cast = (np.repeat(e, sizes) for e in everywhere)
            total, votes_cast = total + shares - held, np.where(cast > 0, cast, votes_cast)
        for side, won in ((pairs.winner, 1.0), (pairs.loser, 0.0)):
            share = np.where(pairs.tie, 0.5, won) * votes.vote_weight
            total = total + np.bincount(side, weights=share, minlength=slots)
            votes_cast = votes_cast + np.bincount(side, weights=votes.vote_weight, minlength=slots)
        unranked = votes_cast <= 0
        return Outcome(total / np.where(unranked, 1.0, votes_cast), unranked)

    @staticmethod
    def _find_rated_queries(preferences: Preferences) -> B1:
        """Whether all votes of a query are ratings, by query; for preferences with scores."""
        lists, pairs = preferences.lists, preferences.comparisons
        assert lists.score is not None
        unrated = lists.query_of_list[lists.list_of_row[np.isnan(lists.score)]]
        counts = np.bincount(unrated, minlength=len(preferences))
        return np.asarray((counts == 0) & (np.diff(pairs.query_starts) == 0))
