"""Array types, and how kernels distribute work over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["B1", "F8", "I4", "I8", "THREAD_WORK", "U1", "run_in_threads"]

F8 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int64]
I4 = npt.NDArray[np.int32]
U1 = npt.NDArray[np.uint8]
B1 = npt.NDArray[np.bool_]

THREAD_WORK = 100_000  # rows (or cells of work) per thread below which starting one costs more than it saves


def find_core_folder() -> str:
    """Where the compiled modules are."""
    import podium._core

    return os.path.dirname(podium._core.__file__)


def list_wide_modules() -> list[str]:
    """The compiled modules that are imported in a form for this processor."""
    import pkgutil

    import podium._core

    return [module.name for module in pkgutil.iter_modules(podium._core.__path__[:-1])]


def import_core() -> list[str]:
    """Import every compiled module; returns their names."""
    import importlib
    import pkgutil

    names = [module.name for module in pkgutil.iter_modules([find_core_folder()])]
    for name in names:
        importlib.import_module(f"podium._core.{name}")
    return names


def count_threads() -> int:
    """Cores this process may use, or PODIUM_THREADS."""
    requested = os.environ.get("PODIUM_THREADS", "")
    if requested.isdecimal() and int(requested) > 0:
        return int(requested)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_threads(kernel: Callable[..., Any], weight: I8, *arguments: Any) -> None:
    """Run `kernel(first, last, *arguments)` over ranges of queries of about equal `weight`, one per thread.

    `weight` holds cumulative work (an offsets array). Kernels release the GIL and write disjoint slices, so
    the result does not depend on the number of threads. Little work runs in the calling thread.
    """
    queries = len(weight) - 1
    work = int(weight[-1] - weight[0])
    parts = 1 if work < 2 * THREAD_WORK else min(count_threads(), queries, work // max(THREAD_WORK, 1))
    if parts <= 1:
        kernel(0, queries, *arguments)
        return
    cuts = np.searchsorted(weight, np.linspace(weight[0], weight[-1], parts + 1))
    cuts[0], cuts[-1] = 0, queries
    # most calls are small and never start a thread
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(parts) as pool:
        jobs = [pool.submit(kernel, int(a), int(b), *arguments) for a, b in pairwise(cuts) if b > a]
        for job in jobs:
            # raises here what the kernel raised in its thread
            job.result()
