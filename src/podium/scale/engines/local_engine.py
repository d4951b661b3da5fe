"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError, PodiumError
from podium.core.optional import require_module
from podium.kernels.dispatch import count_threads
from podium.storage.shards import Shard

if TYPE_CHECKING:
    from podium.scale.engines import Work

KEPT = 1 << 28  # bytes
TRIES = 3  # number of pools: a worker killed by the system breaks its pool


def run(
    work: Work, shards: Sequence[Shard], *, workers: int | None = None, address: str | None = None
) -> Iterator[Any]:
    """Process the shards in a pool of processes; with one worker, in this process."""
    if address is not None:
        raise ParameterError("the local engine has no address; omit it, or choose ray or spark")
    count = min(workers or count_threads(), len(shards))
    if count <= 1:
        yield from map(work, shards)
        return
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context, left = multiprocessing.get_context(kind), list(shards)
    for _ in range(TRIES):
        done: set[Shard] = set()
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_start_worker)
        try:
            jobs = {pool.submit(work, shard): shard for shard in left}
            for job in as_completed(jobs):
                shard, result = jobs.pop(job), job.result()
                done.add(shard)
                yield result
            return
        except BrokenProcessPool:
            left = [s for s in left if s not in done]
        finally:
            pool.shutdown(cancel_futures=True)
    raise PodiumError(
        f"worker processes died {TRIES} times, last on one of {', '.join(s.path for s in left[:3])}; "
        "if memory ran out, use fewer workers or smaller shards (results are kept); in a script, call this"
        " under if __name__ == '__main__'"
    )


def _start_worker() -> None:
    configure_worker()
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """End this worker when its parent process has ended, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def configure_worker() -> None:
    """One thread per worker, because there is one worker per core; and keep freed memory."""
    pa = require_module("pyarrow")
    os.environ["PODIUM_THREADS"] = "1"
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # each batch allocates the same arrays, and new pages take a tenth of the time; only glibc has these
    # settings (-1: M_TRIM_THRESHOLD, -3: M_MMAP_THRESHOLD)
    if platform.libc_ver()[0] == "glibc":
        import ctypes

        libc = ctypes.CDLL(None)
        for setting in (-1, -3):
            libc.mallopt(setting, KEPT)
