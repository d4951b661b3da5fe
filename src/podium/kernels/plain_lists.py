"""Sums of points by position over plain Python lists of ids, and the order of such sums."""

from __future__ import annotations

from podium._core.plain_lists import add_points, rank_totals

__all__ = ["add_points", "rank_totals"]
