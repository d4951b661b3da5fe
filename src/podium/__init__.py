"""Podium: many rankings in, one consensus out.

>>> import podium
>>> podium.fuse([["a", "b", "c"], ["b", "c", "a"], ["b", "a"]]).ranking
['b', 'a', 'c']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from podium import _renamed
from podium.core.version import __version__

# public name -> module; nothing is imported before it is used, and methods are found by class name
_NAMES = {
    "Aggregator": "podium.methods.base",
    "Consensus": "podium.data.consensus",
    "Dataset": "podium.data.dataset",
    "Features": "podium.data.features",
    "Labels": "podium.data.labels",
    "LabelledFeatures": "podium.methods.feature.labelled_features",
    "LambdaRank": "podium.methods.learned.lambdarank",
    "Preferences": "podium.data.preferences",
    "choose_method": "podium.methods.automatic_choice",
    "compare": "podium.evaluate",
    "cross_validate": "podium.evaluate",
    "deploy": "podium.deployment",
    "diagnose": "podium.analysis.experts",
    "explain": "podium.analysis.explain",
    "fuse": "podium.methods.fuse",
    "load": "podium.models",
    "make": "podium.methods.base",
    "read": "podium.formats",
    "report": "podium.reporting",
    "save": "podium.models",
    "suggest_comparisons": "podium.analysis.leaderboard",
    "tune": "podium.evaluate.tuning",
    "write": "podium.formats",
}

__all__ = [
    "Aggregator",
    "Consensus",
    "Dataset",
    "Features",
    "LabelledFeatures",
    "Labels",
    "LambdaRank",
    "Preferences",
    "__version__",
    "choose_method",
    "compare",
    "cross_validate",
    "deploy",
    "diagnose",
    "explain",
    "fuse",
    "load",
    "make",
    "read",
    "report",
    "save",
    "suggest_comparisons",
    "tune",
    "write",
]

if TYPE_CHECKING:
    from podium import methods
    from podium.analysis.experts import diagnose
    from podium.analysis.explain import explain
    from podium.analysis.leaderboard import suggest_comparisons
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.deployment import deploy
    from podium.evaluate import compare, cross_validate
    from podium.evaluate.tuning import tune
    from podium.formats import read, write
    from podium.methods import *  # noqa: F403 - it has an `__all__`
    from podium.methods.automatic_choice import choose_method
    from podium.methods.base import Aggregator, make
    from podium.methods.feature.labelled_features import LabelledFeatures
    from podium.methods.fuse import fuse
    from podium.methods.learned.lambdarank import LambdaRank
    from podium.models import load, save
    from podium.reporting import report

    __all__ += methods.__all__  # at run time a star import does not load every method
else:

    def __getattr__(name: str) -> object:
        if name in _NAMES:
            return getattr(importlib.import_module(_NAMES[name]), name)
        from podium.core import registry

        return registry.aggregators.get_class(name, __name__)


def __dir__() -> list[str]:
    return __all__


_renamed.install_finder()
