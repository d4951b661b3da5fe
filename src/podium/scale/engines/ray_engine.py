"""Ray Data: a data set of file names, mapped; Ray retries a task whose worker or node is lost."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from podium.core.optional import require_module
from podium.scale.engines.local_engine import configure_worker
from podium.storage.shards import Shard

if TYPE_CHECKING:
    from podium.scale.engines import Work

LIBRARY = "ray"

BLOCKS = 1000  # maximum number of tasks; with more shards, a task processes several


def run(
    work: Work, shards: Sequence[Shard], *, workers: int | None = None, address: str | None = None
) -> Iterator[Any]:
    """Process the shards on a Ray cluster, or on one started for this job."""
    ray = require_module("ray")
    is_own_session = not ray.is_initialized()
    if is_own_session:
        own: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address, log_to_driver=False, **own)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        names = [{"path": s.path, "name": s.name} for s in shards]
        data = ray.data.from_items(names, override_num_blocks=min(len(names), BLOCKS))
        limit = {} if workers is None else {"concurrency": workers}
        done = data.map(_RayStep(work), num_cpus=1, max_retries=-1, **limit)
        for row in done.iter_rows():
            yield pickle.loads(row["result"])  # safe: the bytes come from Podium's own worker
    finally:
        if is_own_session:
            ray.shutdown()


class _RayStep:
    """One row of names -> one row of results."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.__name__ = "podium"  # the step name in Ray

    def __call__(self, row: dict[str, Any]) -> dict[str, bytes]:
        configure_worker()
        return {"result": pickle.dumps(self._work(Shard(row["path"], row["name"])))}
