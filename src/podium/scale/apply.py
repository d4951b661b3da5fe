"""Apply a method to many shards: `podium.scale.apply`."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, Option, ParameterError, PodiumWarning
from podium.core.params import suggest_names
from podium.scale.arrow_schema import LISTS, VOTES
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.query_batches import ROWS
from podium.scale.query_overlap import check_query_overlap
from podium.scale.shard_job import RECORDS, ShardJob, ShardRecord, load_records, remove_results
from podium.scale.shards import Shard, check_output, find_shards, is_parquet
from podium.storage.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.methods.base import Aggregator

__all__ = ["Paths", "Summary", "apply", "raise_shard_errors"]

ABOUT = "about.json"
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


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
    _check_options(by, rows)
    options = dict(options or {})
    if "duplicates" in options:
        how["duplicates"] = options["duplicates"]
    function = batch_function(aggregator, keep=tuple(dict.fromkeys((*how.pop("keep", ()), *by))), **how)
    work = find_engine(engine)
    shards = find_shards(inputs)
    folders = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    check_output(out, shards, [os.fspath(f) for f in folders])
    tables = [] if function.by_features else [s.path for s in shards if is_parquet(s.path)]
    job = ShardJob(function, os.path.abspath(out), by, rows, format, options, compression)
    if len(tables) == len(shards):
        _check_parquet(format, options)
    check_query_overlap(tables, job.names)
    here = [Shard(os.path.abspath(s.path), s.name) for s in shards]
    _claim_output(job, here, overwrite)
    done: list[ShardRecord] = []
    for record in work(job, here, workers=workers, address=address):
        done.append(record)
        tell(len(done), len(here))
    raise_shard_errors(done)
    _check_text_overlap(job, here, done, set(map(os.path.abspath, tables)))
    _warn_of_others(out, here)
    return _summarize_run(job, done, time.perf_counter() - begin)


def _summarize_run(job: ShardJob, done: Sequence[ShardRecord], seconds: float) -> Summary:
    fresh = [r for r in done if r.fresh]
    rows, queries, results = (sum(column) for column in zip(*_counts(fresh), strict=True))
    ordered = tuple(sorted(done, key=lambda r: r.name))
    found, method = len(done) - len(fresh), repr(job.function.aggregator)
    return Summary(method, job.out, len(done), found, rows, queries, results, seconds, ordered)


def _counts(done: Sequence[ShardRecord]) -> list[tuple[int, int, int]]:
    return [(0, 0, 0), *((r.rows, r.queries, r.results) for r in done)]


def _check_options(by: Sequence[str], rows: int) -> None:
    if rows < 1:
        raise ParameterError(f"rows is {rows}; accepted: whole numbers from 1")
    for name in by:
        if name in ("query", "item", "rank", "score", "tied"):
            raise ParameterError(
                f"results cannot be partitioned by {name!r}; give a column that is constant within a query"
            )


def _check_parquet(format: str | None, options: Mapping[str, Any]) -> None:
    """Reject options of text formats for Parquet shards instead of ignoring them."""
    if format not in (None, "parquet"):
        raise ParameterError(f"the shards are Parquet, but the given format is {format}; omit it")
    for name in options:
        if name not in (*LISTS, *VOTES, "duplicates"):
            known = sorted({*LISTS, *VOTES, "duplicates"})
            raise ParameterError(f"Parquet shards have no option {name!r}; {suggest_names(name, known)}")


def _claim_output(job: ShardJob, shards: Sequence[Shard], overwrite: bool) -> None:
    """Record the job in the output folder; reject other content unless overwriting is allowed."""
    about = {"method": repr(job.function.aggregator), "fingerprint": job.function.fingerprint,
             "partition_by": list(job.partition_by)}  # fmt: skip
    place = Path(job.out, RECORDS, ABOUT)
    old, done = _read_claim(place), load_records(job.out)
    names = {s.path: s.name for s in shards}
    again = [r for r in done if names.get(r.source, r.name) != r.name]
    if again and not overwrite:
        raise ParameterError(
            f"{job.out} already has results of {again[0].source} as {again[0].name!r};"
            " choose another folder, or give ",
            Option("overwrite", True, of="writing"),
        )
    for record in again:
        remove_results(job.out, record)
    if old is not None and not done:  # an earlier run that finished no shard
        old = about
    if old is None and not overwrite and any(Path(job.out).rglob("*.parquet")):
        raise ParameterError(
            f"{job.out} contains other Parquet files; choose another folder, or give ",
            Option("overwrite", True, of="writing"),
        )
    if old is not None and old != about and not overwrite:
        what = (
            f"results of {old.get('method')}"
            if old.get("method") != about["method"]
            else "results with other options"
        )
        raise ParameterError(
            f"{job.out} contains {what}; choose another folder, or give ",
            Option("overwrite", True, of="writing"),
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    if _read_claim(place) != about:
        write_atomically([json.dumps(about).encode()], place, overwrite=True)


def _read_claim(place: Path) -> dict[str, Any] | None:
    """The recorded job of a folder; None if it cannot be read."""
    try:
        found = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def raise_shard_errors(done: Sequence[ShardRecord]) -> None:
    """Raise the errors of failed shards after all others are processed."""
    failed = sorted({r.error for r in done if r.error is not None})
    if failed:
        rest = sum(r.error is None for r in done)
        raise InputError(
            "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else ""),
            remedy=f"the other {rest} shards are processed and will not be repeated" if rest else None,
        )


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
                remove_results(job.out, record)
        raise


def _warn_of_others(out: str, shards: Sequence[Shard]) -> None:
    names = {s.name for s in shards}
    others = [r.name for r in load_records(out) if r.name not in names]
    if others:
        warnings.warn(
            f"{out} also has results of {len(others)} shards that were not given ({', '.join(others[:3])})",
            PodiumWarning,
            stacklevel=3,
        )
