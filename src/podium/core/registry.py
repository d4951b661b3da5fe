"""Registries of methods, metrics and formats, filled from their classes; no list is maintained by hand.

A class is registered when it is defined with a `name`. Podium's packages are imported on first use; other
packages register through the entry-point group `podium.plugins`, whose entries name modules to import.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from typing import Any, Generic, TypeVar

from podium.core.errors import ParameterError
from podium.core.params import suggest_names

__all__ = ["Registry", "aggregators", "formats", "learners", "metrics", "models"]

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to classes of one kind, filled by `add` and by importing the package that defines them.

    A registry can lie `within` a wider one, which has its classes too.
    """

    def __init__(self, kind: str, package: str, within: Registry[T] | None = None) -> None:
        self._kind, self._package, self._within = kind, package, within
        self._classes: dict[str, T] = {}
        self._left: list[str] | None = None  # modules not imported yet; None before the first lookup
        self._lock = threading.RLock()
        self.changes = 0  # counts definitions, so that objects made from an older definition can be detected

    def add(self, name: str, cls: T) -> None:
        """Register a class; a second class with the same name is an error, so that names stay unique."""
        old: Any = self._classes.get(name)
        new: Any = cls
        if old is not None and (old.__module__, old.__qualname__) != (new.__module__, new.__qualname__):
            raise ParameterError(
                f"two {self._kind}s are called {name!r}: {old.__qualname__}, {new.__qualname__}"
            )
        if self._within is not None:
            self._within.add(name, cls)
        self._classes[name] = cls
        self.changes += 1

    def discard(self, name: str) -> None:
        """Unregister a class; for tests that define toy classes."""
        self._classes.pop(name, None)
        if self._within is not None:
            self._within.discard(name)

    def all(self) -> dict[str, T]:
        """Every known class by name, sorted."""
        self._import_modules()
        return dict(sorted(self._classes.items()))

    def get(self, name: str) -> T:
        """The class with that name, or a `ParameterError` that lists the known names."""
        if name not in self._classes:
            self._import_modules(until=name)
        if name not in self._classes:
            raise ParameterError(f"no {self._kind} is called {name!r}; {suggest_names(name, self._classes)}")
        return self._classes[name]

    def get_class(self, class_name: str, module: str) -> T:
        """The class with that class name, for the `__getattr__` of a module, which it names in the error."""
        # imports ask modules for their submodules in this way; only names of classes may load the package
        if class_name[:1].isupper():
            for cls in self.all().values():
                if getattr(cls, "__name__", "") == class_name:
                    return cls
        raise AttributeError(f"module {module!r} has no attribute {class_name!r}")

    def _import_modules(self, until: str | None = None) -> None:
        """Import the modules of the package, then the plug-ins, stopping once `until` is defined."""
        with self._lock:
            if self._left is None:
                package = importlib.import_module(self._package)
                modules = [m.name for m in pkgutil.walk_packages(package.__path__, f"{self._package}.")]
                # modules before packages: common methods are then found without importing the trainable ones
                self._left = [*sorted(modules, key=lambda n: (n.count("."), n)), ""]
            while self._left and until not in self._classes:
                if self._left[0]:
                    importlib.import_module(self._left[0])
                else:
                    _load_plug_ins()
                self._left.pop(0)


def _load_plug_ins() -> None:
    from importlib.metadata import entry_points  # slow to import, and only needed here

    for entry in entry_points(group="podium.plugins"):
        entry.load()


# everything that a model file can hold
models: Registry[Any] = Registry("method", "podium.methods")
aggregators: Registry[Any] = Registry("method", "podium.methods", within=models)
# models over features alone; their names are those of their classes
learners: Registry[Any] = Registry("learner", "podium.methods", within=models)
metrics: Registry[Any] = Registry("metric", "podium.metrics")
formats: Registry[Any] = Registry("format", "podium.formats")
