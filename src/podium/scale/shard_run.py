"""A method applied to many shards: `podium.scale.apply`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, Option, ParameterError, PodiumWarning
from podium.scale.arrow_schema import select_column_names
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.query_batches import ROWS
from podium.scale.query_overlap import check_query_overlap
from podium.scale.shard_job import ShardJob
from podium.scale.shard_reading import check_parquet_options
from podium.scale.shard_records import RECORDS, ShardRecord, load_records, raise_shard_errors
from podium.storage.files import read_json, write_json
from podium.storage.shards import Paths, Shard, find_shards, is_parquet, to_absolute_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.methods.base import Aggregator

ABOUT = "about.json"


@dataclass(frozen=True)
class Summary:
    """Summary of a run; `found` counts the shards that were already up to date."""

    method: str
    out: str
    shards: int
    found: int
    rows: int  # read in this run
    queries: int
    results: int
    seconds: float
    records: tuple[ShardRecord, ...]


def apply(
    aggregator: Aggregator | str,
    inputs: Paths,
    out: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    partition_by: Sequence[str] = (),
    overwrite: bool = False,
    rows: int = ROWS,
    format: str | None = None,
    options: dict[str, Any] | None = None,
    compression: str = "lz4",
    tell: Callable[[int, int], None] = lambda *_: None,
    **how: Any,
) -> Summary:
    """Rank the queries of all shards and write the results to the folder `out`, one Parquet file per shard.

    Shards with up-to-date results (same bytes, method, options and version) are skipped, so that an
    interrupted run resumes and only new or changed shards are computed. `partition_by` names columns that are
    constant within a query; results then go into folders `column=value`. `how` are the options of
    `podium.scale.batch_function`; `options` are those of the shard format, for Parquet a mapping to other
    column names, such as {"item": "doc"}.
    """
    begin = time.perf_counter()
    out = os.fspath(out)
    by = tuple(dict.fromkeys(partition_by))
    if rows < 1:
        raise ParameterError(f"rows is {rows}; accepted: whole numbers from 1")
    for name in {"query", "item", "rank", "score", "tied"}.intersection(by):
        raise ParameterError(
            f"results cannot be partitioned by {name!r}; give a column that is constant within a query"
        )
    options = dict(options or {})
    if "duplicates" in options:
        how["duplicates"] = options["duplicates"]
    function = batch_function(aggregator, keep=tuple(dict.fromkeys((*how.pop("keep", ()), *by))), **how)
    work = find_engine(engine)
    shards = find_shards(inputs)
    folders = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    _check_output(out, shards, [os.fspath(f) for f in folders])
    tables = [] if function.by_features else [s.path for s in shards if is_parquet(s.path)]
    job = ShardJob(function, os.path.abspath(out), by, rows, format, options, compression)
    if len(tables) == len(shards):
        check_parquet_options(format, options)
    check_query_overlap(tables, select_column_names(options))
    here = to_absolute_paths(shards)
    _claim_output(job, here, overwrite)
    done: list[ShardRecord] = []
    for record in work(job, here, workers=workers, address=address):
        done.append(record)
        tell(len(done), len(here))
    raise_shard_errors(done)
    _check_text_overlap(job, here, done, set(map(os.path.abspath, tables)))
    names = {s.name for s in here}
    others = [r.name for r in load_records(out) if r.name not in names]
    if others:
        text = f"also has results of {len(others)} shards that were not given ({', '.join(others[:3])})"
        warnings.warn(f"{out} {text}", PodiumWarning, stacklevel=2)
    fresh = [r for r in done if r.fresh]
    return Summary(
        repr(function.aggregator),
        job.out,
        len(done),
        len(done) - len(fresh),
        sum(r.rows for r in fresh),
        sum(r.queries for r in fresh),
        sum(r.results for r in fresh),
        time.perf_counter() - begin,
        tuple(sorted(done, key=lambda r: r.name)),
    )


def _check_output(out: str, shards: Sequence[Shard], inputs: Sequence[str]) -> None:
    """Reject an output folder that is a file, contains the input, or is inside it."""
    folder = Path(out).resolve()
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{out} is a file; results of shards go into a folder")
    for shard in shards:
        if folder in Path(shard.path).resolve().parents:
            raise ParameterError(
                f"the input {shard.path} is in the output folder {out}; choose another folder"
            )
    for given in inputs:
        if os.path.isdir(given) and Path(given).resolve() in (folder, *folder.parents):
            raise ParameterError(f"the output folder {out} is in the input {given}; choose another folder")


def _claim_output(job: ShardJob, shards: Sequence[Shard], overwrite: bool) -> None:
    """Record the job in the output folder; reject other content unless overwriting is allowed."""
    about = {"method": repr(job.function.aggregator), "fingerprint": job.function.fingerprint,
             "partition_by": list(job.partition_by)}  # fmt: skip
    place = Path(job.out, RECORDS, ABOUT)
    old, done = read_json(place), load_records(job.out)
    names = {s.path: s.name for s in shards}
    again = [r for r in done if names.get(r.source, r.name) != r.name]
    problem = None
    if overwrite:
        for record in again:
            record.remove_results(job.out)
    elif again:
        problem = f"already has results of {again[0].source} as {again[0].name!r}"
    elif not isinstance(old, dict):
        problem = "contains other Parquet files" if any(Path(job.out).rglob("*.parquet")) else None
    elif done and old != about:  # without a finished shard, it is an earlier run that left nothing
        other = old.get("method") != about["method"]
        problem = (
            f"contains results of {old.get('method')}" if other else "contains results with other options"
        )
    if problem is not None:
        raise ParameterError(
            f"{job.out} {problem}; choose another folder, or give ", Option("overwrite", True, of="writing")
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    if old != about:
        write_json(about, place)


def _check_text_overlap(
    job: ShardJob, shards: Sequence[Shard], done: Sequence[ShardRecord], tables: set[str]
) -> None:
    """Queries of text shards are known only after reading; results of a query in two shards are removed."""
    text = {s.name for s in shards if s.path not in tables}
    if not text or len(shards) < 2:
        return
    files = [str(Path(job.out, name)) for r in done for name, _ in r.files]
    try:
        check_query_overlap(files, shown={str(Path(job.out, n)): r.source for r in done for n, _ in r.files})
    except InputError:
        for record in done:
            if record.name in text:
                record.remove_results(job.out)
        raise
