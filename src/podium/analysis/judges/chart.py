"""Chart of a panel of judges: agreement with the gold, and the rules for the panel's answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError
from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.judges.result import PanelAssessment

__all__ = ["draw_panel", "plot_panel"]


def plot_panel(panel: PanelAssessment, path: str | os.PathLike[str]) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_panel(panel), path)


def draw_panel(panel: PanelAssessment) -> Any:
    """The panel as an Altair chart: a dot with its interval per judge, a square per rule."""
    values: list[dict[str, Any]] = [
        {"name": str(row.judge), "kind": "judge", "right": row.accuracy, "low": row.low, "high": row.high}
        for row in panel.rows
        if row.accuracy is not None
    ]
    if not values:
        raise ParameterError("the chart shows agreement with gold, and there is no gold")
    for rule in () if panel.choice is None else panel.choice.rules:
        kind = "chosen rule" if rule.chosen else "rule"
        share = rule.right
        values.append({"name": rule.rule, "kind": kind, "right": share, "low": share, "high": share})
    alt = charts.import_altair()
    names = [v["name"] for v in sorted(values, key=lambda v: -(v["right"] or 0.0))]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=240)),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=["judge", "rule", "chosen rule"])),
    )
    scale = alt.Scale(zero=False, nice=True)
    title = f"agreement with the gold, {100 * panel.level:.6g}% intervals of judges"
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale, title=title, axis=alt.Axis(format="%")), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(
        x=alt.X("right:Q", scale=scale),
        shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=["judge", "rule", "chosen rule"])),
        tooltip=["name:N", "kind:N", "right:Q", "low:Q", "high:Q"],
    )
    return (bars + dots).properties(width=420, title=panel.headline())
