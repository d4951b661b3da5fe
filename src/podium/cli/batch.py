"""podium batch: Rank shards: millions of queries, on one machine or a cluster."""

from __future__ import annotations

import dataclasses
import os

import click

from podium.cli._method import AUTO, is_method, make_method
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli._shards import BATCH, ShardOptions, with_shards
from podium.cli.input import Input, parse_assignments, with_input
from podium.cli.output import Output, print_json, with_output
from podium.core.errors import ParameterError


@click.command(name="batch")
@click.argument("model", type=click.Path())
@with_shards(*BATCH)
@add_option(Output, "path", "The folder to write, if it is not the last argument.", type=click.Path())
@add_options(Output, "top", "ties")
@add_option(Output, "overwrite", "Replace results of another method or other options.")
@with_input
@with_output
def verb(model: str, source: Input, output: Output, how: ShardOptions) -> None:
    """Rank shards with a method or a saved model: one result file per shard, in the last folder named.

    Shards are files of whole queries, or folders of them; Parquet is the fastest. Results that are up to date
    are kept, so an interrupted run resumes when the command is repeated, and new shards are added to old ones.

    \b
    podium batch 'rrf(k=20)' in/*.parquet out/             all cores of this machine
    podium batch model.podium --engine ray --address auto in/ out/
    podium batch rrf in/ out/ --partition-by lang --top 100
    podium batch rrf runs/*.run out/ --regroup grouped/    one run per engine: regroup by query first
    """
    rank_shards(model, source, output, how)


def rank_shards(model: str, source: Input, output: Output, how: ShardOptions) -> None:
    """Rank shards into a folder and print a summary."""
    from podium import scale

    files = source.files
    # an existing file that is neither a method nor a model is a shard; the default method applies
    if not model.endswith(".podium") and os.path.exists(model) and not is_method(model):
        model, files = "rrf", (model, *files)
    if model == AUTO:
        raise ParameterError(
            "auto compares the lists of all queries, and shards are ranked one by one; let it choose on a part: "
            "podium fit SHARD -m auto -o model.podium, then podium batch model.podium SHARDS OUT"
        )
    method = make_method(model)
    *shards, out = (*files, output.path) if output.path is not None else files or ("",)
    if not shards:
        raise click.UsageError("give the shards, then the result folder (last, or with -o)")
    format_, options = source.format, dict(parse_assignments(source.options, "option"))
    if how.regroup is not None:
        given = options | ({} if source.unlisted is None else {"unlisted": source.unlisted})
        shards = scale.regroup(shards, how.regroup, format=format_, options=given)
        # the other options were used to read the files
        format_, options = None, {k: v for k, v in options.items() if k == "duplicates"}
    with progress_bar() as update:
        done = scale.apply(
            method,
            shards,
            out,
            engine=how.engine or "local",
            address=how.address,
            workers=how.workers,
            partition_by=how.partition_by,
            overwrite=output.overwrite,
            format=format_,
            options=options,
            tell=lambda k, n: update(k, n, "shards"),
            top=output.top,
            ties=output.ties,
            unlisted=source.unlisted,
        )
    if output.json:
        print_json({k: v for k, v in dataclasses.asdict(done).items() if k != "records"})
    elif done.found == done.shards:
        text = f"all {done.shards:,} shards are already up to date; results in {done.out}"
        click.echo(f"{done.method}: {text}", err=True)
    else:
        speed = f", {done.rows / done.seconds:,.0f} rows per second" if done.rows else ""
        counts = f"{done.shards - done.found:,} shards processed, {done.found:,} already up to date"
        gave = f"{done.rows:,} rows of {done.queries:,} queries gave {done.results:,} results in {done.out}"
        click.echo(f"{done.method}: {counts}; {gave}{speed}", err=True)
