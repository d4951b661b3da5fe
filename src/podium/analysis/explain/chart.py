"""Chart of an explanation: one bar per expert."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.explain.result import ExpertContribution, Explanation

__all__ = ["draw_explanation", "plot_explanation"]

MOST = 40  # experts drawn, strongest first
FOR, AGAINST = "#0072b2", "#d55e00"  # safe for color-blind readers


def plot_explanation(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_explanation(explanation), path)


def draw_explanation(explanation: Explanation) -> Any:
    """The explanation as an Altair chart."""
    alt = charts.import_altair()
    voices = explanation.voices[:MOST]
    values = [_build_bar(v) for v in voices]
    order = [v["expert"] for v in values]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("expert:N", sort=order, title=None, axis=alt.Axis(labelLimit=200))
    )
    what = _describe_axis(explanation)
    color = alt.condition("datum.value >= 0", alt.value(FOR), alt.value(AGAINST))
    bars = base.mark_bar().encode(
        x=alt.X("value:Q", title=what), color=color, tooltip=["expert:N", "value:Q", "places:N"]
    )
    text = base.mark_text(align="left", dx=4, fontSize=10, color="#444444").encode(
        x=alt.X("edge:Q"), text="places:N"
    )
    return (bars + text).properties(
        width=420, height={"step": 17}, title=_build_title(explanation, len(voices))
    )


def _build_bar(voice: ExpertContribution) -> dict[str, Any]:
    """One bar with its label: ranks in the expert's list, or votes."""
    if voice.votes is not None:
        places = f"{voice.votes[0]:g} : {voice.votes[1]:g} votes"
    else:
        places = " / ".join("not listed" if r is None else f"rank {r}" for r in voice.ranks)
    edge = max(voice.value, 0.0)
    return {"expert": str(voice.expert), "value": voice.value, "places": places, "edge": edge}


def _describe_axis(explanation: Explanation) -> str:
    if explanation.over is not None:
        return f"favors {explanation.item.item} over {explanation.over.item}"
    return f"adds to the score of {explanation.item.item}"


def _build_title(explanation: Explanation, shown: int) -> Any:
    how = "sums to the score" if explanation.over is None else "sums to the difference"
    if not explanation.exact:
        how = "score minus the score without the expert"
    more = (
        f"; strongest {shown} of {len(explanation.voices)} experts" if shown < len(explanation.voices) else ""
    )
    text = explanation.lines[0]
    if explanation.over is not None:
        where = "above" if explanation.item.rank < explanation.over.rank else "below"
        places = f"places {explanation.item.rank} and {explanation.over.rank}"
        text = f"{explanation.item.item} {where} {explanation.over.item} for {explanation.query} ({places})"
    return {"text": text, "subtitle": f"{explanation.method}; {how}{more}"}
