"""`podium apply` on shards: an engine writes one result file per shard."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from podium.cli import _common as common
from podium.core import registry
from podium.core.errors import ParameterError
from podium.scale.engines import list_engines

if TYPE_CHECKING:
    from podium.scale import Summary

F = TypeVar("F", bound=Callable[..., Any])


class ShardOptions(NamedTuple):
    """The values of the shard options."""

    engine: str | None
    address: str | None
    workers: int | None
    partition_by: tuple[str, ...]
    regroup: str | None

    def is_requested(self, files: Sequence[str]) -> bool:
        """Whether the input is shards: a shard option or folder is given, or the last name is a folder."""
        folder = any(os.path.isdir(f) for f in files)
        return any(self) or folder or bool(files and files[-1].endswith(("/", os.sep)))


def shard_options(command: F) -> F:
    """Add the options of verbs that can process shards."""
    options = (
        click.option(
            "--engine",
            type=click.Choice(list_engines()),
            help="Rank shards (files or folders of whole queries) into the last folder named; results that are up to"
            " date are kept.  [default for folders: local]",
        ),
        click.option("--address", help="Address of a running Ray cluster or of the Spark master."),
        click.option(
            "--workers", type=click.IntRange(1), help="Shards processed in parallel.  [default: one per core]"
        ),
        click.option(
            "--partition-by",
            "partition_by",
            multiple=True,
            metavar="COLUMN",
            help="Partition results into COLUMN=value folders; may be repeated.",
        ),
        click.option(
            "--regroup",
            metavar="FOLDER",
            help="First regroup the rows there into shards of whole queries; for queries split across files.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_shards(
    model: str, files: Sequence[str], how: ShardOptions, output: str | None, json_: bool, **options: Any
) -> None:
    """Rank shards into a folder and print a summary."""
    from podium import scale

    # an existing file that is neither a method nor a model is a shard; the default method applies
    if not model.endswith(".podium") and os.path.exists(model) and not is_method(model):
        model, files = "rrf", [model, *files]
    method = common.make_method(model)
    *shards, out = [*files, output] if output is not None else files or [""]
    if not shards:
        raise click.UsageError("give the shards, then the result folder (last, or with -o)")
    if how.regroup is not None:
        shards, options = _regroup_shards(shards, how.regroup, options)
    with common.progress_bar() as tell:
        done = scale.apply(
            method,
            shards,
            out,
            engine=how.engine or "local",
            address=how.address,
            workers=how.workers,
            partition_by=how.partition_by,
            tell=lambda k, n: tell(k, n, "shards"),
            **options,
        )
    if json_:
        common.print_json({k: v for k, v in dataclasses.asdict(done).items() if k != "records"})
    else:
        click.echo(_format_summary(done), err=True)


def _regroup_shards(
    shards: Sequence[str], folder: str, options: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """Shards of whole queries, and the options still needed; the others were used to read the files."""
    from podium import scale

    given = dict(options["options"])
    if options["unlisted"] is not None:
        given["unlisted"] = options["unlisted"]
    made = scale.regroup(shards, folder, format=options["format"], options=given)
    left = {k: v for k, v in given.items() if k == "duplicates"}
    return made, options | {"format": None, "options": left}


def _format_summary(done: Summary) -> str:
    if done.found == done.shards:
        return f"{done.method}: all {done.shards:,} shards are already up to date; results in {done.out}"
    speed = f", {done.rows / done.seconds:,.0f} rows per second" if done.rows else ""
    return (
        f"{done.method}: {done.shards - done.found:,} shards processed, {done.found:,} already up to date;"
        f" {done.rows:,} rows of {done.queries:,} queries gave {done.results:,} results in {done.out}{speed}"
    )


def is_method(name: str) -> bool:
    """Whether the text names a method, with or without parameters."""
    return name.partition("(")[0] in registry.aggregators.all()


def refuse_options(**given: object) -> None:
    """Refuse options that shards do not support."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if named:
        raise ParameterError(f"{', '.join(named)} cannot be used with shards; leave it out")
