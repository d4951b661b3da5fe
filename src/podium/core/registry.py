"""Registries of methods, metrics and formats, filled from their classes; no list is maintained by hand.

A class is registered when it is defined with a `name`, and can be looked up by its `aliases` too: the names that
other tools have for it. Podium's packages are imported on first use; other packages register through the
entry-point group `podium.plugins`, whose entries name modules to import.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import Any, Generic, TypeVar

from podium.core.errors import ParameterError
from podium.core.params import suggest_names

T = TypeVar("T")
_PLUG_INS = "podium.plugins"  # the entry-point group


class Registry(Generic[T]):
    """Names to classes of one kind, filled by `add` and by importing the package that defines them.

    A registry can lie `within` a wider one, which has its classes too.
    """

    def __init__(self, kind: str, package: str, within: Registry[T] | None = None) -> None:
        self._kind, self._package, self._within = kind, package, within
        self._classes: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
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
        for alias in vars(cls).get("aliases", ()):
            if self._aliases.setdefault(alias, name) != name:
                raise ParameterError(
                    f"two {self._kind}s are called {alias!r}: {self._aliases[alias]}, {name}"
                )
        self.changes += 1

    def discard(self, name: str) -> None:
        """Unregister a class; for tests that define toy classes."""
        self._classes.pop(name, None)
        self._aliases = {alias: n for alias, n in self._aliases.items() if n != name}
        if self._within is not None:
            self._within.discard(name)

    def all(self) -> dict[str, T]:
        """Every known class by name, sorted."""
        self._import_modules()
        return dict(sorted(self._classes.items()))

    def iterate(self) -> Iterator[tuple[str, T]]:
        """Every known class by name, each before the modules that define the next ones are imported."""
        seen: set[str] = set()
        while True:
            self._import_modules(lambda: not self._classes.keys() <= seen)
            new = [name for name in self._classes if name not in seen]
            if not new:
                return
            for name in new:
                seen.add(name)
                yield name, self._classes[name]

    def get(self, name: str) -> T:
        """The class with that name or alias, or a `ParameterError` that lists the known names."""
        if not self._is_known(name):
            self._import_modules(lambda: self._is_known(name))
        if not self._is_known(name):
            raise ParameterError(f"no {self._kind} is called {name!r}; {suggest_names(name, self._classes)}")
        return self._classes[self._aliases.get(name, name)]

    def __contains__(self, name: str) -> bool:
        self._import_modules(lambda: self._is_known(name))
        return self._is_known(name)

    def _is_known(self, name: str) -> bool:
        return name in self._classes or name in self._aliases

    def get_class(self, class_name: str, module: str) -> T:
        """The class with that class name, for the `__getattr__` of a module, which it names in the error."""
        # imports ask modules for their submodules in this way; only names of classes may load the package
        if class_name[:1].isupper():
            self._import_modules(lambda: self._find_class(class_name) is not None)
            cls = self._find_class(class_name)
            if cls is not None:
                return cls
        raise AttributeError(f"module {module!r} has no attribute {class_name!r}")

    def _find_class(self, class_name: str) -> T | None:
        """The class with that class name, if it is registered already."""
        classes = self._classes.values()
        return next((cls for cls in classes if getattr(cls, "__name__", "") == class_name), None)

    def _import_modules(self, is_complete: Callable[[], bool] = lambda: False) -> None:
        """Import the modules of the package, then the plug-ins, until `is_complete` is true."""
        with self._lock:
            if self._left is None:
                package = importlib.import_module(self._package)
                modules = [m.name for m in pkgutil.walk_packages(package.__path__, f"{self._package}.")]
                first = vars(package).get("IMPORTED_FIRST", ())
                # modules before packages: common methods are then found without importing the trainable ones
                rest = sorted(set(modules) - set(first), key=lambda n: (n.count("."), n))
                self._left = [*first, *rest, ""]
            while self._left and not is_complete():
                if self._left[0]:
                    importlib.import_module(self._left[0])
                elif _may_have_plug_ins():
                    # its import and its parser take ten times as long as the search
                    from importlib.metadata import entry_points

                    for entry in entry_points(group=_PLUG_INS):
                        entry.load()
                self._left.pop(0)


def _may_have_plug_ins() -> bool:
    """Whether a package on `sys.path` may name plug-ins; True for archives, which are not searched."""
    # finders other than that of Python itself may find packages in their own way
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return True
    for path in sys.path:
        if path.endswith(".egg"):
            return True
        try:
            names = [n for n in os.listdir(path or ".") if n.endswith((".dist-info", ".egg-info"))]
        except NotADirectoryError:
            return True
        except OSError:
            continue
        for name in names:
            with (
                contextlib.suppress(OSError),
                open(os.path.join(path, name, "entry_points.txt"), "rb") as file,
            ):
                if _PLUG_INS.encode() in file.read():
                    return True
    return False


# everything that a model file can hold
models: Registry[Any] = Registry("method", "podium.methods")
aggregators: Registry[Any] = Registry("method", "podium.methods", within=models)
# models over features alone; their names are those of their classes
learners: Registry[Any] = Registry("learner", "podium.methods", within=models)
# search engines and frameworks that a method can be deployed to
engines: Registry[Any] = Registry("engine", "podium.methods.dialects")
metrics: Registry[Any] = Registry("metric", "podium.metrics")
# what the CRF weighs, by expert and item
potentials: Registry[Any] = Registry("potential", "podium.methods.learned")
formats: Registry[Any] = Registry("format", "podium.formats")
# formats of particular tools, detected by the keys of their records
recipes: Registry[Any] = Registry("recipe", "podium.formats.recipes", within=formats)
