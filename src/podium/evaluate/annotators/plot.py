"""Annotators as a picture: how much each judged, and how well."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from podium.errors import ParameterError
from podium.evaluate.annotators.report import VERDICTS, Annotators
from podium.evaluate.leaderboard.plot import check_suffix

__all__ = ["chart", "check_suffix", "plot", "save_chart"]

COLOURS = ("#c0392b", "#e67e22", "#95a5a6", "#2874a6")  # in the order of the verdicts


def plot(found: Annotators, path: str | os.PathLike[str]) -> None:
    """Write the picture to a .svg, .png or .html file; the page needs no network."""
    check_suffix(Path(path))
    save_chart(chart(found), path)


def save_chart(drawn: Any, path: str | os.PathLike[str]) -> None:
    """Write a chart by the suffix of the file."""
    target = Path(path)
    if target.suffix == ".html":
        target.write_text(drawn.to_html(inline=True), encoding="utf-8")
    else:
        drawn.save(str(target), scale_factor=2 if target.suffix == ".png" else 1)


def altair() -> Any:
    """Altair, or an error that says how to get it."""
    try:
        importlib.import_module("vl_convert")
        return importlib.import_module("altair")
    except ImportError:
        remedy = "install podium-rank[plots]"
        raise ParameterError(f"plots need altair and vl-convert-python; {remedy}") from None


def chart(found: Annotators) -> Any:
    """The picture as an Altair chart."""
    alt = altair()
    values = [
        {
            "annotator": str(row.annotator),
            "verdict": row.verdict,
            "flags": ", ".join(row.flags),
            **{name: getattr(row, name) for name in ("quality", "low", "high", "judgements")},
        }
        for row in found.rows
    ]
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=list(VERDICTS), range=list(COLOURS)), title=None)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("judgements:Q", scale=alt.Scale(type="log"), title="judgements"), color=colour
    )
    span = alt.Scale(domain=[0, 1])
    title = f"quality, {100 * found.level:.6g}% intervals"
    bars = base.mark_rule(opacity=0.25).encode(y=alt.Y("low:Q", scale=span, title=title), y2="high:Q")
    told = ["annotator:N", "verdict:N", "flags:N", "quality:Q", "low:Q", "high:Q", "judgements:Q"]
    dots = base.mark_point(filled=True, size=36, opacity=0.9).encode(
        y=alt.Y("quality:Q", scale=span), tooltip=told
    )
    chance = alt.Chart(alt.Data(values=[{"y": 0.5}])).mark_rule(strokeDash=[4, 4]).encode(y="y:Q")
    return (bars + dots + chance).properties(width=520, height=320, title=found.lines[0])
