"""podium fuse: Fuse runs, ratings or votes into one ranking per query."""

from __future__ import annotations

import click

from podium.cli._method import AUTO, MethodChoice, with_method
from podium.cli._options import add_options
from podium.cli.input import Input, with_input
from podium.cli.output import Output, consensus_options, with_output


@click.command(name="fuse")
@with_method("A method, such as 'rrf(k=20)', a model file, or auto: by the form of the input.", default=AUTO)
@add_options(Input, "features")
@consensus_options
@with_input
@with_output
def verb(source: Input, choice: MethodChoice, output: Output) -> None:
    """Fuse runs, ratings or votes into one ranking per query.

    \b
    podium fuse bm25.run dense.run                         show the first queries
    podium fuse *.run -m 'rrf(k=20)' -o fused.run          a TREC run
    podium fuse *.run --weights bm25=1,dense=2 -o fused.csv
    podium fuse *.run -m retargeting --features items.csv -o fused.run
    zcat votes.csv.gz | podium fuse - -m copeland --json
    """
    from podium.data.unlisted_rule import describe_unlisted_rule

    method = choice.make_for(source)
    preferences = source.preferences
    features = source.features_of(method)
    consensus = method.aggregate(preferences, features, ties=output.ties)
    output.write_consensus(consensus, choice.spec, describe_unlisted_rule(preferences))
