"""The options of verbs that read shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import click

from podium.cli._options import F, add_options, collect
from podium.core.errors import ParameterError
from podium.core.params import Flags, Range
from podium.scale.engines import list_engines

BATCH = ("engine", "address", "workers", "partition_by", "regroup")  # of `podium batch`
TRAINING = ("shards", "cache", "no_cache")  # of `podium fit`


@dataclass(frozen=True)
class ShardOptions:
    """The values of the shard options."""

    engine: Annotated[
        str | None,
        click.Choice(list_engines()),
        "Where the shards are processed: on this machine, or by a Ray or Spark cluster.  [default: local]",
    ] = None
    address: Annotated[str | None, "Address of a running Ray cluster or of the Spark master."] = None
    workers: Annotated[int | None, Range(1), "Shards processed in parallel.  [default: one per core]"] = None
    partition_by: Annotated[
        tuple[str, ...],
        Flags(metavar="COLUMN"),
        "Partition results into COLUMN=value folders; may be repeated.",
    ] = ()
    regroup: Annotated[
        str | None,
        Flags(metavar="FOLDER"),
        "First regroup the rows there into shards of whole queries; for queries split across files.",
    ] = None
    shards: Annotated[
        bool,
        "The input is shards: files of whole queries, or folders of them, loaded one at a time. For crf and"
        " lambdarank. --qrels may be a folder with one file per shard, of the same name.",
    ] = False
    cache: Annotated[
        str | None,
        click.Path(file_okay=False),
        Flags(metavar="FOLDER"),
        "Keep prepared shards in this folder for the next run.  [default: a temporary folder]",
    ] = None
    no_cache: Annotated[bool, "Re-read the shards in every pass, to save disk space."] = False

    def is_requested(self, files: Sequence[str]) -> bool:
        """Whether the input is shards: a shard option or a folder is given."""
        return any(getattr(self, f.name) for f in fields(self)) or any(map(os.path.isdir, files))


def with_shards(*names: str, **changes: Any) -> Callable[[F], F]:
    """Add the shard options of these names, and hand over `how`, a `ShardOptions`."""

    def decorate(command: F) -> F:
        return add_options(ShardOptions, *names, **changes)(collect(ShardOptions, "how")(command))

    return decorate


def refuse_options(**given: object) -> None:
    """Refuse options that shards do not support."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if named:
        raise ParameterError(f"{', '.join(named)} cannot be used with shards; leave it out")
