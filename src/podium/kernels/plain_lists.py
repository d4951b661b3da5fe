"""Sums of points by position over plain Python lists of ids, and the order of such sums."""

from __future__ import annotations

from podium._core import plain_lists as core

__all__ = ["add_points", "rank_totals"]

add_points, rank_totals = core.add_points, core.rank_totals
