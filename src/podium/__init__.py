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
    "LabelledFeatures": "podium.aggregators.features.labelled_features",
    "LambdaRank": "podium.aggregators.supervised.lambdarank",
    "Preferences": "podium.data.preferences",
    "compare": "podium.evaluate",
    "cross_validate": "podium.evaluate",
    "diagnose": "podium.evaluate",
    "explain": "podium.evaluate.explanation",
    "fuse": "podium.aggregators.fuse",
    "load": "podium.models",
    "make": "podium.aggregators.base",
    "read": "podium.formats",
    "report": "podium.evaluate.report",
    "save": "podium.models",
    "tune": "podium.evaluate.tuning",
    "write": "podium.formats",
}

__all__ = ["__version__", *_NAMES]

if TYPE_CHECKING:
    from podium.aggregators.base import Aggregator, make
    from podium.aggregators.features.labelled_features import LabelledFeatures
    from podium.aggregators.fuse import fuse
    from podium.aggregators.supervised.lambdarank import LambdaRank
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.evaluate import compare, cross_validate, diagnose
    from podium.evaluate.explanation import explain
    from podium.evaluate.report import report
    from podium.evaluate.tuning import tune
    from podium.formats import read, write
    from podium.models import load, save


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name[:1].isupper():  # the aggregators, by class name
        from podium import registry

        for cls in registry.aggregators.all().values():
            if cls.__name__ == name:
                return cls
    raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
