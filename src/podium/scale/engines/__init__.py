"""Engines: each takes a job and shards and yields the records of the shards as they complete, in any order.

They send file names, not rows: workers write the results, so all machines must have access to the folders. An
engine is one module here, `NAME_engine.py`, with a function `run` (see `Engine`) and, if it needs a library,
its name as `LIBRARY`; it is then known everywhere by its name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from podium.core.errors import ParameterError
from podium.core.optional import check_package
from podium.core.params import suggest_names

if TYPE_CHECKING:
    from podium.storage.shards import Shard

    Work = Callable[[Shard], Any]

__all__ = ["Engine", "find_engine", "list_engines"]

SUFFIX = "_engine"


class Engine(Protocol):
    """The engine interface; `address` is a running cluster, `workers` the number of concurrent shards."""

    def __call__(
        self, work: Work, shards: Sequence[Shard], *, workers: int | None, address: str | None
    ) -> Iterator[Any]:
        """The result of `work` for each shard."""


def list_engines() -> list[str]:
    """The names of all engines, whether or not their libraries are installed.

    >>> list_engines()
    ['local', 'ray', 'spark']
    """
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))


def find_engine(name: str) -> Engine:
    """The engine with this name; if its library is missing, the error states how to install it."""
    if name not in list_engines():
        raise ParameterError(f"unknown engine {name!r}; {suggest_names(name, list_engines())}")
    module = importlib.import_module(f"{__name__}.{name}{SUFFIX}")
    if library := getattr(module, "LIBRARY", None):
        check_package(library, extra=name, user=f"the engine {name} needs")
    engine: Engine = module.run
    return engine
