"""Charts of a comparison: metric curves with bands, and differences by query."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError
from podium.core.text import format_count
from podium.evaluate import charts
from podium.metrics.base import MetricSpec

if TYPE_CHECKING:
    from podium.evaluate.comparison_result import Comparison
    from podium.evaluate.metric_curves import Curve

__all__ = ["draw_curves", "draw_differences", "plot_comparison"]

MOST = 12  # results whose differences are drawn


def plot_comparison(
    comparison: Comparison,
    lines: Sequence[Curve],
    path: str | os.PathLike[str],
    *,
    metric: MetricSpec | None = None,
) -> None:
    """Write curves above differences by query to a .svg, .png or .html file that needs no network."""
    alt = charts.import_altair()
    parts = [draw_curves(lines)] if lines else []
    if len(comparison.evaluations) > 1:
        parts.append(draw_differences(comparison, metric))
    if not parts:
        raise ParameterError("there is nothing to draw; compare two results or more")
    charts.save_chart(alt.vconcat(*parts), path)


def draw_curves(lines: Sequence[Curve]) -> Any:
    """One line with a band per result; below, the judged share at each depth."""
    alt = charts.import_altair()
    values: list[dict[str, Any]] = [
        {"name": c.name, **point._asdict()} for c in lines for point in c.rows if math.isfinite(point.mean)
    ]
    bands = [v for v in values if math.isfinite(v["low"]) and math.isfinite(v["high"])]
    values = [
        {k: v for k, v in row.items() if not isinstance(v, float) or math.isfinite(v)} for row in values
    ]
    names = [c.name for c in lines]
    color = alt.Color("name:N", sort=names, title=None)
    x = alt.X(
        "depth:Q", title="depth k", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(zero=False, nice=False)
    )
    title, scale = f"{lines[0].metric}@k", alt.Scale(zero=False)
    y = alt.Y("mean:Q", title=title, scale=scale)
    shade = alt.Chart(alt.Data(values=bands)).mark_area(opacity=0.12).encode(
        x=x, y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q", color=color
    )  # fmt: skip
    tips = [
        "name:N",
        "depth:Q",
        *(alt.Tooltip(f"{f}:Q", format=".4f") for f in ("mean", "low", "high", "judged")),
    ]
    line = (
        alt.Chart(alt.Data(values=values)).mark_line(point=True).encode(x=x, y=y, color=color, tooltip=tips)
    )
    queries = format_count(lines[0].queries, "query", "queries")
    above = (shade + line).properties(width=520, height=260, title=f"{lines[0].metric} by depth, {queries}")
    share = alt.Y("judged:Q", title="judged share", scale=alt.Scale(domain=[0, 1]))
    below = alt.Chart(alt.Data(values=values)).mark_line().encode(x=x, y=share, color=color, tooltip=tips)
    return alt.vconcat(above, below.properties(width=520, height=70))


def draw_differences(comparison: Comparison, metric: MetricSpec | None = None) -> Any:
    """One panel per result: its differences from the baseline by query, largest first."""
    alt = charts.import_altair()
    wanted = comparison.metrics[0] if metric is None else str(metric)
    panels = []
    for name in [n for n in comparison.evaluations if n != comparison.baseline][:MOST]:
        rows = [r for r in comparison.per_query(wanted, name=name) if math.isfinite(r.difference)]
        rows.sort(key=lambda r: -r.difference)
        values = [{"place": i, "query": str(r.query), "difference": r.difference} for i, r in enumerate(rows)]
        panels.append(
            alt.Chart(alt.Data(values=values))
            .mark_bar()
            .encode(
                x=alt.X("place:O", axis=None),
                y=alt.Y("difference:Q", title=None),
                color=alt.condition("datum.difference >= 0", alt.value("#2874a6"), alt.value("#c0392b")),
                tooltip=["query:N", alt.Tooltip("difference:Q", format="+.4f")],
            )
            .properties(width=240, height=90, title=f"{name} - {comparison.baseline}, {wanted}")
        )
    return alt.concat(*panels, columns=2).resolve_scale(y="shared")
