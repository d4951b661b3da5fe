"""Podium: many rankings in, one consensus out.

>>> import podium
>>> podium.fuse([["a", "b", "c"], ["b", "c", "a"], ["b", "a"]]).ranking
['b', 'a', 'c']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> module; nothing is imported before it is asked for
_NAMES = {
    "Aggregator": "podium.aggregators.base",
    "Consensus": "podium.data.consensus",
    "Dataset": "podium.data.dataset",
    "Features": "podium.data.features",
    "Labels": "podium.data.labels",
    "Preferences": "podium.data.preferences",
    "ReciprocalRankFusion": "podium.aggregators.positions",
    "fuse": "podium.aggregators.fuse",
    "make": "podium.aggregators.base",
}

__all__ = ["__version__", *_NAMES]

if TYPE_CHECKING:
    from podium.aggregators.base import Aggregator, make
    from podium.aggregators.fuse import fuse
    from podium.aggregators.positions import ReciprocalRankFusion
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
