"""Engines: each takes a job and shards and gives the records of the shards as they are done, in any order.

They move file names, not rows: results are written where the work is done, so all machines must see the folders.
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
    """How an engine is called; `address` is that of a running cluster, `workers` how many shards are done at once."""

    def __call__(
        self, work: Work, shards: Sequence[Shard], *, workers: int | None, address: str | None
    ) -> Iterator[Any]:
        """What `work` gives for each shard."""


def find_engine(name: str) -> Engine:
    """The engine of a name; one whose library is missing says how to get it."""
    if name not in ENGINES:
        raise ParameterError(f"there is no engine {name!r}; {suggest_names(name, ENGINES)}")
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
