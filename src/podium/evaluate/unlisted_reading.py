"""Whether the reading of unlisted items determines the winner."""

from __future__ import annotations

import math
from collections.abc import Mapping

from podium.core.errors import PodiumError, capture_warnings
from podium.data.consensus import TieRule
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Preferences, Unlisted
from podium.data.unlisted_rule import describe_unlisted_rule
from podium.evaluate.comparison import Comparison
from podium.evaluate.evaluation import evaluate_all
from podium.evaluate.result_rankings import aggregate_methods
from podium.methods.base import Aggregator

__all__ = ["warn_of_other_reading"]

NEAR = 1e-9  # means closer than this are equal


def warn_of_other_reading(
    comparison: Comparison,
    preferences: Preferences,
    methods: Mapping[str, Aggregator],
    labels: Labels,
    *,
    features: Features | None = None,
    ties: TieRule = "trec",
) -> str:
    """A sentence if another result wins when unlisted items are read the other way; empty otherwise.

    The methods are applied once more; rows that are not methods (single experts) are unchanged.
    """
    if not describe_unlisted_rule(preferences):
        return ""
    other: Unlisted = "unknown" if preferences.unlisted == "below" else "below"
    metric = comparison.metrics[0]
    means = {r.name: r.mean for r in comparison.rows if r.metric == metric}
    try:
        with capture_warnings():  # the comparison has already issued these warnings
            results, _ = aggregate_methods(methods.items(), preferences.with_unlisted(other), features)
            ranked = {n: c.with_ties(ties, single=ties == "trec") for n, c in results.items()}
            again = evaluate_all(ranked, labels, metric, queries="all")
    except PodiumError:  # no method supports the other reading
        return ""
    changed = {n: m for n, m in means.items() if n not in methods}
    changed |= {n: e.mean()[metric] for n, e in again.items() if n in means}
    here, there = _find_best(means), _find_best(changed)
    if here is None or there is None or changed[there] - changed.get(here, -math.inf) <= NEAR:
        return ""
    return (
        f"The reading of unlisted items decides the winner: by {metric}, {here} is best as they are read here "
        f"(unlisted: {preferences.unlisted}; {means[here]:.4f}), and {there} if they are read the other way (unlisted: "
        f"{other}; {changed[there]:.4f}). Choose the reading that fits the experts."
    )


def _find_best(means: Mapping[str, float]) -> str | None:
    known = {n: m for n, m in means.items() if m == m}
    return max(known, key=known.__getitem__) if known else None
