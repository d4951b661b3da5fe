"""Who should be asked: judges with a cost per vote, and what a vote of each is worth.

A judge with slope a votes as if all score differences were a times as large: 1 for the average judge, less for one who
votes at random, more for a careful one. A vote of that judge has a squared times the information. Slopes are estimated
from the votes of each judge, with a normal prior around 1; a judge without votes has slope 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.pair_choice import ChosenPair
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError
from podium.data.ids import Id
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic
from podium.kernels.grouping import sum_by_group, sum_rows

__all__ = ["JudgeChoice", "JudgedPair", "check_costs", "estimate_slopes"]

SLOPE_ERROR = 0.5  # standard deviation of the slopes' prior
STEPS = 20


def check_costs(costs: Mapping[Id, float]) -> None:
    """Refuse costs that are not positive numbers."""
    if not costs:
        raise InputError("there is no judge with a cost", remedy="give at least one")
    for judge, cost in costs.items():
        if not (math.isfinite(cost) and cost > 0):
            raise InputError(f"the cost of {judge!r} is {cost}", remedy="costs are finite numbers above 0")


def estimate_slopes(tally: Tally, scores: F8) -> F8:
    """The slope of every expert of the tally, given scores of its items; at least 0."""
    gap = scores[tally.first] - scores[tally.second]
    wins, total = tally.won + tally.tied / 2, tally.won + tally.lost + tally.tied
    count = len(tally.experts)
    slopes = np.ones(count)
    for _ in range(STEPS):
        chance = logistic(slopes[tally.expert] * gap)
        gradient = sum_by_group(tally.expert, (wins - total * chance) * gap, count)
        curvature = sum_by_group(tally.expert, total * chance * (1 - chance) * gap**2, count)
        gradient -= (slopes - 1) / SLOPE_ERROR**2
        move = gradient / (curvature + SLOPE_ERROR**-2)
        slopes = np.clip(slopes + np.clip(move, -1, 1), 0.0, 10.0)
        if np.abs(move).max(initial=0.0) < 1e-6:
            break
    return slopes


class JudgedPair(NamedTuple):
    """Who compares a pair, at which cost, and the factor of the information of that vote."""

    judge: Id | None
    cost: float
    factor: float


class JudgeChoice:
    """Chooses the judge of a pair: the one whose vote is worth most for its cost."""

    def __init__(
        self, costs: Mapping[Id, float], tally: Tally | None, code: I8 | None, scores: F8, *, most: int
    ) -> None:
        """`code` numbers the items of the tally as the chosen pairs do; `scores` are by that number.

        A judge gets a pair at most `most` times, and only once if no judge has ever voted twice on one pair.
        """
        check_costs(costs)
        self.costs, self.most = dict(costs), most
        self.slopes: dict[Id, float] = dict.fromkeys(self.costs, 1.0)
        self.times_asked: dict[tuple[Id, int, int], int] = {}
        if tally is None or code is None:
            return
        by_expert = zip(map(str, tally.experts), estimate_slopes(tally, scores[code]).tolist(), strict=True)
        by_name = dict(by_expert)
        self.slopes = {judge: by_name.get(str(judge), 1.0) for judge in self.costs}
        (expert, first, second), (votes,) = sum_rows(
            (tally.expert, tally.first, tally.second), (tally.won + tally.lost + tally.tied,)
        )
        if votes.max(initial=0.0) > 1:  # votes on one pair differ in something else, such as the prompt
            return
        self.most = 1
        names = {str(judge): judge for judge in self.costs}
        judges = [names.get(str(name)) for name in tally.experts]
        for who, a, b in zip(expert.tolist(), code[first].tolist(), code[second].tolist(), strict=True):
            if (judge := judges[who]) is not None:
                self.times_asked[judge, min(a, b), max(a, b)] = 1

    def choose(self, pair: ChosenPair, left: float) -> JudgedPair | None:
        """The judge of a pair; None if nobody affordable is left for the pair."""
        best: tuple[float, Id] | None = None
        low, high = min(pair[:2]), max(pair[:2])
        for judge, cost in self.costs.items():
            information = self.slopes[judge] ** 2 * pair.information
            rate = information / (1 + information * pair.variance) / cost
            is_free = self.times_asked.get((judge, low, high), 0) < self.most
            if cost <= left and is_free and (best is None or rate > best[0]):
                best = rate, judge
        if best is None:
            return None
        judge = best[1]
        self.times_asked[judge, low, high] = self.times_asked.get((judge, low, high), 0) + 1
        return JudgedPair(judge, self.costs[judge], self.slopes[judge] ** 2)
