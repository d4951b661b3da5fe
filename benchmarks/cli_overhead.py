"""What a process of `podium fuse` spends outside reading, computing and writing, on runs of a million rows in all.

python benchmarks/cli_overhead.py [--turns 5] [--rows 1000000] [--method rrf]

Writes three runs to a temporary folder. A turn runs `podium fuse -m rrf a.run b.run c.run -o out.run` in a process
(wall and processor time of the whole process, from its start to its end) and, in another process, reads the same
files, fuses them and writes the same result after a first round on small files, with a clock around each step. The
overhead is the difference: interpreter, imports, the command line, the report on standard error, and teardown. Both
processes have their bytecode cached, as an installation has.
`--imports` prints the slowest imports of the command instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RUNS, DEPTH = 3, 100
STEPS = """
import json, sys, time
from podium import choose_method, formats, make
paths, small, out, method = sys.argv[1:4], sys.argv[4:7], sys.argv[7], sys.argv[8]
def take_steps(paths, out):
    clocks = [(time.perf_counter(), time.process_time())]
    preferences = formats.read(paths).preferences
    clocks.append((time.perf_counter(), time.process_time()))
    chosen = choose_method(preferences).method if method == "auto" else make(method)
    consensus = chosen.aggregate(preferences)
    clocks.append((time.perf_counter(), time.process_time()))
    formats.write(consensus, out, overwrite=True)
    clocks.append((time.perf_counter(), time.process_time()))
    return [[b - a for a, b in zip(one, two)] for one, two in zip(clocks, clocks[1:])]
take_steps(small, out)
print(json.dumps(take_steps(paths, out)))
"""


def write_runs(folder: Path, rows: int, names: str) -> list[Path]:
    """Runs of 100 results per query, with ids like those of a web collection."""
    paths = []
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        path = folder / f"{name}.run"
        with path.open("w") as out:
            for query in range(rows // RUNS // DEPTH):
                ids = (query * 7919 + rng.permutation(3 * DEPTH)[:DEPTH]) * 101 % 50_000_017
                scores = np.sort(rng.gamma(2, 5, DEPTH))[::-1]
                out.writelines(
                    f"{query + 1} Q0 clueweb09-en{i % 134:04d}-{i // 134 % 100:02d}-{i // 13400:05d} "
                    f"{r} {s:.6f} {name}\n"
                    for r, (i, s) in enumerate(zip(ids.tolist(), scores.tolist(), strict=True), 1)
                )
        paths.append(path)
    return paths


def run_command(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of one process."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words)} failed")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def print_imports(words: list[str], environment: dict[str, str]) -> None:
    """The imports that take the most time, with what they import."""
    traced = [words[0], "-X", "importtime", *words[1:]]
    done = subprocess.run(traced, capture_output=True, text=True, env=environment, check=True)
    lines = [
        line for line in done.stderr.splitlines() if line.startswith("import time:") and "[us]" not in line
    ]
    print(*sorted(lines, key=lambda line: int(line.split("|")[1]))[-40:], sep="\n")


def main() -> None:
    """Print seconds of wall and processor time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--method", default="rrf")
    parser.add_argument("--imports", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [str(path) for path in write_runs(folder, given.rows, "abc")]
        small = [str(path) for path in write_runs(folder, 3000, "xyz")]
        out = str(folder / "out.run")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        command = [
            sys.executable,
            "-m",
            "podium",
            "fuse",
            "-m",
            given.method,
            *paths,
            "-o",
            out,
            "--overwrite",
        ]
        if given.imports:
            run_command(command, environment)  # compiles
            print_imports(command, environment)
            return
        run_command(command, environment)  # compiles
        whole, steps = [], []
        for _ in range(given.turns):
            whole.append(run_command(command, environment))
            words = [sys.executable, "-c", STEPS, *paths, *small, out, given.method]
            done = subprocess.run(
                words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, check=True
            )
            steps.append(json.loads(done.stdout))
        for clock, kind in enumerate(("wall", "processor")):
            total = min(turn[clock] for turn in whole)
            parts = [min(turn[step][clock] for turn in steps) for step in range(3)]
            named = ", ".join(
                f"{n} {p:.2f}" for n, p in zip(("reading", "computing", "writing"), parts, strict=True)
            )
            print(f"{kind:9} {total:.2f} s: {named}, overhead {total - sum(parts):.2f}")


if __name__ == "__main__":
    main()
