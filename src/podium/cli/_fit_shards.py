"""`podium fit` on shards: training that reads one file at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli._progress import progress_bar
from podium.cli._shards import ShardOptions
from podium.cli.input import Input
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.learning.training_shards import ShardFiles
    from podium.storage.shards import Shard


def fit_shards(model: Any, source: Input, validation: Sequence[str], how: ShardOptions) -> dict[str, Any]:
    """Train a model on shards; return the facts to report."""
    if how.cache is not None and how.no_cache:
        raise click.UsageError("give --cache or --no-cache, not both")
    begin = time.perf_counter()
    train, check = _find_files(source, validation)
    cache = not how.no_cache if how.cache is None else how.cache
    with progress_bar() as progress:
        model.fit_stream(train, validation=check, cache=cache, progress=progress)
    quality = model.quality_ if isinstance(model.quality_, list) else [model.quality_]
    measured = {"metric": str(model.choose_by), "quality": sum(quality) / len(quality)} if check else {}
    facts = {
        "method": repr(model),
        **model.shard_counts._asdict(),
        "passes": model.passes_,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    return facts | measured


def _find_files(source: Input, validation: Sequence[str]) -> tuple[list[ShardFiles], list[ShardFiles]]:
    """The training and validation shards, with the labels outside them.

    `--qrels` is one file for all shards, or a folder of files named like the shards.
    """
    from podium.learning.training_shards import ShardFiles, SharedLabels
    from podium.storage.shards import find_shards

    if not source.files:
        raise click.UsageError("no shards; give files or folders of them")
    options, qrels = source.reading, source.qrels
    by_shard = _index_by_name(find_shards(qrels)) if qrels is not None and os.path.isdir(qrels) else None
    shared = None if qrels is None or by_shard is not None else SharedLabels(qrels)

    def build_files(shard: Shard) -> ShardFiles:
        labels = shared if by_shard is None else by_shard.get(Path(shard.name).name)
        if by_shard is not None and labels is None:
            raise ParameterError(
                f"{qrels} contains no labels for the shard {shard.path}; add a file of that name"
            )
        return ShardFiles((shard.path,), source.format, options, labels)

    train, check = find_shards(source.files), find_shards(validation) if validation else []
    return [build_files(s) for s in train], [build_files(s) for s in check]


def _index_by_name(shards: Sequence[Shard]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for shard in shards:
        name = Path(shard.name).name
        if name in paths:
            raise ParameterError(
                f"{paths[name]} and {shard.path} could both be the labels of shard {name!r}; keep one"
            )
        paths[name] = shard.path
    return paths
