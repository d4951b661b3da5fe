"""Spark: file names in one partition each; Spark retries failed tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from podium.core.optional import require_module
from podium.scale.engines.local_engine import configure_worker
from podium.storage.shards import Shard

if TYPE_CHECKING:
    from podium.scale.engines import Work

LIBRARY = "pyspark"


def run(
    work: Work, shards: Sequence[Shard], *, workers: int | None = None, address: str | None = None
) -> Iterator[Any]:
    """Process the shards in the active Spark session, or in one started here (`address`: its master)."""
    SparkSession = require_module("pyspark.sql").SparkSession
    session = SparkSession.getActiveSession()
    is_own_session = session is None
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = address or f"local[{workers or '*'},4]"  # 4: maximum attempts per task
        build = SparkSession.builder.master(master).appName("podium")
        session = build.config("spark.ui.enabled", "false").getOrCreate()
    try:
        given = session.sparkContext.parallelize(list(map(tuple, shards)), len(shards))
        yield from given.map(_SparkStep(work)).collect()
    finally:
        if is_own_session:
            session.stop()


class _SparkStep:
    """A path and a name -> the result."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, row: tuple[str, str]) -> Any:
        configure_worker()
        return self._work(Shard(*row))
