"""A metric by depth: NDCG@1, @2, ... with bands, and the judged share at each depth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.evaluate.evaluation import Evaluation, QueryScope, evaluate_all, mean_of
from podium.kernels.dispatch import F8
from podium.metrics.base import MetricSpec, parse
from podium.metrics.binary import Judged

__all__ = ["DEPTHS", "Curve", "curves"]

DEPTHS = tuple(range(1, 21))


@dataclass(frozen=True)
class Curve:
    """One result's metric at every depth, as means over queries; NaN where a figure is undefined.

    `low` and `high` bound the mean (Student's interval over queries, undefined for a single query); `judged`
    is the share of the first places that have a grade.
    """

    name: str
    metric: str  # without its cutoff
    depths: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    judged: tuple[float, ...]
    queries: int


def curves(
    results: Mapping[str, Consensus],
    labels: Labels,
    metric: MetricSpec = "ndcg",
    depths: Iterable[int] = DEPTHS,
    *,
    level: float = 0.95,
    queries: QueryScope = "all",
) -> tuple[Curve, ...]:
    """One curve per result, each computed in one pass; the metric's own cutoff is ignored.

    >>> from podium import Preferences, make
    >>> c = make("rrf").aggregate(Preferences.from_lists({q: {"e": ["a", "b"]} for q in "xy"}))
    >>> one, = curves({"rrf": c}, Labels.from_dict({q: {"b": 1} for q in "xy"}), "recall", [1, 2])
    >>> one.mean, one.judged
    ((0.0, 1.0), (0.0, 0.5))
    """
    base = parse(metric)
    if base.cutoff_rule == "none":
        raise ParameterError(f"{base} has no cutoff, so no curve; choose a metric such as ndcg, p or recall")
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    at = tuple(sorted(set(depths)))
    if not at or at[0] < 1:
        raise ParameterError(f"the depths are {at}; accepted: whole numbers from 1")
    asked = [base @ k for k in at] + [Judged(cutoff=k) for k in at]
    name = str(replace(base, cutoff=None))
    found = evaluate_all(results, labels, asked, queries=queries)
    return tuple(_build_curve(key, name, at, e, level) for key, e in found.items())


def _build_curve(name: str, metric: str, at: tuple[int, ...], found: Evaluation, level: float) -> Curve:
    values, judged = found.values[: len(at)], found.values[len(at) :]
    means = np.array([mean_of(v) for v in values])
    margin = _compute_margins(values, level)
    low, high = (tuple((means + side * margin).tolist()) for side in (-1, 1))
    shares = tuple(mean_of(v) for v in judged)
    return Curve(name, metric, at, tuple(means.tolist()), low, high, shares, len(found))


def _compute_margins(values: F8, level: float) -> F8:
    """Half-width of Student's interval of each row's mean; NaN for fewer than two queries."""
    n = (~np.isnan(values)).sum(axis=1)
    if values.shape[1] < 2 or (n < 2).any():
        return np.full(len(values), math.nan)
    from scipy.special import stdtrit

    spread = np.nanstd(values, axis=1, ddof=1)
    margins: F8 = stdtrit(n - 1, (1 + level) / 2) * spread / np.sqrt(n)
    return margins
