"""Chart of an explanation: one bar per expert."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.explain.result import Explanation

__all__ = ["draw_explanation", "plot_explanation"]

MOST = 40  # experts drawn, strongest first
FOR, AGAINST = "#0072b2", "#d55e00"  # safe for color-blind readers


def plot_explanation(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_explanation(explanation), path)


def draw_explanation(explanation: Explanation) -> Any:
    """The explanation as an Altair chart."""
    alt = charts.import_altair()
    strongest = explanation.contributions[:MOST]
    values: list[dict[str, Any]] = []
    for one in strongest:
        places = " / ".join("not listed" if r is None else f"rank {r}" for r in one.ranks)
        if one.votes is not None:
            places = f"{one.votes[0]:g} : {one.votes[1]:g} votes"
        edge = max(one.value, 0.0)
        values.append({"expert": str(one.expert), "value": one.value, "places": places, "edge": edge})
    order = [v["expert"] for v in values]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("expert:N", sort=order, title=None, axis=alt.Axis(labelLimit=200))
    )
    item, over = explanation.item, explanation.over
    what, how, title = f"adds to the score of {item.item}", "sums to the score", explanation.lines[0]
    if over is not None:
        what, how = f"favors {item.item} over {over.item}", "sums to the difference"
        where = "above" if item.rank < over.rank else "below"
        title = (
            f"{item.item} {where} {over.item} for {explanation.query} (places {item.rank} and {over.rank})"
        )
    if not explanation.exact:
        how = "score minus the score without the expert"
    if len(strongest) < len(explanation.contributions):
        how += f"; strongest {len(strongest)} of {len(explanation.contributions)} experts"
    color = alt.condition("datum.value >= 0", alt.value(FOR), alt.value(AGAINST))
    bars = base.mark_bar().encode(
        x=alt.X("value:Q", title=what), color=color, tooltip=["expert:N", "value:Q", "places:N"]
    )
    text = base.mark_text(align="left", dx=4, fontSize=10).encode(x=alt.X("edge:Q"), text="places:N")
    heading = {"text": title, "subtitle": f"{explanation.method}; {how}"}
    return (bars + text).properties(width=420, height={"step": 17}, title=heading)
