"""What Podium adds to the start of a worker of Ray and of Spark: time and memory.

python benchmarks/worker_startup.py [PATH ...]      (PYTHONPATH of another version; several folders with ":")

Each version runs in fresh workers, twice, and the second run is printed: what a version keeps on disk is then there.
`start` is the time from `import podium` to the first RRF of 400,000 rows less the median of five repetitions, `memory`
the growth of the worker's resident memory in them. Needs the extras ray and spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

ENGINES = ("ray", "spark")
VARIABLE = "PODIUM_WORKER_ENGINE"  # set in the process that starts the engine


def measure_worker(_: Any = None) -> dict[str, float]:
    """Measured inside a worker; pickled by value, so it imports what it needs."""
    import resource
    import time

    import numpy as np

    rng = np.random.default_rng(0)
    queries = np.repeat(np.arange(400), 1000)
    experts = np.tile(np.repeat(np.arange(10), 100), 400)
    items = np.concatenate([rng.permutation(400)[:100] for _ in range(4000)])
    ranks = np.tile(np.arange(1, 101), 4000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(6):
        start = time.perf_counter()
        import podium

        preferences = podium.Preferences.from_rows(queries, experts, items, rank=ranks)
        podium.make("rrf").aggregate(preferences)
        times.append(time.perf_counter() - start)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"first": times[0] - sorted(times[1:])[2], "memory": growth / 1024}


def measure_on_ray() -> dict[str, float]:
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        return ray.get(ray.remote(measure_worker).remote())
    finally:
        ray.shutdown()


def measure_on_spark() -> dict[str, float]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        return spark.sparkContext.parallelize([0], 1).map(measure_worker).collect()[0]
    finally:
        spark.stop()


def start_engine(engine: str, path: str) -> dict[str, float]:
    """Run this script in a process whose workers see the version at `path`."""
    environment = (
        os.environ
        | {VARIABLE: engine, "PYSPARK_PYTHON": sys.executable}
        | ({"PYTHONPATH": path} if path else {})
    )
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def print_table(paths: list[str]) -> None:
    print(f"{'engine':8}{'version':40}{'start s':>10}{'memory MB':>11}")
    for engine in ENGINES:
        for path in paths:
            figures = [start_engine(engine, path) for _ in range(2)][-1]
            name = path.split(":")[0] or "installed"
            print(f"{engine:8}{name:40}{figures['first']:10.3f}{figures['memory']:11.0f}")


if __name__ == "__main__":
    if os.environ.get(VARIABLE):
        print(json.dumps({"ray": measure_on_ray, "spark": measure_on_spark}[os.environ[VARIABLE]]()))
    else:
        print_table(["", *sys.argv[1:]])
