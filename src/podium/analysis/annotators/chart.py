"""Chart of annotators: the quality of each by name, or of many by their number of judgements."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from podium.analysis.annotators.annotator_verdicts import VERDICTS
from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.annotators.result import Annotators

__all__ = ["draw_annotators", "plot_annotators"]

NAMED = 40  # annotators up to which each has a line with its name
COLORS = ("#c0392b", "#e67e22", "#bdc3c7", "#95a5a6", "#2874a6")  # in the order of VERDICTS


def plot_annotators(annotators: Annotators, path: str | os.PathLike[str]) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_annotators(annotators), path)


def draw_annotators(annotators: Annotators) -> Any:
    """The annotators as an Altair chart."""
    alt = charts.import_altair()
    values = [
        {
            "annotator": str(row.annotator),
            "verdict": row.verdict,
            "flags": ", ".join(row.flags),
            **{name: getattr(row, name) for name in ("quality", "low", "high", "judgements")},
        }
        for row in annotators.rows
    ]
    color = alt.Color("verdict:N", scale=alt.Scale(domain=list(VERDICTS), range=list(COLORS)), title=None)
    span, title = alt.Scale(domain=[0, 1]), f"quality, {100 * annotators.level:.6g}% intervals"
    if len(values) <= NAMED:
        names = alt.Y("annotator:N", sort=alt.EncodingSortField("quality", order="descending"), title=None)
        base = alt.Chart(alt.Data(values=values)).encode(y=names, color=color)
        ends = {"x": alt.X("low:Q", scale=span, title=title), "x2": "high:Q"}
        at: dict[str, Any] = {"x": alt.X("quality:Q", scale=span, title=title)}
        chance = alt.Chart(alt.Data(values=[{"at": 0.5}])).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
        size: dict[str, Any] = {"width": 520, "height": {"step": 18}}
    else:
        x = alt.X("judgements:Q", scale=alt.Scale(type="log"), title="judgements")
        base = alt.Chart(alt.Data(values=values)).encode(x=x, color=color)
        ends = {"y": alt.Y("low:Q", scale=span, title=title), "y2": "high:Q"}
        at = {"y": alt.Y("quality:Q", scale=span, title=title)}
        chance = alt.Chart(alt.Data(values=[{"at": 0.5}])).mark_rule(strokeDash=[4, 4]).encode(y="at:Q")
        size = {"width": 520, "height": 320}
    bars = base.mark_rule(opacity=0.25 if len(values) > NAMED else 0.8).encode(**ends)
    tooltip = ["annotator:N", "verdict:N", "flags:N", "quality:Q", "low:Q", "high:Q", "judgements:Q"]
    dots = base.mark_point(filled=True, size=36, opacity=0.9).encode(**at, tooltip=tooltip)
    return (bars + dots + chance).properties(title=annotators.lines[0], **size)
