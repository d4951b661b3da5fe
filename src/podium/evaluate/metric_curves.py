"""A metric by depth: NDCG@1, @2, ... with bands, and the judged share at each depth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.core.results import Column, Result, build_grid
from podium.core.tables import Grid, format_decimal, format_percent
from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.evaluate.evaluation import QueryScope, evaluate_all, mean_of
from podium.kernels.distributions import student_quantile
from podium.metrics.base import MetricSpec, parse
from podium.metrics.binary import Judged

__all__ = ["DEPTHS", "Curve", "CurvePoint", "curve_grid", "curve_summary", "curves"]

DEPTHS = tuple(range(1, 21))
SHOWN_DEPTHS = (1, 3, 5, 10, 20)


class CurvePoint(NamedTuple):
    """The figures of a curve at one depth."""

    depth: int
    mean: float
    low: float
    high: float
    judged: float


@dataclass(frozen=True)
class Curve(Result[CurvePoint]):
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

    key = "depth"
    facts = ("name", "metric", "depths", "mean", "low", "high", "judged", "queries")

    @property
    def rows(self) -> tuple[CurvePoint, ...]:
        """One row per depth."""
        return tuple(map(CurvePoint, self.depths, self.mean, self.low, self.high, self.judged))

    @property
    def title(self) -> str:
        """The name of the result."""
        return self.name

    def grid(self) -> Grid:
        """One row per depth, with the band and the judged share."""
        return curve_grid([self])

    def chart(self) -> Any:
        """The line with its band, and the judged share below."""
        from podium.evaluate.comparison_chart import draw_curves

        return draw_curves([self])


def curve_grid(lines: Sequence[Curve]) -> Grid:
    """One row per result and depth, with the band and the judged share."""
    columns: list[Column] = [
        ("result", lambda r: r[0]),
        ("depth", lambda r: str(r[1].depth)),
        (f"{lines[0].metric}@depth", lambda r: format_decimal(r[1].mean)),
        ("low", lambda r: format_decimal(r[1].low)),
        ("high", lambda r: format_decimal(r[1].high)),
        ("judged", lambda r: format_percent(r[1].judged)),
    ]
    points = [(c.name, point) for c in lines for point in c.rows]
    return build_grid(columns, points, title=f"{lines[0].metric} by depth")


def curve_summary(lines: Sequence[Curve]) -> Grid:
    """A few depths side by side, each with its judged share in parentheses."""
    few = [k for k in SHOWN_DEPTHS if k in lines[0].depths] or lines[0].depths[:5]

    def format_point(c: Curve, depth: int) -> str:
        point = c[depth]
        share = format_percent(point.judged)
        return format_decimal(point.mean, 3) + (f" ({share})" if share else "")

    rows = tuple((c.name, *(format_point(c, k) for k in few)) for c in lines)
    title = f"{lines[0].metric} by depth (judged share)"
    return Grid((lines[0].metric, *(f"@{k}" for k in few)), rows, 1, title)


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
    metrics = [base @ k for k in at] + [Judged(cutoff=k) for k in at]
    name = str(replace(base, cutoff=None))
    evaluations = evaluate_all(results, labels, metrics, queries=queries)
    lines = []
    for key, evaluation in evaluations.items():
        values, judged = evaluation.values[: len(at)], evaluation.values[len(at) :]
        means = np.array([mean_of(v) for v in values])
        # half-widths of Student's intervals of the means
        margin, n = np.full(len(at), math.nan), (~np.isnan(values)).sum(axis=1)
        if values.shape[1] > 1 and (n > 1).all():
            spread = np.nanstd(values, axis=1, ddof=1)
            margin = student_quantile(n - 1, (1 + level) / 2) * spread / np.sqrt(n)
        low, high = (tuple((means + side * margin).tolist()) for side in (-1, 1))
        shares = tuple(mean_of(v) for v in judged)
        lines.append(Curve(key, name, at, tuple(means.tolist()), low, high, shares, len(evaluation)))
    return tuple(lines)
