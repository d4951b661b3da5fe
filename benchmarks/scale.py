"""Shards of many queries fused from disk to disk: time next to the same work in memory, memory, growth.

python benchmarks/scale.py [--queries 10000,100000,300000,1000000] [--workers 2] [--folder DIR] [--top K] [--text]
                           [--nullable] [-o growth.svg]

Every query has 10 experts with lists of 100 items; `--text` makes ids of text, `--nullable` declares that values may be
missing, as most writers do. The rows are made and deleted again size by size; a million
queries (a billion rows) need about 10 GB of disk. Figures are also kept in benchmarks/results/scale.json.

`of kernel rows/s` compares rows a second; in memory there are as many threads as workers. CPU time depends less
on what else the machine does: ns of CPU for each row read, of `kernel` (RRF's `aggregate` on preferences in memory), of
`function` (the batch function on Arrow tables in memory) and of `engine` (shards on disk to results on disk, with
hashing, reading and writing), all processes together; `floor` is the hashing, reading and writing alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EXPERTS, DEPTH, POOL = 10, 100, 400
IN_SHARD = 2_500  # queries
KERNEL_QUERIES = 10_000  # for the kernel in memory
RESULTS = Path(__file__).parent / "results" / "scale.json"


def make_lists(count: int, seed: int) -> np.ndarray:
    """Lists of DEPTH items out of POOL, the first of which are liked most (a Plackett-Luce draw by Gumbel noise)."""
    rng = np.random.default_rng(seed)
    liking = -np.log(np.arange(POOL) + 20.0) * 1.5
    noisy = liking + rng.gumbel(size=(count, POOL))
    return np.argsort(-noisy, axis=1)[:, :DEPTH].astype(np.int64)


def make_shards(folder: Path, queries: int, text: bool = False, nullable: bool = False, seed: int = 0) -> int:
    """Write shards of lists grouped by query, as `podium.scale.regroup` does; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from podium.scale.shard_reading import build_writer_options, declare_required

    lists = make_lists(20_000, seed)
    names = pa.array([f"engine-{e}" for e in range(EXPERTS)])
    folder.mkdir(parents=True)
    for begin in range(0, queries, IN_SHARD):
        many = min(IN_SHARD, queries - begin)
        rng = np.random.default_rng((seed, begin))
        query = np.arange(begin, begin + many)
        local = lists[rng.integers(0, len(lists), many * EXPERTS)].reshape(many, EXPERTS * DEPTH)
        # scattered ids of 31 bits: multiplication by an odd number is one to one
        item = ((query[:, None] * POOL + local) * 1_664_525 & 0x7FFFFFFF).astype(np.int32)
        expert = np.tile(np.repeat(np.arange(EXPERTS, dtype=np.int8), DEPTH), many)
        columns = {
            "query": np.repeat(query.astype(np.int32), EXPERTS * DEPTH),
            "expert": pa.DictionaryArray.from_arrays(pa.array(expert), names),
            "item": item.reshape(-1),
            "rank": np.tile(np.arange(1, DEPTH + 1, dtype=np.int32), many * EXPERTS),
        }
        path = folder / f"part-{begin // IN_SHARD:05d}.parquet"
        table = pa.table(columns)
        if text:
            table = as_text(table)
        table = table if nullable else declare_required(table)
        pq.write_table(table, path, **build_writer_options(table.schema, "lz4"))
    return queries * EXPERTS * DEPTH


def as_text(table: Any) -> Any:
    """The same with ids such as q17 and D1829311."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, name, letter in ((0, "query", "q"), (2, "item", "D")):
        ids = pc.binary_join_element_wise(letter, table[name].cast(pa.string()), "")
        table = table.set_column(at, name, ids)
    return table


class Watch:
    """The largest resident memory and the CPU time of this process and all its descendants, together."""

    def __init__(self) -> None:
        self.peak, self._stop, self._cpu = 0, threading.Event(), {}  # bytes; ticks by process
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._before = dict.fromkeys([os.getpid()], _ticks(os.getpid()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._cpu[os.getpid()] = _ticks(os.getpid())

    @property
    def cpu(self) -> float:
        """Seconds."""
        used = sum(t - self._before.get(pid, 0) for pid, t in self._cpu.items())
        return used / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            family = _family(os.getpid())
            self.peak = max(self.peak, sum(map(_resident, family)))
            self._cpu |= {pid: max(_ticks(pid), self._cpu.get(pid, 0)) for pid in family}


def _family(pid: int) -> list[int]:
    found = [pid]
    for at in found:
        try:
            for task in Path(f"/proc/{at}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _ticks(pid: int) -> int:
    try:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    except OSError:
        return 0


def in_memory(folder: Path, workers: int) -> dict[str, float]:
    """Of the kernel and of the batch function: ns of CPU for each row, and rows a second with `workers` threads.

    Run in a process of its own, so that the memory that it needs is not counted for the engine.
    """
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_in_memory, (str(folder), workers))


def _in_memory(folder: str, workers: int) -> dict[str, float]:
    import pyarrow as pa

    import podium
    from podium.scale import batch_function
    from podium.scale.shard_reading import read_parquet
    from podium.scale.table_preferences import build_preferences

    files = sorted(Path(folder).glob("*.parquet"))[: KERNEL_QUERIES // IN_SHARD]
    batches = [b for f in files for b in read_parquet(str(f))[1]]
    table = pa.Table.from_batches(batches).unify_dictionaries()
    whole = build_preferences(table, "unknown", "error", None).preferences
    rows, method, function = whole.lists.rows, podium.make("rrf"), batch_function("rrf")
    found = {}
    for threads in (1, workers):
        os.environ["PODIUM_THREADS"] = str(threads)
        for name, run in (
            ("kernel", lambda: method.aggregate(whole)),
            ("function", lambda: sum(t.num_rows for t in function.rank_tables(batches))),
        ):
            wall, cpu = zip(*(_timed(run) for _ in range(7)), strict=True)
            if threads == 1:
                found[f"{name} ns"] = float(np.median(cpu)) * 1e9 / rows
            if threads == workers:
                found[f"{name} rows/s"] = rows / float(np.median(wall))
    return found


def floor(folder: Path) -> float:
    """ns of CPU for each row that hashing and decoding shards and encoding their results take, with no work between."""
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_floor, (str(folder),))


def _floor(folder: str) -> float:
    import pyarrow.parquet as pq

    from podium.scale.engines.local_engine import configure_worker
    from podium.scale.shard_reading import build_writer_options, read_parquet
    from podium.storage.digests import digest_file

    configure_worker()
    files = sorted(Path(folder, "in").glob("*.parquet"))[: KERNEL_QUERIES // IN_SHARD]
    results = [pq.read_table(Path(folder, "out", f.name)) for f in files]

    def run() -> None:
        for file, table in zip(files, results, strict=True):
            digest_file(str(file))
            for _ in read_parquet(str(file))[1]:
                pass
            with pq.ParquetWriter(
                Path(folder, "floor"), table.schema, **build_writer_options(table.schema, "lz4")
            ) as writer:
                writer.write_table(table, row_group_size=160_000)

    rows = sum(pq.read_metadata(f).num_rows for f in files)
    return float(np.median([_timed(run)[1] for _ in range(7)])) * 1e9 / rows


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(folder: Path, queries: int, workers: int, top: int | None, **kind: bool) -> dict[str, Any]:
    """Make the shards, run, compare."""
    from podium import scale

    begin = time.perf_counter()
    rows = make_shards(folder / "in", queries, **kind)
    os.sync()  # else the run would share the disk with what was made just before
    made = time.perf_counter() - begin
    before = in_memory(folder / "in", workers)
    with Watch() as watch:
        done = scale.apply("rrf", folder / "in", folder / "out", workers=workers, top=top)
    again = scale.apply("rrf", folder / "in", folder / "out", workers=workers, top=top)
    after = in_memory(folder / "in", workers)
    memory = {k: (before[k] + after[k]) / 2 for k in before}
    assert (done.rows, done.queries, again.found) == (rows, queries, again.shards)
    size = {k: sum(f.stat().st_size for f in (folder / k).glob("*.parquet")) for k in ("in", "out")}
    engine, least = watch.cpu * 1e9 / rows, floor(folder)
    return {
        "queries": queries, "rows": rows, "results": done.results, "shards": done.shards, "workers": workers,
        "top": top, **kind, "seconds": round(done.seconds, 2), "rows/s": round(rows / done.seconds),
        "kernel rows/s": round(memory["kernel rows/s"]), "function rows/s": round(memory["function rows/s"]),
        "engine ns": round(engine, 1), "floor ns": round(least, 1), "kernel ns": round(memory["kernel ns"], 1),
        "function ns": round(memory["function ns"], 1), "of kernel": round(memory["kernel ns"] / engine, 3),
        "of function": round(memory["function ns"] / engine, 3),
        "of kernel rows/s": round(rows / done.seconds / memory["kernel rows/s"], 3), "peak MB": round(watch.peak / 1e6),
        "rerun s": round(again.seconds, 2), "GB in": round(size["in"] / 1e9, 2),
        "GB out": round(size["out"] / 1e9, 2), "made in s": round(made, 1), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Time and memory against the number of queries, with the straight line that fits the times best."""
    import altair as alt

    queries = np.array([r["queries"] for r in rows], float)
    spent = np.array([r["seconds"] for r in rows])
    slope, start = np.polyfit(queries, spent, 1)
    data = [{"queries": r["queries"], "seconds": r["seconds"], "GB": r["peak MB"] / 1000} for r in rows]
    ends = [{"queries": q, "seconds": start + slope * q} for q in (0, queries.max())]
    across = alt.X("queries:Q", axis=alt.Axis(format="~s"))
    line = alt.Chart(alt.Data(values=ends)).mark_line(color="gray", strokeDash=[4, 3])
    time_ = line.encode(across, y="seconds:Q") + alt.Chart(alt.Data(values=data)).mark_point(
        filled=True, size=60
    ).encode(across, y="seconds:Q")
    memory = (
        alt.Chart(alt.Data(values=data))
        .mark_line(point=True)
        .encode(across, y=alt.Y("GB:Q", title="peak memory, GB", scale=alt.Scale(domain=[0, 2])))
    )
    title = f"{start:.1f} s + {slope * 1e6:.1f} s for a million queries"
    (time_.properties(width=300, height=240, title=title) | memory.properties(width=300, height=240)).save(
        path
    )


def main() -> None:
    """Measure every size, print a table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--queries", default="10000,100000,300000,1000000")
    words.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    words.add_argument("--folder", help="where there is room for the shards  [default: the temporary folder]")
    words.add_argument("--top", type=int)
    words.add_argument("--text", action="store_true")
    words.add_argument("--nullable", action="store_true")
    words.add_argument("-o", "--output", help="a plot (.svg, .png, .html)")
    given = words.parse_args()
    rows: list[dict[str, Any]] = []
    for queries in map(int, given.queries.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="podium-scale-", dir=given.folder))
        try:
            rows.append(
                measure(folder, queries, given.workers, given.top, text=given.text, nullable=given.nullable)
            )
        finally:
            shutil.rmtree(folder)
        if len(rows) == 1:
            print("\t".join(rows[0]), flush=True)
        print("\t".join(map(str, rows[-1].values())), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1))
    if given.output:
        draw(rows, given.output)


if __name__ == "__main__":
    main()
