"""Checks that each query is in one shard, before any work: results for half a query would be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.errors import InputError
from podium.core.optional import require_module
from podium.scale.arrow_schema import to_numpy
from podium.scale.shard_reading import find_column_chunk, iterate_queries, translate_arrow_errors

if TYPE_CHECKING:
    from podium.kernels.dispatch import I8


def check_query_overlap(
    paths: Sequence[str], names: Mapping[str, str] | None = None, shown: Mapping[str, str] | None = None
) -> None:
    """Reject Parquet shards that share a query; unreadable shards are reported when they are read.

    If file statistics show disjoint query ranges, nothing is read; otherwise the query columns are read, and
    twelve bytes per query are kept. `shown` are the paths for messages.
    """
    several = _find_overlap_candidates(paths, (names or {}).get("query", "query"))
    keys: list[I8] = []
    owner: list[Any] = []
    for at, path in enumerate(several):
        parts = [np.zeros(0, np.int64)]
        try:
            for ids in iterate_queries(path, names):
                pa, xxhash = require_module("pyarrow"), require_module("xxhash")
                # integers are their own keys, texts are hashed to 64 bits
                if pa.types.is_integer(ids.type) and not ids.null_count:
                    parts.append(to_numpy(ids).astype(np.int64))
                else:
                    texts = (xxhash.xxh3_64_intdigest(str(i).encode()) for i in ids.to_pylist())
                    parts.append(np.fromiter(texts, np.uint64, len(ids)).view(np.int64))
        except InputError:
            continue
        keys.append(np.unique(np.concatenate(parts)))
        owner.append(np.full(len(keys[-1]), at, np.int32))
    if not keys:
        return
    every, whose = np.concatenate(keys), np.concatenate(owner)
    order = np.argsort(every, kind="stable")
    every, whose = every[order], whose[order]
    for at in np.flatnonzero(every[1:] == every[:-1]).tolist():
        first, second = several[whose[at]], several[whose[at + 1]]
        # equal keys of texts may be hash collisions
        both = _read_query_ids(first, names) & _read_query_ids(second, names)
        if both:
            query = min(both, key=str)
            raise shared_query_error(query, *((shown or {}).get(p, p) for p in (first, second)))


def shared_query_error(query: Any, first: str, second: str) -> InputError:
    """The error for a query in two shards."""
    return InputError(
        f"query {query!r} is in {first} and in {second}",
        remedy="a query must be in one shard: regroup the input (--regroup FOLDER, podium.scale.regroup)",
    )


def _find_overlap_candidates(paths: Sequence[str], column: str) -> list[str]:
    """The files whose statistics do not rule out a shared query."""
    spans = [(span, path) for path in paths if (span := _read_query_range(path, column)) is not None]
    if any(span == () for span, _ in spans) or len({type(span[0]) for span, _ in spans}) > 1:
        return [path for _, path in spans]
    doubtful: set[str] = set()
    reach, reached_by = None, ""
    for (low, high), path in sorted(spans, key=lambda s: s[0][0]):
        if reach is not None and low <= reach:
            doubtful |= {reached_by, path}
        if reach is None or high > reach:
            reach, reached_by = high, path
    return [p for p in paths if p in doubtful]


def _read_query_range(path: str, column: str) -> tuple[Any, ...] | None:
    """Smallest and largest query of a file, () without such statistics, None if it has no rows."""
    pq = require_module("pyarrow.parquet")
    try:
        with translate_arrow_errors(path):
            about = pq.read_metadata(path)
        statistics = [
            find_column_chunk(about.row_group(g), column).statistics for g in range(about.num_row_groups)
        ]
    except (InputError, KeyError):
        return None
    if not about.num_rows:
        return None
    if any(s is None or not s.has_min_max for s in statistics):
        return ()
    return min(s.min for s in statistics), max(s.max for s in statistics)


def _read_query_ids(path: str, names: Mapping[str, str] | None) -> set[Any]:
    return {query for ids in iterate_queries(path, names) for query in ids.to_pylist()}
