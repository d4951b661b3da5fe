"""Millions of queries: one Arrow function, and engines that run it on shards, on one machine or a cluster."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.scale.batch import BatchFunction, batch_function
    from podium.scale.labeled_queries import TunedMethod, labelled, trials, tune
    from podium.scale.regrouping import regroup
    from podium.scale.shard_counts import experts, leaderboard, votes
    from podium.scale.shard_run import Summary, apply

__all__ = [
    "BatchFunction",
    "Summary",
    "TunedMethod",
    "apply",
    "batch_function",
    "experts",
    "labelled",
    "leaderboard",
    "regroup",
    "trials",
    "tune",
    "votes",
]

# imported on demand: a worker that only ranks starts faster without the code that fits
_MODULES = {
    "batch": ("BatchFunction", "batch_function"),
    "labeled_queries": ("TunedMethod", "labelled", "trials", "tune"),
    "regrouping": ("regroup",),
    "shard_counts": ("experts", "leaderboard", "votes"),
    "shard_run": ("Summary", "apply"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module, names in _MODULES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
