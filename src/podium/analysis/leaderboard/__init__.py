"""Leaderboards from votes, with confidence intervals, checks, and the next comparisons to request."""

from podium.analysis.leaderboard.anytime_board import (
    AnytimeLeaderboard,
    AnytimeStanding,
    PairSequence,
    anytime_leaderboard,
)
from podium.analysis.leaderboard.board_file import load, save
from podium.analysis.leaderboard.checks import LeaderboardCheck
from podium.analysis.leaderboard.comparison_planner import ComparisonPlanner
from podium.analysis.leaderboard.confidence_sequences import PairEvidence
from podium.analysis.leaderboard.contextual_board import (
    ContextualLeaderboard,
    CovariateEffect,
    contextual_leaderboard,
)
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
from podium.analysis.leaderboard.slices import SliceBoards, SliceStanding
from podium.analysis.leaderboard.suggestions import (
    SuggestedComparison,
    Suggestions,
    suggest_comparisons,
)
from podium.analysis.leaderboard.tally import Tally

__all__ = [
    "Agreement",
    "AnytimeLeaderboard",
    "AnytimeStanding",
    "ComparisonPlanner",
    "ContextualLeaderboard",
    "CovariateEffect",
    "IntervalScheme",
    "Leaderboard",
    "LeaderboardCheck",
    "LeaderboardSettings",
    "PairEvidence",
    "PairSequence",
    "Proposal",
    "SliceBoards",
    "SliceStanding",
    "Standing",
    "SuggestedComparison",
    "Suggestions",
    "Tally",
    "anytime_leaderboard",
    "compute_agreement",
    "contextual_leaderboard",
    "leaderboard",
    "leaderboards_by_query",
    "load",
    "save",
    "suggest_comparisons",
]  # fmt: skip
