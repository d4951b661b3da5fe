"""`podium apply` on shards: one file of results for each, by an engine."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from podium.cli import _common as common
from podium.core import registry
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.scale import Summary

F = TypeVar("F", bound=Callable[..., Any])


class ShardOptions(NamedTuple):
    """What the options of large input say."""

    engine: str | None
    address: str | None
    workers: int | None
    partition_by: tuple[str, ...]
    regroup: str | None

    def is_requested(self, files: Sequence[str]) -> bool:
        """Whether the input is shards: an option of theirs is given, a folder is, or the last name is to be one."""
        folder = any(os.path.isdir(f) for f in files)
        return any(self) or folder or bool(files and files[-1].endswith(("/", os.sep)))


def shard_options(command: F) -> F:
    """Options of verbs that can work on shards."""
    options = (
        click.option(
            "--engine",
            type=click.Choice(["local", "ray", "spark"]),
            help="Rank shards (files or folders of whole queries) into the folder named last; what is done there"
            " already is left alone.  [default for folders: local]",
        ),
        click.option("--address", help="Address of a running Ray cluster, or the Spark master."),
        click.option("--workers", type=click.IntRange(1), help="How many shards at once.  [default: cores]"),
        click.option(
            "--partition-by",
            "partition_by",
            multiple=True,
            metavar="COLUMN",
            help="Write results into folders COLUMN=value; may be repeated.",
        ),
        click.option(
            "--regroup",
            metavar="FOLDER",
            help="First write the rows there as shards of whole queries; for input that has a query in several files.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_shards(
    model: str, files: Sequence[str], how: ShardOptions, output: str | None, json_: bool, **options: Any
) -> None:
    """Rank shards into a folder and say what was done."""
    from podium import scale

    # an existing file that is neither a method nor a model is a shard, and the method the usual one
    if os.path.exists(model) and not is_method(model) and not model.endswith(".podium"):
        model, files = "rrf", [model, *files]
    method = common.make_method(model)
    *shards, out = [*files, output] if output is not None else files or [""]
    if not shards:
        raise click.UsageError("give shards, and last (or with -o) the folder for the results")
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
    """Shards of whole queries, and the options that are left for them: the others were for reading the files."""
    from podium import scale

    given = dict(options["options"])
    if options["unlisted"] is not None:
        given["unlisted"] = options["unlisted"]
    made = scale.regroup(shards, folder, format=options["format"], options=given)
    left = {k: v for k, v in given.items() if k == "duplicates"}
    return made, options | {"format": None, "options": left}


def _format_summary(done: Summary) -> str:
    if done.found == done.shards:
        return f"{done.method}: all {done.shards:,} shards were done before; results in {done.out}"
    speed = f", {done.rows / done.seconds:,.0f} rows a second" if done.rows else ""
    return (
        f"{done.method}: {done.shards - done.found:,} shards done, {done.found:,} found done; {done.rows:,} rows of"
        f" {done.queries:,} queries gave {done.results:,} results in {done.out}{speed}"
    )


def is_method(name: str) -> bool:
    """Whether this names a method, perhaps with parameters."""
    return name.partition("(")[0] in registry.aggregators.all()


def refuse_options(**given: object) -> None:
    """Options that do not go with shards."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if named:
        raise ParameterError(f"{', '.join(named)} cannot be used with shards; leave it out")
