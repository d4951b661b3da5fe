"""What one user waits for: a single query, and a process that has just started."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import timeit
from pathlib import Path
from typing import Any

import numpy as np
from timing import seconds

HERE = Path(__file__).parent
JOB = """
import sys
sys.path.insert(0, {here!r})
import synthetic
from podium import Preferences, make
made = synthetic.rows(synthetic.runs({queries}))
make("rrf").aggregate(Preferences.from_rows(**made))
"""


def plain(lists: list[list[str]], k: int = 60) -> list[tuple[str, float]]:
    """Reciprocal rank fusion as everybody writes it."""
    total: dict[str, float] = {}
    for one in lists:
        for rank, item in enumerate(one, 1):
            total[item] = total.get(item, 0.0) + 1 / (k + rank)
    return sorted(total.items(), key=lambda pair: pair[1], reverse=True)


def single_query(quick: bool) -> dict[str, Any]:
    """Three lists of fifty: `podium.fuse` against a plain dictionary loop, timed in turns."""
    import podium

    rng = np.random.default_rng(0)
    lists = [[f"doc{i}" for i in rng.permutation(100)[:50]] for _ in range(3)]
    fused = podium.fuse(lists)
    if dict(plain(lists)).keys() != set(fused.ranking) or not np.allclose(
        sorted(s for _, s in plain(lists)), sorted(fused.scores)
    ):
        raise AssertionError("podium.fuse and the loop disagree")
    own, loop = [], []
    fuse = podium.fuse
    for _ in range(20 if quick else 60):  # timeit switches garbage collection off
        own.append(timeit.timeit(lambda: fuse(lists), number=200) / 200)
        loop.append(timeit.timeit(lambda: plain(lists), number=200) / 200)
    each = np.array(own) / np.array(loop)
    value = statistics.median(own) / statistics.median(loop)
    return {
        "what": "podium.fuse, one query of 3 x 50, over a dict loop",
        "value": f"{value:.2f}x the loop's time",
        "spread": f"{np.quantile(each, 0.1):.2f} .. {np.quantile(each, 0.9):.2f}",
        "detail": f"{seconds(statistics.median(own))} against {seconds(statistics.median(loop))}",
        "target": f"<= 1.2x: {'met' if value <= 1.2 else 'NOT MET'}",
    }


def wall(command: list[str], repeats: int) -> list[float]:
    """Seconds of whole processes."""
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - begin)
    return taken


def _start(what: str, command: list[str], repeats: int, limit: float | None) -> dict[str, Any]:
    try:
        taken = wall(command, repeats)
    except (subprocess.CalledProcessError, FileNotFoundError) as problem:
        return {
            "what": what,
            "value": "failed",
            "detail": str(problem).splitlines()[0],
            "target": limit and f"< {limit} s: NOT MET",
        }
    value = statistics.median(taken)
    met = "" if limit is None else f"< {limit:g} s: {'met' if value < limit else 'NOT MET'}"
    return {
        "what": what,
        "value": seconds(value),
        "spread": f"{min(taken):.3f} .. {max(taken):.3f} s",
        "target": met,
    }


def cold_start(quick: bool) -> list[dict[str, Any]]:
    """Bare Python and numpy for scale, then Podium: imports, the command, and whole jobs."""
    python, repeats = sys.executable, 5 if quick else 15
    command = Path(python).with_name("podium")
    found = [
        _start("python -c pass", [python, "-c", "pass"], repeats, None),
        _start("python -c 'import numpy'", [python, "-c", "import numpy"], repeats, None),
        _start("python -c 'import podium'", [python, "-c", "import podium"], repeats, 0.15),
        _start(
            "python -c 'import podium; podium.fuse'",
            [python, "-c", "import podium; podium.fuse"],
            repeats,
            None,
        ),
        _start("podium --help", [str(command), "--help"], repeats, 0.25),
    ]
    for queries, limit in ((100, 1.0), (1000, None)):
        job = [python, "-c", JOB.format(here=str(HERE), queries=queries)]
        name = f"job of {queries} queries x 10 x 100 (data made, built, RRF)"
        found.append(_start(name, job, 1 if quick else 7, limit))
    return found
