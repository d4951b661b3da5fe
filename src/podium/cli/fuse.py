"""podium fuse: Fuse runs, ratings or votes into one ranking per query."""

from __future__ import annotations

import click

from podium.cli._method import AUTO, MethodChoice, refuse_budget, with_budget, with_method
from podium.cli._options import add_option, add_options
from podium.cli.input import Input, with_input
from podium.cli.output import Output, consensus_options, echo_note, with_output
from podium.core.errors import ParameterError


@click.command(name="fuse")
@with_method(
    "A method, such as 'rrf(k=20)', a model file, or auto: by --qrels or the form of the input.", default=AUTO
)
@add_option(Input, "qrels", "Judgements of some queries; auto chooses the method by them.")
@with_budget
@add_options(Input, "features")
@consensus_options
@with_input
@with_output
def verb(source: Input, choice: MethodChoice, budget: float | None, output: Output) -> None:
    """Fuse runs, ratings or votes into one ranking per query.

    \b
    podium fuse bm25.run dense.run                         show the first queries
    podium fuse *.run --qrels qrels.txt -o fused.run       the method that the judgements choose
    podium fuse *.run -m 'rrf(k=20)' -o fused.run          a TREC run
    podium fuse *.run --weights bm25=1,dense=2 -o fused.csv
    podium fuse *.run -m retargeting --features items.csv -o fused.run
    zcat votes.csv.gz | podium fuse - -m copeland --json
    """
    from podium.data.unlisted_rule import describe_unlisted_rule

    if source.qrels is not None:
        if choice.spec != AUTO:
            raise ParameterError(
                f"{choice.spec} is named, so judgements choose nothing; leave -m or --qrels out"
            )
        method = choice.find_answer(source, budget).method
        features = source.item_features if method.tags.uses_features else None
    else:
        refuse_budget(budget)
        method = choice.make_for(source)
        features = source.features_of(method)
        if choice.spec == AUTO and source.content.labels is not None:
            echo_note("The input holds judgements, which choose the method if you give it as --qrels too.")
    preferences = source.preferences
    consensus = method.aggregate(preferences, features, ties=output.ties)
    output.write_consensus(consensus, choice.spec, describe_unlisted_rule(preferences))
