"""Net votes: votes for an item minus votes against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Range
from podium.data.preferences import Form, Preferences
from podium.kernels.dispatch import F8
from podium.kernels.pairwise_votes import whole_weights
from podium.methods.base import Aggregator, Outcome, Tags

__all__ = ["NetVotes"]


@dataclass(kw_only=True, eq=False, repr=False)
class NetVotes(Aggregator):
    """Votes for an item minus votes against it.

    A rating above `middle` is a vote for, one below it a vote against; a list without ratings is a vote for
    each of its items; a comparison is a vote for its winner and one against its loser, a tie none.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {"ann": {"a": 1, "b": 1}, "bob": {"a": 1, "b": 0}, "eve": {"c": 1}}})
    >>> NetVotes().aggregate(p).to_dict()
    {'q': {'a': 2.0, 'c': 1.0, 'b': 0.0}}
    """

    name = "net_votes"
    tags = Tags(accepts=frozenset({Form.RATING, Form.COMPARISON}), additive=True)

    middle: Annotated[float, Range(-1e9, 1e9), "the neutral rating"] = 0.5

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists, votes, slots = preferences.lists, preferences.comparisons, len(preferences.index.items)
        weights, unit = whole_weights(weights)
        for_or_against = np.sign(lists.fill_scores(preferences.index.sizes) - self.middle)
        value = weights[lists.expert][lists.list_of_row] * for_or_against
        total = np.bincount(lists.item, weights=value, minlength=slots).astype(np.float64)
        value = np.where(votes.tie, 0.0, weights[votes.expert] * votes.weight)
        for side, sign in ((votes.winner, 1.0), (votes.loser, -1.0)):
            total += np.bincount(side, weights=sign * value, minlength=slots)
        several = len(for_or_against) > 0 and bool(np.ptp(lists.fill_scores(preferences.index.sizes)) > 0)
        one_sided = several and bool((for_or_against == for_or_against[0]).all())
        note = f"all ratings lie on one side of middle={self.middle:g}, so they only count raters"
        return Outcome(total * unit, notes=(note,) if one_sided else ())
