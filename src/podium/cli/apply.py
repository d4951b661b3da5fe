"""podium apply: Rank new input with a saved model."""

from __future__ import annotations

import os

import click

from podium.cli._method import is_method
from podium.cli._options import add_options
from podium.cli._shards import BATCH, ShardOptions, refuse_options, with_shards
from podium.cli.input import Input, with_input
from podium.cli.output import Output, consensus_options, with_output
from podium.core.errors import ParameterError


@click.command(name="apply")
@click.argument("model", type=click.Path())
@add_options(Input, "features")
@click.option(
    "--unseen",
    type=click.Choice(["error", "ignore"]),
    help="What to do with unknown experts (not in the training data).  [default: as fitted]",
)
@add_options(Input, "names")
@with_shards(*BATCH, hidden=True)
@consensus_options
@with_input
@with_output
def verb(model: str, unseen: str | None, source: Input, output: Output, how: ShardOptions) -> None:
    """Rank new input with a model that `podium fit` or `podium believe` saved.

    \b
    podium apply model.podium bm25.run dense.run -o fused.run
    podium apply believed.podium features.txt -o ranking.run
    """
    from podium import models
    from podium.data.unlisted_rule import describe_unlisted_rule

    places = [*source.files, *([] if output.path is None else [output.path])]
    if how.is_requested(places) or (places and places[-1].endswith(("/", os.sep))):
        from podium.cli.batch import rank_shards

        click.echo("podium: ranking shards with podium apply is deprecated; use podium batch", err=True)
        tag = output.tag != "podium"
        refuse_options(features=source.features, unseen=unseen, names=source.names, to=output.to, tag=tag)
        rank_shards(model, source, output, how)
        return
    if not os.path.exists(model) and is_method(model):
        raise ParameterError(
            f"{model} is a method, not a saved model; use podium fuse -m '{model}', or, for shards, podium batch"
        )
    aggregator = models.load(model)
    if hasattr(aggregator, "rank"):  # a feature-only model
        if source.features or unseen is not None or source.unlisted is not None:
            raise ParameterError(
                f"{aggregator.name} ranks by features alone; give only feature files, and no other option"
            )
        _, features = source.read_features()
        output.write_consensus(aggregator.rank(features, ties=output.ties), repr(aggregator))
        return
    if source.names is not None:
        raise ParameterError(f"{aggregator.name} does not rank by features alone; leave --names out")
    preferences = source.preferences
    if unseen is not None:
        if not hasattr(aggregator, "unseen"):
            raise ParameterError(f"{aggregator.name} does not learn about experts; leave --unseen out")
        aggregator.unseen = unseen
    consensus = aggregator.aggregate(preferences, source.features_of(aggregator), ties=output.ties)
    output.write_consensus(consensus, repr(aggregator), describe_unlisted_rule(preferences))
