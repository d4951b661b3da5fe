"""When to compile, and how compiled kernels distribute work over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["B1", "F8", "I4", "I8", "SMALL", "U1", "is_large", "run_in_threads"]

F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]
I4 = npt.NDArray[np.int32]
U1 = npt.NDArray[np.uint8]
B1 = npt.NDArray[np.bool_]

SMALL = 300_000  # rows (or cells of work) below which numpy is faster than loading a compiled kernel


def is_large(work: int) -> bool:
    """Whether this amount of work justifies loading the compiled kernels.

    The work alone decides. Kernels already loaded would pay off for less work, but then the last bits of a
    result could depend on what the process did before.
    """
    return work >= SMALL


def count_threads() -> int:
    """Cores this process may use, or PODIUM_THREADS."""
    asked = os.environ.get("PODIUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_threads(kernel: Callable[..., Any], weight: I8, *arguments: Any) -> None:
    """Run `kernel(first, last, *arguments)` over ranges of queries of about equal `weight`, one per thread.

    `weight` holds cumulative work (an offsets array). Kernels release the GIL and write disjoint slices, so
    the result does not depend on the number of threads.
    """
    queries = len(weight) - 1
    parts = min(count_threads(), queries)
    if parts <= 1:
        kernel(0, queries, *arguments)
        return
    cuts = np.searchsorted(weight, np.linspace(weight[0], weight[-1], parts + 1))
    cuts[0], cuts[-1] = 0, queries
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(parts) as pool:
        jobs = [pool.submit(kernel, int(a), int(b), *arguments) for a, b in pairwise(cuts) if b > a]
        for job in jobs:
            job.result()
