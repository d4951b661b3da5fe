"""Do damaged files ever end in anything but an error in plain words? Files of every format are damaged and read.

python benchmarks/fuzz_formats.py [--cases 100000] [--seed 0] [--workers 2]
python benchmarks/fuzz_formats.py --seed 0 --only 17        # one case again, with the file it reads

Each case takes a sound file of some format, damages it (bits, bytes, cells, lines, columns; before or after gzip),
reads it with the plain or the compiled reader, and writes what was read in every format that can hold it. A case fails
if it ends in anything but an error of Podium's own; a process that is ended by the system fails the whole run. A case
is the same for the same seed and number. Memory is limited, so that a size that a damaged file claims is not granted.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import resource
import sys
import tempfile
import time
from typing import NamedTuple

from podium.testing.mutations import find_failure, mutated_file

MEMORY = 8 << 30  # bytes of address space per worker
CHUNK = 500  # cases per task


class Found(NamedTuple):
    """What came of some cases: the failures by number, and the slowest case."""

    cases: int
    failures: dict[int, str]
    slowest: tuple[float, int]


def run_cases(seed: int, numbers: range) -> Found:
    """Some cases in this process."""
    failures: dict[int, str] = {}
    slowest = (0.0, -1)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            begin = time.perf_counter()
            failure = find_failure(mutated_file(seed, number), folder)
            slowest = max(slowest, (time.perf_counter() - begin, number))
            if failure is not None:
                failures[number] = failure
    return Found(len(numbers), failures, slowest)


def _task(given: tuple[int, range]) -> Found:
    return run_cases(*given)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run_all(seed: int, cases: int, workers: int) -> Found:
    """All cases, in processes of their own."""
    from concurrent.futures import ProcessPoolExecutor

    tasks = [(seed, range(begin, min(begin + CHUNK, cases))) for begin in range(0, cases, CHUNK)]
    failures: dict[int, str] = {}
    slowest, done = (0.0, -1), 0
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_limit_memory
    ) as pool:
        for found in pool.map(_task, tasks):
            failures |= found.failures
            slowest, done = max(slowest, found.slowest), done + found.cases
            if sys.stderr.isatty():
                print(f"\r{done:,} cases, {len(failures)} failures", end="", file=sys.stderr)
    return Found(done, failures, slowest)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="run this case alone, and show its file")
    given = parser.parse_args()
    if given.only is not None:
        file = mutated_file(given.seed, given.only)
        print(file)
        print(*run_cases(given.seed, range(given.only, given.only + 1)).failures.values(), sep="\n")
        return
    found = run_all(given.seed, given.cases, given.workers)
    kinds = collections.Counter(text.strip().splitlines()[-1] for text in found.failures.values())
    print(f"{found.cases:,} cases, seed {given.seed}: {len(found.failures)} failures")
    print(f"slowest: case {found.slowest[1]}, {found.slowest[0]:.2f} s")
    for kind, count in kinds.most_common():
        first = next(n for n, text in found.failures.items() if text.strip().splitlines()[-1] == kind)
        print(f"{count:6}  case {first}: {kind}\n{found.failures[first]}")
    sys.exit(bool(found.failures))


if __name__ == "__main__":
    main()
