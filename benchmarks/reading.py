"""Reading a TREC run: Podium against pyarrow's CSV reader with dictionary-encoded ids, whole processes.

`ratio` is against pyarrow's dictionaries as they come, one per block of the file; `ratio_one_dictionary` is against
pyarrow with its dictionaries made one, so that equal ids have equal codes, which is what aggregation needs.

`python benchmarks/reading.py [--quick]` prints a table; ratios count, seconds belong to one machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SHAPES = {"1 run x 10k queries x 1000": (1, 10_000, 1000), "10 runs x 10k queries x 100": (10, 10_000, 100)}

PODIUM = """
from podium import formats
unify = 0.0
formats.read(warm)
t, c = time.perf_counter(), time.process_time()
p = formats.read(path).preferences
seconds, cpu = time.perf_counter() - t, time.process_time() - c
x, t = p.index, p.lists
size = sum(c.nbytes for c in (x.starts, x.items.buffer, x.items.offsets, x.arrival, t.item, t.rank, t.score, t.starts))
"""
PYARROW = """
import pyarrow as pa
from pyarrow import csv
coded = pa.dictionary(pa.int32(), pa.string())
names = ["query", "q0", "item", "rank", "score", "tag"]
kinds = {"query": coded, "item": coded, "tag": coded, "rank": pa.int32(), "score": pa.float64()}
def load(path):
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=kinds, include_columns=list(kinds)),
    )
load(warm)
t, c = time.perf_counter(), time.process_time()
table = load(path)
seconds, cpu = time.perf_counter() - t, time.process_time() - c
size = table.nbytes
t = time.perf_counter()
table.unify_dictionaries()
unify = time.perf_counter() - t
"""
FRAME = """
import json, sys, time
path, warm = sys.argv[1:]
{body}
# not getrusage: its peak is inherited from the process that started this one
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps(dict(seconds=seconds, cpu=cpu, unify=unify, peak=peak, size=int(size))))
"""


def make(path: Path, runs: int, queries: int, depth: int, seed: int = 0) -> None:
    """A synthetic run file with document ids like those of a web collection."""
    rng = np.random.default_rng(seed)
    pool = max(3 * depth, 300)
    with path.open("w") as out:
        for run in range(runs):
            for query in range(queries):
                ids = (query * 7919 + rng.permutation(pool)[:depth]) * 101 % 50_000_017
                scores = np.sort(rng.gamma(2, 5, depth))[::-1]
                out.writelines(
                    f"{query + 1} Q0 clueweb09-en{i % 134:04d}-{i // 134 % 100:02d}-{i // 13400:05d} "
                    f"{r} {s:.6f} sys{run}\n"
                    for r, (i, s) in enumerate(zip(ids.tolist(), scores.tolist(), strict=True), 1)
                )


def measure(body: str, path: Path, warm: Path) -> dict[str, float]:
    """Seconds, peak memory and size of the columns, in a process of its own."""
    code = FRAME.format(body=body)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(warm)], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def run(quick: bool = False, folder: Path | None = None, repeat: int = 3) -> list[dict[str, object]]:
    """One row per shape of file: best seconds of both readers, their ratio, and memory over size of the columns."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        warm = (
            place / "warm.run"
        )  # large enough for the reader of large files, so that imports are not measured
        if not warm.exists():
            make(warm, 1, 310, 1000, seed=1)
        for name, (runs, queries, depth) in SHAPES.items():
            queries = queries // 20 if quick else queries
            path = place / f"{runs}-{queries}-{depth}.run"
            if not path.exists():
                make(path, runs, queries, depth)
            pairs = [(measure(PODIUM, path, warm), measure(PYARROW, path, warm)) for _ in range(repeat)]
            ours, theirs = zip(*pairs, strict=True)
            best, other = (min(r["seconds"] for r in results) for results in (ours, theirs))
            cpu, other_cpu = (min(r["cpu"] for r in results) for results in (ours, theirs))
            mapped = (
                path.stat().st_size
            )  # the pages of the file itself count as resident, and can be dropped at any time
            rows.append(
                {
                    "file": name,
                    "rows": runs * queries * depth,
                    "podium_s": round(best, 3),
                    "pyarrow_s": round(other, 3),
                    "ratio": round(best / other, 2),
                    "ratio_one_dictionary": round(best / min(r["seconds"] + r["unify"] for r in theirs), 2),
                    "cpu_ratio": round(cpu / other_cpu, 2),
                    "memory_over_columns": round((ours[0]["peak"] - mapped) / ours[0]["size"], 2),
                    "columns_mb": round(ours[0]["size"] / 2**20),
                    "file_mb": round(mapped / 2**20),
                    "podium_mb": round(ours[0]["peak"] / 2**20),
                    "pyarrow_mb": round(theirs[0]["peak"] / 2**20),
                }
            )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the generated files here")
    given = parser.parse_args()
    for row in run(given.quick, given.folder):
        print(row)
