"""What methods with weights by list share: the points of the rows, and weights as results show them."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from podium.core.params import Choice, Range, Tune
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.ordering import FLOOR
from podium.methods.base import Outcome
from podium.methods.scores import compute_normalization

__all__ = [
    "PointsRule",
    "RankOffset",
    "build_outcome",
    "build_weight_table",
    "compute_points",
    "sum_list_points",
]

TIE = 1e-9  # relative difference of scores that may be rounding error of correlations

PointsRule = Annotated[
    str, Choice("rrf", "minmax"), "points of an item in a list: 1 / (k + rank), or its min-max score"
]
RankOffset = Annotated[
    float, Range(0, 10_000), Tune(1, 200, log=True), "with points by rank: larger values flatten the top"
]


def compute_points(preferences: Preferences, rule: str, k: float) -> F8:
    """Points of every row; lists without scores have implied ones."""
    lists, sizes = preferences.lists, preferences.index.sizes
    if rule == "rrf":
        return np.asarray(1.0 / (k + lists.rank), np.float64)
    value, base, slope = compute_normalization(lists, lists.fill_scores(sizes), rule, sizes)
    which = lists.list_of_row
    return np.asarray(base[which] + slope[which] * value, np.float64)


def sum_list_points(preferences: Preferences, points: F8, list_weight: F8) -> F8:
    """Sum of the points of every slot, each times the weight of its list."""
    return preferences.lists.sum_affine(
        points, np.zeros(len(list_weight)), list_weight, len(preferences.index.items)
    )


def build_outcome(preferences: Preferences, rule: str, k: float, list_weight: F8) -> Outcome:
    """Scores as sums of points times weights; the expert weights are means over each expert's lists."""
    points, expert = compute_points(preferences, rule, k), preferences.lists.expert
    count = len(preferences.experts)
    lists = np.maximum(np.bincount(expert, minlength=count), 1)
    return Outcome(
        sum_list_points(preferences, points, list_weight),
        tolerance=TIE,
        floor=0.0 if rule == "rrf" else FLOOR,
        expert_weights=np.asarray(np.bincount(expert, list_weight, count) / lists, np.float64),
    )


def build_weight_table(preferences: Preferences, list_weight: F8) -> dict[Id, dict[Id, float]]:
    """The weights as query -> expert -> weight."""
    lists, experts = preferences.lists, preferences.experts.tolist()
    table: dict[Id, dict[Id, float]] = {query: {} for query in preferences.queries.tolist()}
    queries = preferences.queries.take(lists.query_of_list).tolist()
    for query, expert, weight in zip(queries, lists.expert.tolist(), list_weight.tolist(), strict=True):
        table[query][experts[expert]] = weight
    return table
