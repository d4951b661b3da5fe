"""Chart of a leaderboard: scores with intervals, best on top."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.leaderboard.contextual_board import ContextualLeaderboard
    from podium.analysis.leaderboard.result import Leaderboard

__all__ = ["draw_leaderboard", "plot_leaderboard"]

MOST = 60  # default number of items drawn


def plot_leaderboard(board: Leaderboard, path: str | os.PathLike[str], *, top: int | None = None) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_leaderboard(board, top=top), path)


def draw_leaderboard(board: Leaderboard | ContextualLeaderboard, *, top: int | None = None) -> Any:
    """The leaderboard as an Altair chart."""
    alt = charts.import_altair()
    rows = board.rows[: top or MOST]
    values = [
        {
            "item": str(row.item),
            "score": row.score,
            # an open interval ends at the score
            "low": row.low if math.isfinite(row.low) else row.score,
            "high": row.high if math.isfinite(row.high) else row.score,
            "ranks": f"{row.rank_low}-{row.rank_high}",
            "votes": row.votes,
        }
        for row in rows
    ]
    names = [v["item"] for v in values]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("item:N", sort=names, title=None, axis=alt.Axis(labelLimit=240))
    )
    scale = alt.Scale(zero=False, nice=True)
    unit = "score" if board.settings.scale == "natural" else "score (Elo points)"
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("low:Q", scale=scale, title=f"{unit}, {100 * board.settings.level:.6g}% intervals"),
        x2="high:Q",
    )
    fields = ["item:N", "score:Q", "low:Q", "high:Q", "ranks:N", "votes:Q"]
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=alt.X("score:Q", scale=scale), tooltip=fields
    )
    title = f"{len(board.rows):,} items, {board.tally.votes:,.10g} votes"
    return (bars + dots).properties(width=460, height={"step": 16}, title=title)
