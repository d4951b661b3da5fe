"""Engines: each takes a job and shards and yields the records of the shards as they complete, in any order.

They send file names, not rows: workers write the results, so all machines must have access to the folders.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.scale.shards import Shard

__all__ = ["ENGINES", "Engine", "Work", "find_engine"]

ENGINES = ("local", "ray", "spark")
Work = Callable[[Shard], Any]


class Engine(Protocol):
    """The engine interface; `address` is a running cluster, `workers` the number of concurrent shards."""

    def __call__(
        self, work: Work, shards: Sequence[Shard], *, workers: int | None, address: str | None
    ) -> Iterator[Any]:
        """The result of `work` for each shard."""


def find_engine(name: str) -> Engine:
    """The engine with this name; if its library is missing, the error states how to install it."""
    if name not in ENGINES:
        raise ParameterError(f"unknown engine {name!r}; {suggest_names(name, ENGINES)}")
    library = {"ray": "ray", "spark": "pyspark"}.get(name)
    if library is not None:
        try:
            importlib.import_module(library)
        except ImportError:
            raise ParameterError(
                f"the engine {name} needs {library}, which is not installed; pip install 'podium-rank[{name}]'"
            ) from None
    found: Engine = importlib.import_module(f"podium.scale.engines.{name}_engine").run
    return found
