"""The value of each expert by labels: the metric of its own lists, and the consensus with and without it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.ids import id_order
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.evaluate.evaluation import mean_of
from podium.evaluate.result_rankings import compute_rbo_by_query, expert_rankings
from podium.evaluate.significance import assess_differences, holm
from podium.kernels.dispatch import F8, I8
from podium.methods.base import Aggregator, make
from podium.metrics.base import Metric, measure
from podium.metrics.binary import Judged
from podium.metrics.judgements import Judgements

if TYPE_CHECKING:
    from podium.data.features import Features

__all__ = [
    "LeaveOneOutEffects",
    "SingleExpertScores",
    "find_measured_queries",
    "leave_one_out",
    "measure_single_experts",
    "resolve_method",
]


class SingleExpertScores(NamedTuple):
    """Per expert; NaN if undefined."""

    value: F8
    judged: F8


class LeaveOneOutEffects(NamedTuple):
    """Metric of the full consensus minus the metric without each expert."""

    value: float
    effect: F8
    low: F8
    high: F8
    p: F8  # paired t test, Holm-corrected over the experts
    moved: F8  # 1 - RBO of the two rankings


def resolve_method(method: str | Aggregator | None, preferences: Preferences) -> Aggregator:
    """The requested method, or a simple one that reads these preferences."""
    if method is None:
        method = "copeland" if Form.COMPARISON in preferences.forms else "rrf"
    made = make(method)
    if made.tags.supervised:
        raise ParameterError(
            f"{made.name} learns from labels, so it cannot be applied without one of its experts; "
            "choose a method that does not learn, such as rrf"
        )
    return made


def find_measured_queries(preferences: Preferences, labels: Labels) -> I8:
    """Label codes of the queries that have a grade and occur here, in id order: row order must not matter."""
    judged = Judgements.for_labels(labels).judged_counts > 0
    here = preferences.queries.codes_of(labels.queries) >= 0
    codes = np.flatnonzero(judged & here).tolist()
    return np.array(sorted(codes, key=lambda code: id_order(labels.queries[code])), np.int64)


def measure_single_experts(
    preferences: Preferences, labels: Labels, metric: Metric, depth: int, which: I8
) -> SingleExpertScores:
    """Metric of each expert's own lists; an unanswered query counts as 0."""
    value, judged = (np.full(len(preferences.experts), math.nan) for _ in range(2))
    if not len(which) or not preferences.lists.rows:
        return SingleExpertScores(value, judged)
    answered = np.bincount(preferences.lists.expert, minlength=len(value))
    for code in np.flatnonzero(answered):
        ranking = with_trec_ties(expert_rankings(preferences, preferences.experts[int(code)]))
        values = measure((metric, Judged(cutoff=depth)), ranking, labels, which)
        theirs = ranking.queries.codes_of(labels.queries.take(which)) >= 0
        value[code], judged[code] = mean_of(values[0]), mean_of(values[1][theirs])
    return SingleExpertScores(value, judged)


def with_trec_ties(ranking: Consensus) -> Consensus:
    """Break ties as trec_eval does, to match the figures of a comparison."""
    return ranking.with_ties("trec", single=True)


def leave_one_out(
    preferences: Preferences,
    labels: Labels | None,
    method: Aggregator,
    metric: Metric,
    which: I8,
    features: Features | None,
    level: float,
) -> LeaveOneOutEffects:
    """One aggregation per expert without that expert; intervals are paired over queries."""
    whole = with_trec_ties(method.aggregate(preferences, features))
    n = len(preferences.experts)
    moved, effects = np.full(n, math.nan), np.full((n, len(which)), math.nan)
    base = measure((metric,), whole, labels, which)[0] if labels is not None else np.zeros(0)
    if n > 1:
        for code in np.flatnonzero(preferences.active_experts):
            expert = preferences.experts[int(code)]
            others, given = method, method.weights
            if given is not None:
                named = (
                    given
                    if isinstance(given, Mapping)
                    else dict(zip(preferences.experts, given, strict=True))
                )
                left = {e: w for e, w in named.items() if e != expert}
                if not any(left.values()):
                    continue
                others = dataclasses.replace(method, weights=left)
            less = with_trec_ties(others.aggregate(preferences.without_expert(expert), features))
            moved[code] = 1.0 - mean_of(compute_rbo_by_query(whole, less))
            if labels is not None:
                effects[code] = base - measure((metric,), less, labels, which)[0]
    p, low, high = assess_differences(effects, level=level)
    return LeaveOneOutEffects(
        mean_of(base), np.array([mean_of(e) for e in effects]), low, high, holm(p), moved
    )
