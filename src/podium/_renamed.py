"""Module paths of earlier versions, which work for one more release: importing one warns and gives the new module."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["install_finder"]

# an entry also covers the modules below it; the longest one that fits counts
RENAMED = {
    "podium.aggregators": "podium.methods",
    "podium.aggregators.chains": "podium.methods.markov",
    "podium.aggregators.features": "podium.methods.feature",
    "podium.aggregators.permutations": "podium.methods.rankings",
    "podium.aggregators.positions": "podium.methods.positional",
    "podium.aggregators.supervised": "podium.methods.learned",
    "podium.aggregators.supervised.base": "podium.methods.learned.supervised_method",
    "podium.data.vocabulary": "podium.data.ids",
    "podium.errors": "podium.core.errors",
    "podium.evaluate.annotators": "podium.analysis.annotators",
    "podium.evaluate.diagnostics": "podium.analysis.experts",
    "podium.evaluate.explanation": "podium.analysis.explain",
    "podium.evaluate.figures": "podium.analysis.figures",
    "podium.evaluate.leaderboard": "podium.analysis.leaderboard",
    "podium.evaluate.report": "podium.reporting",
    "podium.evaluate.reproduce": "podium_papers",
    "podium.params": "podium.core.params",
    "podium.registry": "podium.core.registry",
}


def find_new_path(old: str) -> str | None:
    """Where a module is now, None if it was not moved.

    >>> find_new_path("podium.aggregators.positions"), find_new_path("podium.errors"), find_new_path("podium.data")
    ('podium.methods.positional', 'podium.core.errors', None)
    """
    part = old if old.startswith("podium.") else ""
    while part:
        if part in RENAMED:
            return RENAMED[part] + old.removeprefix(part)
        part = part.rpartition(".")[0]
    return None


class _RenamedModuleFinder:
    """Comes first on the import path: the file finder would load a module below an old package a second time."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return None if find_new_path(name) is None else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = str(find_new_path(spec.name))
        warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the old name here


def install_finder() -> None:
    """Make the old paths importable, once."""
    if not any(isinstance(finder, _RenamedModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RenamedModuleFinder())
