"""The average win rate of an item against the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Choice
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8
from podium.methods.base import ALL_FORMS, Outcome, Tags
from podium.methods.choice import collect_contests, contest_costs
from podium.methods.costs import Cost
from podium.methods.majority import MajorityVote

__all__ = ["WinRate"]

NO_PAIRS = "keep the top of the lists, or set over to lists"


@dataclass(kw_only=True, eq=False, repr=False)
class WinRate(MajorityVote):
    """The share of wins against an opponent, ties half, averaged over the opponents that the item met.

    With `over="lists"` it is averaged over the lists and comparisons instead: the mean fraction of the other
    listed items that the item beats (a scenario of HELM is a list, a comparison a list of two). Both are equal
    if every list has all items. Ratings count through the ranks they imply.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons([0] * 4, ["j"] * 4, ["a", "a", "b", "c"], ["b", "b", "a", "a"])
    >>> {item: round(rate, 3) for item, rate in WinRate().aggregate(p).to_dict()[0].items()}
    {'c': 1.0, 'a': 0.333, 'b': 0.333}
    """

    name = "win_rate"
    aliases = ("average_win_rate", "mean_win_rate")
    citation = "Liang et al., Holistic Evaluation of Language Models, TMLR 2023"
    tags = Tags(accepts=ALL_FORMS, pairwise="lists")

    over: Annotated[
        str, Choice("opponents", "lists"), "what wins are averaged over: opponents, or lists and comparisons"
    ] = "opponents"

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return contest_costs(preferences, NO_PAIRS) if self.over == "opponents" else []

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        if self.over == "lists":
            return super()._scores(preferences, weights)
        slots = len(preferences.index.items)
        total, opponents = np.zeros(slots), np.zeros(slots)
        for base, met in collect_contests(self.name, preferences, weights):
            count = met.won + met.lost + met.tied
            share = (met.won + met.tied / 2) / np.where(count > 0, count, 1.0)
            size = int(met.starts[-1])
            here = slice(base, base + size)
            for side, rate in ((met.first, share), (met.second, 1 - share)):
                total[here] += np.bincount(side, rate, size)
                opponents[here] += np.bincount(side, minlength=size)
        absent: B1 = opponents == 0
        return Outcome(total / np.where(absent, 1.0, opponents), absent, floor=1.0)

    @staticmethod
    def _find_rated_queries(preferences: Preferences) -> B1:
        """None: ratings are read as ranks."""
        return np.zeros(len(preferences), np.bool_)
