"""Millions of queries: one Arrow function, and engines that carry it to shards, on one machine or on many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.scale.batches import BatchFunction, batch_function
from podium.scale.regroup import regroup
from podium.scale.runs import Summary, apply

if TYPE_CHECKING:
    from podium.scale.fitting import experts, leaderboard, trials, votes
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
    """What fits is imported where it is used: workers that only rank start sooner without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from podium.scale import fitting, tuning

    return getattr(tuning if name in tuning.__all__ else fitting, name)
