"""How near RRF and its two kernels come to a plain copy of the bytes that they must move.

python benchmarks/floor.py [--quick]

Two floors stand beside each call. `copy` is a plain copy, by one thread, of an array as large as all bytes that the
call must read and write. `traffic` moves exactly those bytes, half of them read and half written, by as many threads
as the call. Both write into new memory, as a call does for its result, which the system clears.
Call and copies take turns; the processor time (of all threads) and the wall time are the least of the turns.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from synthetic import rows, runs
from timing import no_collector, seconds

TURNS = 25


def make_copy(size: int, threads: int, pool: ThreadPoolExecutor) -> Callable[[], Any]:
    """A call that copies an array of that many bytes into new memory."""
    source = np.ones(size // 8)
    cuts = np.linspace(0, len(source), threads + 1).astype(np.int64)

    def copy() -> Any:
        target = np.empty_like(source)
        if threads == 1:
            np.copyto(target, source)
        else:
            jobs = [pool.submit(np.copyto, target[a:b], source[a:b]) for a, b in pairwise(cuts)]
            for job in jobs:
                job.result()
        return target

    return copy


def measure_in_turns(*calls: Callable[[], Any]) -> list[tuple[float, float]]:
    """The least processor time and the least wall time of each call."""
    least = [(np.inf, np.inf)] * len(calls)
    with no_collector():
        for _ in range(TURNS):
            for i, call in enumerate(calls):
                begin, wall = time.process_time(), time.perf_counter()
                result = call()
                spent = time.process_time() - begin, time.perf_counter() - wall
                del result
                least[i] = min(least[i][0], spent[0]), min(least[i][1], spent[1])
    return least


def run(quick: bool) -> list[dict[str, Any]]:
    """RRF, its sum and its sort with one and two threads, beside a copy of their bytes."""
    from podium import Preferences, make
    from podium.kernels import ordering, segments

    p = Preferences.from_rows(**rows(runs(1000 if quick else 10_000)))
    lists, slots = p.lists, len(p.index.items)
    points, weight = 1 / (60 + np.arange(lists.rank.max() + 1.0)), np.ones(len(lists))
    rrf = make("rrf")

    def add() -> Any:
        return segments.sum_points(
            lists.query_starts, lists.starts, lists.item, lists.rank, points, weight, slots
        )

    scores = add()
    offsets = 8 * (len(lists) + 2 * p.index.starts.size)
    # item and rank of every row are read; score, place in the order and tie mark of every slot are written
    calls = {
        "rrf": (lists.rows * 8 + offsets + slots * (8 + 4 + 1), lambda: rrf.aggregate(p)),
        "its sum": (lists.rows * 8 + offsets + slots * 8, add),
        "its sort": (slots * (8 + 8 + 4 + 1), lambda: ordering.rank_order(scores, p.index.starts, floor=0.0)),
    }
    table = []
    kept = os.environ.get("PODIUM_THREADS")
    try:
        for threads in (1, 2):
            os.environ["PODIUM_THREADS"] = str(threads)
            with ThreadPoolExecutor(threads) as pool:
                for name, (moved, call) in calls.items():
                    plain, traffic = make_copy(moved, 1, pool), make_copy(moved // 2, threads, pool)
                    own, copy, least = measure_in_turns(call, plain, traffic)
                    table.append(
                        {
                            "call": f"{name}, {lists.rows:,} rows, {slots:,} slots",
                            "threads": threads,
                            "bytes": f"{moved / 1e6:.0f} MB",
                            "processor": seconds(own[0]),
                            "wall": seconds(own[1]),
                            "copy, wall": seconds(copy[1]),
                            "traffic, wall": seconds(least[1]),
                            "times the copy": f"{own[0] / copy[0]:.1f} processor, {own[1] / copy[1]:.1f} wall",
                            "times the traffic": f"{own[0] / least[0]:.1f} processor, {own[1] / least[1]:.1f} wall",
                        }
                    )
    finally:
        os.environ.pop("PODIUM_THREADS", None)
        if kept is not None:
            os.environ["PODIUM_THREADS"] = kept
    return table


if __name__ == "__main__":
    for line in run("--quick" in sys.argv[1:]):
        print("; ".join(f"{name} {value}" for name, value in line.items()))
