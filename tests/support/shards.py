"""Small sets of lists as Arrow tables and shards."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def lists(queries: range, *, seed: int = 0, ids: str = "text", experts: int = 4, depth: int = 8) -> pa.Table:
    """Lists with ranks and scores, grouped by query; `ids` are text, integers (int32), or dictionaries."""
    rng = np.random.default_rng((seed, queries.start))
    rows = []
    for q in queries:
        for e in range(experts):
            drawn = rng.permutation(2 * depth)[: int(rng.integers(1, depth + 1))]
            rows += [(q, e, int(i) + 7 * q % 31, r + 1) for r, i in enumerate(drawn)]
    query, expert, item, rank = map(np.array, zip(*rows, strict=True))
    score = 100.0 - rank
    if ids == "integers":
        columns = {
            "query": query.astype(np.int32),
            "expert": expert.astype(np.int16),
            "item": item.astype(np.int32),
        }
        return pa.table(columns | {"rank": rank.astype(np.int32), "score": score})
    text = {
        "query": [f"q-{q:05d}" for q in query],
        "expert": [f"engine {e}" for e in expert],
        "item": [f"d'{i},\t\"é{i % 3}" for i in item],
    }
    table = pa.table(text | {"rank": rank.astype(np.int64), "score": score})
    if ids == "dictionaries":
        for at, name in enumerate(("query", "expert", "item")):
            table = table.set_column(at, name, table[name].dictionary_encode())
    return table


def shards(folder: Path, count: int, queries: int = 20, **how) -> Path:
    """A folder of Parquet shards."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(count):
        pq.write_table(lists(range(k * queries, (k + 1) * queries), **how), folder / f"part-{k:03d}.parquet")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all results in a folder."""
    found = sorted(p for p in folder.rglob("*.parquet"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in found}


def results(folder: Path) -> pa.Table:
    """All results in a folder, in the order of the names of the files."""
    return pa.concat_tables(pq.read_table(p, partitioning=None) for p in sorted(folder.rglob("*.parquet")))


@dataclass(frozen=True)
class DiesOnce:
    """Work whose process is killed, once, in the middle of a shard."""

    work: Any
    marker: str  # a file that says that it has happened
    shard: str

    def __call__(self, shard):
        if shard.name == self.shard and not os.path.exists(self.marker):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(shard)


@dataclass(frozen=True)
class Slow:
    """Work that takes its time."""

    work: Any
    seconds: float

    def __call__(self, shard):
        time.sleep(self.seconds)
        return self.work(shard)


@dataclass(frozen=True)
class Pid:
    """Work that leaves the number of its process, and takes very long."""

    folder: str

    def __call__(self, shard):
        Path(self.folder, f"{os.getpid()}.pid").touch()
        time.sleep(120)
        return shard
