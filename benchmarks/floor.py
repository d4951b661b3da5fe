"""How near the two kernels of RRF come to merely moving their bytes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from synthetic import rows, runs
from timing import measure


def copy_speed(threads: int, size: int = 160_000_000) -> float:
    """Bytes read plus bytes written per second by a plain copy of a large array, split over threads."""
    given, taken = np.ones(size // 8), np.empty(size // 8)
    parts = list(zip(np.array_split(given, threads), np.array_split(taken, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            for _ in pool.map(lambda part: np.copyto(part[1], part[0]), parts):
                pass

        copy()
        return 2 * size / measure(copy, repeats=9)[0].median


def run(quick: bool) -> list[dict[str, Any]]:
    """Sum and sort of RRF with one and two threads: time, bytes, and the share of a copy's speed."""
    from podium import Preferences
    from podium.kernels import ordering, segments

    p = Preferences.from_rows(**rows(runs(1000 if quick else 10_000)))
    lists, slots = p.lists, len(p.index.items)
    points, weight = 1 / (60 + np.arange(lists.rank.max() + 1.0)), np.ones(len(lists))

    def add() -> Any:
        return segments.sum_points(
            lists.query_starts, lists.starts, lists.item, lists.rank, points, weight, slots
        )

    scores = add()
    # item and rank read, one total a slot written; scores read, scores, order and tie marks written
    moved = {"sum": lists.rows * 8 + slots * 8, "sort": slots * (8 + 8 + 4 + 1)}
    calls = {"sum": add, "sort": lambda: ordering.rank_order(scores, p.index.starts)}
    found = []
    kept = os.environ.get("PODIUM_THREADS")
    try:
        for threads in (1, 2):
            os.environ["PODIUM_THREADS"] = str(threads)
            speed = copy_speed(threads)
            for name, call in calls.items():
                call()
                took = measure(call, repeats=9)[0]
                found.append(
                    {
                        "kernel": f"{name}, {lists.rows:,} rows, {slots:,} slots",
                        "threads": threads,
                        "time": str(took),
                        "bytes": f"{moved[name] / 1e6:.0f} MB",
                        "copy": f"{speed / 1e9:.1f} GB/s",
                        "share of the floor": f"{moved[name] / speed / took.median:.0%}",
                    }
                )
    finally:
        os.environ.pop("PODIUM_THREADS", None)
        if kept is not None:
            os.environ["PODIUM_THREADS"] = kept
    return found
