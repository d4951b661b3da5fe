"""Training over shards next to training in memory: time of a pass, time before the first one, memory, disk.

OPENBLAS_NUM_THREADS=1 python benchmarks/streaming.py [--only lambdarank,crf] [--shards 16] [--format parquet|letor]

Made-up data in shards of Parquet (or LETOR text for `lambdarank`). `lambdarank`: 250 queries of 50 items with 136
features in a shard, linear, standardized, batch 64. `crf`: 500 queries with lists of 8 experts in a shard. Ways:
`memory` reads all and calls `fit`, `shards` keeps nothing, `cache` keeps prepared shards, `again` finds those of the
run before. Each runs in a process of its own that has ranked a part before; those with a cache must end with the same
weights. `ready` is the time before the first pass, `pass` the median of the passes, `start` the resident memory of the
process before it has data, `peak` its largest (mapped files of the cache count), `disk` the size of the shards or of
the cache.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import seconds

QUERIES = {"lambdarank": 250, "crf": 500}  # in a shard
ITEMS, WIDTH, EXPERTS = 50, 136, 8
WAYS = ("memory", "shards", "cache", "again")
PASSES = {"memory": 6, "shards": 2, "cache": 6, "again": 6}


def make_features(folder: Path, shards: int, kind: str) -> None:
    """Features and labels, some of the features telling."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from podium import Features, Labels, formats

    for number in range(shards):
        random = np.random.default_rng(number)
        first, rows = QUERIES["lambdarank"] * number, QUERIES["lambdarank"] * ITEMS
        query, item = first + np.arange(rows) // ITEMS, np.arange(rows) % ITEMS
        values = random.normal(size=(rows, WIDTH)).astype(np.float32)
        grade = np.digitize(values[:, :5].sum(axis=1) + 2 * random.normal(size=rows), [1.0, 3.0, 5.0]).astype(
            float
        )
        if kind == "letor":
            made = formats.Content(
                features=Features.from_rows(query, item, values.round(4)),
                labels=Labels.from_rows(query, item, grade),
            )
            formats.write(made, folder / f"part-{number:03d}.letor")
            continue
        columns = {f"f{k}": values[:, k] for k in range(WIDTH)}
        table = pa.table({"query": query, "item": item, "grade": grade} | columns)
        pq.write_table(
            table, folder / f"part-{number:03d}.parquet", use_dictionary=["query", "item", "grade"]
        )


def make_lists(folder: Path, shards: int) -> None:
    """Lists of experts who see the truth through more or less noise, with the grades in a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(shards):
        random = np.random.default_rng(number)
        queries = QUERIES["crf"]
        truth = random.normal(size=(queries, 1, ITEMS))
        noise = random.normal(size=(queries, EXPERTS, ITEMS)) * np.linspace(0.3, 3, EXPERTS)[:, None]
        item = np.argsort(-(truth + noise), axis=2)[:, :, : ITEMS // 2]
        grades = np.digitize(truth[:, 0], [0.5, 1.0, 2.0]).astype(float)
        rows = item.size
        query = np.arange(rows) // (rows // queries)
        columns = {
            "query": QUERIES["crf"] * number + query,
            "expert": np.arange(rows) // (ITEMS // 2) % EXPERTS,
            "item": item.reshape(-1),
            "rank": np.arange(rows) % (ITEMS // 2) + 1,
            "grade": grades[query, item.reshape(-1)],
        }
        pq.write_table(pa.table(columns), folder / f"part-{number:03d}.parquet")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB


def _model(method: str, passes: int) -> Any:
    import podium
    from podium.methods.learned.lambdarank import LambdaRank

    if method == "lambdarank":
        return LambdaRank(passes=passes, batch=64, standardize=True, rate=0.001)
    return podium.make(f"crf(passes={passes}, average=1, batch=64)")


def train(method: str, way: str, folder: str, kept: str) -> dict[str, Any]:
    """Train in one way, and say what it took."""
    from podium import formats

    files, model, ends = sorted(Path(folder).iterdir()), _model(method, PASSES[way]), list[float]()
    before, begin = _warm(method, files[0]), time.perf_counter()

    def progress(*state: Any) -> None:
        if state[-1] == "learning":
            ends.append(time.perf_counter())

    if way == "memory":
        whole = formats.read(files, **({"kind": "features"} if method == "lambdarank" else {}))
        holder: Any = whole.features if method == "lambdarank" else whole.preferences
        model.fit(holder, whole.labels, progress=progress)
    else:
        model.fit_stream(files, cache=False if way == "shards" else kept, progress=progress)
    one = statistics.median(np.diff(ends))
    weights = model.member_weights_[0] if method == "lambdarank" else model.weights_
    disk = Path(folder if way in ("memory", "shards") else kept)
    return {
        "ready": ends[0] - begin - one,
        "pass": one,
        "start": before,
        "peak": _peak(),
        "disk": sum(f.stat().st_size for f in disk.iterdir()) / 1e6,
        "weights": weights.tolist(),
    }


def _warm(method: str, file: Path) -> float:
    """Import whatever is needed for a part of a shard; the memory of the process then."""
    from podium.learning.training_shards import read_shard

    content, some = read_shard(file, "features" if method == "lambdarank" else None), np.arange(100)
    holder: Any = content.features if method == "lambdarank" else content.preferences
    labels: Any = content.labels
    _model(method, 500).fit(holder.select_codes(some), labels.select_codes(some))
    return _peak()


def measure(method: str, folder: Path) -> list[dict[str, Any]]:
    """All ways, each in a process of its own."""
    rows = []
    with tempfile.TemporaryDirectory() as kept:
        for way in WAYS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(train, (method, way, str(folder), kept))
            rows.append({"method": method, "way": way, **found})
            shown = [method, way, seconds(found["ready"]), seconds(found["pass"])]
            print("\t".join([*shown, *(f"{found[k]:.0f} MB" for k in ("start", "peak", "disk"))]), flush=True)
    assert rows[2]["weights"] == rows[3]["weights"]
    return rows


def main() -> None:
    """Make the data, measure, print a table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", default="lambdarank,crf")
    words.add_argument("--shards", type=int, default=16)
    words.add_argument("--format", choices=["parquet", "letor"], default="parquet")
    given = words.parse_args()
    print("method\tway\tready\tpass\tstart\tpeak\tdisk", flush=True)
    for method in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            if method == "lambdarank":
                make_features(place, given.shards, given.format)
            else:
                make_lists(place, given.shards)
            measure(method, place)


if __name__ == "__main__":
    main()
