"""Leaderboards, expert statistics and method selection from counts over many shards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podium import formats
from podium.core.errors import InputError, ModelFileError, ParameterError
from podium.scale.apply import Paths, raise_shard_errors
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.query_overlap import check_query_overlap
from podium.scale.shard_counts import (
    CandidateScore,
    CountJob,
    ExpertCounter,
    ExpertStatistics,
    TrialCounter,
    TrialSums,
    VoteCounter,
    merge_counts,
    to_absolute_paths,
)
from podium.scale.shards import digest_file, find_shards, is_parquet

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard
    from podium.analysis.leaderboard.tally import Tally
    from podium.methods.base import Aggregator

__all__ = ["experts", "leaderboard", "score_candidates", "trials", "votes"]


def votes(inputs: Paths, folder: str | os.PathLike[str], *, by_query: bool = False, **how: Any) -> Tally:
    """All votes in the shards combined; `folder` caches the counts, so that only new shards are counted.

    `how`: engine, address, workers.
    """
    counted, _ = _count_shards(VoteCounter(by_query), inputs, folder, **how)
    if counted is None:
        raise InputError("no shard has votes", remedy="a leaderboard needs lists or comparisons")
    tally: Tally = counted
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
    counted, _ = _count_shards(ExpertCounter(), inputs, folder, **how)
    if counted is None:
        raise InputError("no shard has lists", remedy="give shards of lists")
    measured: ExpertStatistics = counted
    return measured


def trials(
    candidates: Sequence[Aggregator | str],
    inputs: Paths,
    labels: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    metric: str = "ndcg@10",
    **how: Any,
) -> list[CandidateScore]:
    """The mean metric of each candidate (other k, weights or methods) over the labeled queries, best first.

    `labels` is a file that each worker reads. Equal means keep the order of the candidates.
    """
    methods = [batch_function(c).aggregator for c in candidates]
    tried = score_candidates(methods, inputs, labels, folder, metric=metric, **how)
    count = int(tried.queries.sum())
    found = [
        CandidateScore(repr(m), float(s.sum() / count), count)
        for m, s in zip(methods, tried.sums, strict=True)
    ]
    return sorted(found, key=lambda t: -t.mean)


def score_candidates(
    candidates: Sequence[Aggregator],
    inputs: Paths,
    labels: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    metric: str,
    **how: Any,
) -> TrialSums:
    """Sums of the metric of each candidate over the labeled queries."""
    if not candidates:
        raise ParameterError("no candidate given; name at least one method")
    functions = [batch_function(c) for c in candidates]
    names = tuple(repr(f.aggregator) for f in functions)
    path = os.path.abspath(os.fspath(labels))
    if not os.path.exists(path):
        raise InputError("there is no such file", source=path, remedy="give a file of labels, such as qrels")
    if formats.read(path).labels is None:
        raise InputError("the file has no labels", source=path, remedy="give a file of labels, such as qrels")
    prints = tuple(f.fingerprint for f in functions)
    kind = TrialCounter(tuple(f.model for f in functions), names, prints, metric, path, digest_file(path))
    tried: TrialSums | None = _count_shards(kind, inputs, folder, **how)[0]
    if tried is None or not tried.queries.any():
        raise InputError(
            "no query in the shards has labels",
            source=path,
            remedy="check that the ids are the same, type included: 7 is not '7'",
        )
    return tried


def _count_shards(
    kind: Any,
    inputs: Paths,
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
) -> tuple[Any, int]:
    """The sum over all shards, and the number of shards counted in this run."""
    work = find_engine(engine)
    shards = to_absolute_paths(find_shards(inputs))
    if kind.whole:
        check_query_overlap([s.path for s in shards if is_parquet(s.path)])
    count = CountJob(kind, os.path.abspath(os.fspath(folder)))
    done = list(work(count, shards, workers=workers, address=address))
    raise_shard_errors(done)
    return merge_counts(count, [s.name for s in shards]), sum(r.fresh for r in done)
