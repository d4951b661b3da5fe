"""What the first call costs: ever after an installation, and in every later process, beside later calls.

python benchmarks/first_call.py [--quick] [--turns 3] [--also OTHER/bin/python] [--only rrf]

Every turn is a process of its own. Turn 0 starts without bytecode and without a cache of compiled code, as the first
call ever does; it is one process, so its wall time includes what the machine did besides. The later turns have both
caches; of them, the one whose first call exceeds its later calls by the least wall time counts: others waited for the
machine. `--also` adds an installation of another version, such as the last one that compiled when it ran.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import seconds

NAMES = ("import", "first", "later", "over", "over (CPU)")
LIMIT = 0.3  # seconds by which the first call may exceed a later one


def build_lists(rows: int) -> dict[str, Any]:
    """Columns of ranked lists: ten experts, a hundred items each, from a pool of three hundred per query."""
    from synthetic import rows as to_rows
    from synthetic import runs

    columns = to_rows(runs(max(rows // 1000, 1)))
    return {name: columns[name] for name in ("query", "expert", "item", "rank")}


def prepare_fusion(method: str, rows: int) -> Callable[[], Any]:
    """A method without training, from columns to results."""
    columns = build_lists(rows)

    def call() -> Any:
        from podium import Preferences, make

        return make(method).aggregate(Preferences.from_rows(**columns))

    return call


def prepare_bradley_terry(rows: int) -> Callable[[], Any]:
    """Comparisons of a thousand items."""
    rng = np.random.default_rng(0)
    first, step = rng.integers(0, 1000, rows), rng.integers(1, 1000, rows)
    strength = rng.normal(size=1000)
    second = (first + step) % 1000
    wins = rng.random(rows) < 1 / (1 + np.exp(strength[second] - strength[first]))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)

    def call() -> Any:
        from podium import Preferences, make

        preferences = Preferences.from_comparisons(
            query=np.zeros(rows, np.int64), expert=np.zeros(rows, np.int64), winner=winner, loser=loser
        )
        return make("bradley_terry").aggregate(preferences)

    return call


def prepare_lambdarank(rows: int) -> Callable[[], Any]:
    """Three passes of a linear scorer over 40 features, 100 items per query."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, 40))
    grade = np.digitize(values[:, 0] - values[:, 1] + rng.normal(size=rows), [0.5, 2.0])
    query, item = np.repeat(np.arange(rows // 100), 100), np.tile(np.arange(100), rows // 100)

    def call() -> Any:
        from podium import Features, Labels, LambdaRank

        features = Features.from_rows(query, item, values, [f"f{c}" for c in range(40)])
        labels = Labels.from_rows(query, item, grade)
        return LambdaRank(passes=3).fit(features, labels).rank(features)

    return call


CASES: dict[str, tuple[int, Callable[[int], Callable[[], Any]]]] = {
    "rrf": (10_000_000, lambda rows: prepare_fusion("rrf", rows)),
    "condorcet": (1_000_000, lambda rows: prepare_fusion("condorcet", rows)),
    "bradley_terry": (1_000_000, prepare_bradley_terry),
    "lambdarank": (200_000, prepare_lambdarank),
    "crowdagg": (100_000, lambda rows: prepare_fusion("crowdagg", rows)),
}


def measure_here(method: str, rows: int, repeats: int) -> dict[str, float]:
    """Times in this process, which has not imported Podium yet."""
    call = CASES[method][1](rows)
    begin = time.perf_counter()
    import podium

    podium.make  # noqa: B018 - names are loaded when they are first used
    loaded = time.perf_counter() - begin
    walls, works = [], []
    for _ in range(1 + repeats):
        begin, work = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - begin)
        works.append(time.process_time() - work)
    return {
        "import": loaded,
        "first": walls[0],
        "later": min(walls[1:]),
        "over": max(walls[0] - min(walls[1:]), 0.0),
        "over (CPU)": max(works[0] - min(works[1:]), 0.0),
    }


def run_once(command: list[str], cache: str, *, own: bool) -> dict[str, float]:
    """The times of one process, which keeps bytecode and compiled code in the folder `cache`."""
    left = {"PYTHONDONTWRITEBYTECODE"} if own else {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    environment = {k: v for k, v in os.environ.items() if k not in left}
    environment |= {"PYTHONPYCACHEPREFIX": cache, "NUMBA_CACHE_DIR": str(Path(cache) / "numba")}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure_method(python: str, method: str, options: argparse.Namespace) -> list[str]:
    """The cells of one method with one interpreter."""
    command = [python, __file__, "--one", method, "--repeats", str(options.repeats)]
    command += ["--quick"] if options.quick else []
    with tempfile.TemporaryDirectory() as cache:
        turns = [run_once(command, cache, own=python == sys.executable) for _ in range(1 + options.turns)]
    ever, took = turns[0], min(turns[1:], key=lambda turn: turn["over"])
    cells = [seconds(v) for v in (ever["over"], ever["over (CPU)"], *(took[name] for name in NAMES))]
    return [*cells, "met" if took["over"] <= LIMIT else "NOT MET"]


def main() -> None:
    """Print the table; `--one` is how the script starts itself for one method."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--repeats", type=int, default=3, help="later calls, of which the fastest counts")
    parser.add_argument("--turns", type=int, default=3, help="processes per method after the first")
    parser.add_argument("--also", help="the interpreter of another installation")
    parser.add_argument("--only", choices=CASES, help="one method")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    if options.one:
        print(json.dumps(measure_here(options.one, CASES[options.one][0] // scale, options.repeats)))
        return
    head = ("over, ever", "(CPU)", *NAMES)
    print(
        f"{'method':<15}{'version':>9}{'rows':>12}{''.join(f'{name:>12}' for name in head)}  at most {LIMIT} s over"
    )
    for method, (rows, _) in CASES.items():
        for version, python in (("this", sys.executable), ("other", options.also)):
            if python and options.only in (None, method):
                *cells, verdict = measure_method(python, method, options)
                columns = "".join(f"{cell:>12}" for cell in cells)
                print(f"{method:<15}{version:>9}{rows // scale:>12,}{columns}  {verdict}", flush=True)


if __name__ == "__main__":
    main()
