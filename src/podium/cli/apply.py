"""podium apply: rank new input with a saved model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.cli._features import names_option, read_features
from podium.cli._results import OutputOptions, output_options, write_consensus
from podium.cli._shards import ShardOptions, is_method, refuse_options, run_shards, shard_options
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.formats import Content


@click.command(name="apply", short_help="Rank new input with a saved model.")
@click.argument("model", type=click.Path())
@click.argument("files", nargs=-1, type=common.FILES)
@common.features_option
@click.option(
    "--unseen",
    type=click.Choice(["error", "ignore"]),
    help="What to do with unknown experts (not in the training data).  [default: as fitted]",
)
@names_option
@shard_options
@output_options
@common.input_options
@common.json_option
def verb(
    model: str,
    files: tuple[str, ...],
    features: tuple[str, ...],
    unseen: str | None,
    names: str | None,
    engine: str | None,
    address: str | None,
    workers: int | None,
    partition_by: tuple[str, ...],
    regroup: str | None,
    output: str | None,
    to: str | None,
    top: int | None,
    tag: str,
    ties: Any,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Rank new input with a model that `podium fit` or `podium believe` saved.

    \b
    podium apply model.podium bm25.run dense.run -o fused.run
    podium apply believed.podium features.txt -o ranking.run
    podium apply model.podium in/*.parquet out/            one result per shard, on all cores
    podium apply rrf --engine ray --address auto in/ out/
    """
    from podium import models
    from podium.data.unlisted_rule import describe_unlisted_rule

    how = ShardOptions(engine, address, workers, partition_by, regroup)
    if how.is_requested(files if output is None else [*files, output]):
        refuse_options(features=features, unseen=unseen, names=names, to=to, tag=tag != "podium")
        given = dict(common.parse_assignments(options, "option"))
        shared = {"top": top, "ties": ties, "overwrite": overwrite, "format": format_, "options": given}
        run_shards(model, files, how, output, json_, **shared, unlisted=unlisted)
        return
    if not os.path.exists(model) and is_method(model):
        raise ParameterError(
            f"{model} is a method, not a saved model; use podium fuse -m '{model}', or, for shards, name a folder last"
            " (out/)"
        )
    aggregator = models.load(model)
    wanted = OutputOptions(output, to, top, tag, overwrite, json_)
    if hasattr(aggregator, "rank"):  # a feature-only model
        if features or unseen is not None or unlisted is not None:
            raise ParameterError(
                f"{aggregator.name} ranks by features alone; give only feature files, and no other option"
            )
        _, described = read_features(files, format_, options, names)
        write_consensus(aggregator.rank(described, ties=ties), repr(aggregator), wanted)
        return
    if names is not None:
        raise ParameterError(f"{aggregator.name} does not rank by features alone; leave --names out")
    content = common.read_input(files, format_, options, unlisted)
    found = _rank_with_model(aggregator, content, files, features, unseen, ties)
    write_consensus(
        found, repr(aggregator), wanted, describe_unlisted_rule(common.require_preferences(content, files))
    )


def _rank_with_model(
    aggregator: Any,
    content: Content,
    files: Sequence[str],
    features: Sequence[str],
    unseen: str | None,
    ties: Any,
) -> Consensus:
    """The consensus of a model that reads lists."""
    if unseen is not None:
        if not hasattr(aggregator, "unseen"):
            raise ParameterError(f"{aggregator.name} does not learn about experts; leave --unseen out")
        aggregator.unseen = unseen
    preferences = common.require_preferences(content, files)
    described = common.resolve_features(aggregator, content, features)
    found: Consensus = aggregator.aggregate(preferences, described, ties=ties)
    return found
