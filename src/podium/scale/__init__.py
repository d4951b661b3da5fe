"""Millions of queries: one Arrow function, and engines that run it on shards, on one machine or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.scale.apply import Summary, apply
from podium.scale.batch import BatchFunction, batch_function
from podium.scale.regroup import regroup

if TYPE_CHECKING:
    from podium.scale.shard_analysis import experts, leaderboard, trials, votes
    from podium.scale.tuning import Tuned, tune

__all__ = [
    "BatchFunction",
    "Summary",
    "Tuned",
    "apply",
    "batch_function",
    "experts",
    "leaderboard",
    "regroup",
    "trials",
    "tune",
    "votes",
]


def __getattr__(name: str) -> Any:
    """Fitting code is imported on demand: workers that only rank start faster without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from podium.scale import shard_analysis, tuning

    return getattr(tuning if name in tuning.__all__ else shard_analysis, name)
