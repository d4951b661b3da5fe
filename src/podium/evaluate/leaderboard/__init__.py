"""Leaderboards from votes, with honest uncertainty, checks, and the next comparison to ask for."""

from podium.evaluate.leaderboard.board import Leaderboard, Proposal, Settings, Standing, leaderboard
from podium.evaluate.leaderboard.by_query import leaderboards_by_query
from podium.evaluate.leaderboard.judges import Agreement, agreement
from podium.evaluate.leaderboard.saving import load, save
from podium.evaluate.leaderboard.scheme import Scheme
from podium.evaluate.leaderboard.tally import Tally
from podium.evaluate.leaderboard.trust import Check

__all__ = [
    "Agreement", "Check", "Leaderboard", "Proposal", "Scheme", "Settings", "Standing", "Tally", "agreement",
    "leaderboard", "leaderboards_by_query", "load", "save",
]  # fmt: skip
