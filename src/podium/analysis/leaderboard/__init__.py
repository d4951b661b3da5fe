"""Leaderboards from votes, with confidence intervals, checks, and the next comparisons to request."""

from podium.analysis.leaderboard.board_file import load, save
from podium.analysis.leaderboard.checks import LeaderboardCheck
from podium.analysis.leaderboard.interval_scheme import IntervalScheme
from podium.analysis.leaderboard.judges import Agreement, compute_agreement
from podium.analysis.leaderboard.result import (
    Leaderboard,
    LeaderboardSettings,
    Proposal,
    Standing,
    leaderboard,
    leaderboards_by_query,
)
from podium.analysis.leaderboard.tally import Tally

__all__ = [
    "Agreement",
    "IntervalScheme",
    "Leaderboard",
    "LeaderboardCheck",
    "LeaderboardSettings",
    "Proposal",
    "Standing",
    "Tally",
    "compute_agreement",
    "leaderboard",
    "leaderboards_by_query",
    "load",
    "save",
]  # fmt: skip
