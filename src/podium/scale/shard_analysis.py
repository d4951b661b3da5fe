"""Leaderboards and expert statistics from counts over many shards."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, ModelFileError
from podium.scale.engines import find_engine
from podium.scale.query_overlap import check_query_overlap
from podium.scale.shard_counts import (
    CountJob,
    ExpertCounter,
    ExpertStatistics,
    ShardCounter,
    VoteCounter,
    merge_counts,
)
from podium.scale.shard_records import raise_shard_errors
from podium.storage.shards import Paths, find_shards, is_parquet, to_absolute_paths

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard
    from podium.analysis.leaderboard.tally import Tally

__all__ = ["experts", "leaderboard", "votes"]


def votes(inputs: Paths, folder: str | os.PathLike[str], *, by_query: bool = False, **how: Any) -> Tally:
    """All votes in the shards combined; `folder` caches the counts, so that only new shards are counted.

    `how`: engine, address, workers.
    """
    tally: Tally | None = _count_shards(VoteCounter(by_query), inputs, folder, **how)
    if tally is None:
        raise InputError("no shard has votes", remedy="a leaderboard needs lists or comparisons")
    return tally


def leaderboard(
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Leaderboard:
    """The leaderboard of all votes in the shards (`settings`: see `podium.analysis.leaderboard.leaderboard`).

    If shards were added since the last run, only those are counted, and the fit starts from the last scores.
    """
    from podium.analysis import leaderboard as boards
    from podium.analysis.leaderboard import board_file

    by_query = settings.get("over") == "queries"
    tally = votes(inputs, folder, by_query=by_query, engine=engine, address=address, workers=workers)
    kept = os.path.join(os.fspath(folder), "board.podium")
    start = None
    with contextlib.suppress(ModelFileError, OSError):  # missing or damaged: the fit starts from scratch
        old, scores, _ = board_file.read(kept)
        start = dict(zip(old.items.tolist(), scores, strict=True))
    board = boards.leaderboard(tally, start=start, **settings)
    boards.save(board, kept, overwrite=True)
    return board


def experts(inputs: Paths, folder: str | os.PathLike[str], **how: Any) -> ExpertStatistics:
    """Items that experts list, that only one expert lists, and that two share, counted over all shards."""
    statistics: ExpertStatistics | None = _count_shards(ExpertCounter(), inputs, folder, **how)
    if statistics is None:
        raise InputError("no shard has lists", remedy="give shards of lists")
    return statistics


def _count_shards(
    kind: ShardCounter,
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
) -> Any:
    """The sum over all shards; None if all are empty."""
    work = find_engine(engine)
    shards = to_absolute_paths(find_shards(inputs))
    if kind.whole:
        check_query_overlap([s.path for s in shards if is_parquet(s.path)])
    count = CountJob(kind, os.path.abspath(os.fspath(folder)))
    raise_shard_errors(list(work(count, shards, workers=workers, address=address)))
    return merge_counts(count, [s.name for s in shards])
