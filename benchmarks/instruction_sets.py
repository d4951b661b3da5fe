"""Processor time with the modules that are compiled for AVX2, divided by that with the portable ones.

python benchmarks/instruction_sets.py [--turns 3]

Every turn runs all tasks in two processes, with and without PODIUM_CORE_PORTABLE=1, on one thread; a task counts with
its best time over the turns. To measure a module that is portable only, add it to WIDE_MODULES in
build_support/compile_core.py first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from synthetic import rows, runs

import podium
from podium.analysis.leaderboard import leaderboard
from podium.data.demo import demo

QUERIES, ITEMS, COLUMNS = 200, 100, 20


def prepare_tasks() -> Iterator[tuple[str, Callable[[], object]]]:
    """The tasks by name, without the time of making their data."""
    random = np.random.default_rng(0)
    value = random.normal(size=(QUERIES * ITEMS, COLUMNS))
    query, item = np.repeat(np.arange(QUERIES), ITEMS), np.tile(np.arange(ITEMS), QUERIES)
    names = [f"column {c}" for c in range(COLUMNS)]
    features = podium.Features.from_rows(query, item, value, names)
    grade = np.digitize(value[:, 0] + random.normal(size=len(value)), [0.5, 2.0])
    labels = podium.Labels.from_rows(query, item, grade)
    yield "LambdaRank", lambda: podium.LambdaRank(passes=3).fit(features, labels)
    data = demo()
    assert data.labels is not None
    judged = data.labels
    yield "crf", lambda: podium.make("crf(passes=300)").fit(data.preferences, judged)
    models = np.array([f"model {k}" for k in range(60)], object)
    first = random.integers(0, 60, 200_000)
    second = (first + random.integers(1, 60, len(first))) % 60
    one = np.full(len(first), "all", object)
    votes = podium.Preferences.from_comparisons(one, one, models[first], models[second])
    yield "leaderboard, 3,000 resamples", lambda: leaderboard(votes, bootstrap=3000)
    lists = podium.Preferences.from_rows(**rows(runs(100)))
    for name in ("rrf", "copeland", "schulze", "mc2", "crowdagg"):
        method = podium.make(name)
        yield name, lambda method=method: method.aggregate(lists)


def measure_tasks() -> dict[str, float]:
    """The best processor time of three calls of every task, after a first one."""
    best = {}
    for name, run in prepare_tasks():
        times = []
        for _ in range(4):
            begin = time.process_time()
            run()
            times.append(time.process_time() - begin)
        best[name] = min(times[1:])
    return best


def main() -> None:
    """Run the turns in processes and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure_tasks()))
        return
    times: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for _ in range(options.turns):
        for portable, best in times.items():
            environment = {k: v for k, v in os.environ.items() if k != "PODIUM_CORE_PORTABLE"}
            environment |= {"PODIUM_THREADS": "1"} | ({"PODIUM_CORE_PORTABLE": "1"} if portable else {})
            command = [sys.executable, __file__, "--measure"]
            output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            for name, seconds in json.loads(output.stdout).items():
                best[name] = min(best.get(name, seconds), seconds)
    for name, portable_time in times[True].items():
        wide_time = times[False][name]
        print(f"{name:30} AVX2 {1000 * wide_time:8.1f} ms, portable {1000 * portable_time:8.1f} ms", end="")
        print(f", ratio {wide_time / portable_time:.2f}")


if __name__ == "__main__":
    main()
