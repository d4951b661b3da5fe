"""Leaderboards from votes, with honest uncertainty, checks, and the next comparison to ask for."""

from podium.evaluate.leaderboard.checks import LeaderboardCheck
from podium.evaluate.leaderboard.interval_scheme import IntervalScheme
from podium.evaluate.leaderboard.io import load, save
from podium.evaluate.leaderboard.judges import Agreement, compute_agreement
from podium.evaluate.leaderboard.query_leaderboards import leaderboards_by_query
from podium.evaluate.leaderboard.result import (
    Leaderboard,
    LeaderboardSettings,
    Proposal,
    Standing,
    leaderboard,
)
from podium.evaluate.leaderboard.tally import Tally

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
