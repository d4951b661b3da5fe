"""podium fuse: combine many lists into one."""

from __future__ import annotations

from typing import Any

import click

from podium.cli import _common as common
from podium.cli._results import OutputOptions, output_options, write_consensus


@click.command(name="fuse", short_help="Fuse runs, ratings or votes into one ranking per query.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-m", "--method", default="rrf", show_default=True, help="A method, such as 'rrf(k=20)', or a model file."
)
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the method."
)
@click.option("--weights", metavar="NAME=W,...", help="Weights of the experts, such as bm25=1,dense=2.")
@common.features_option
@output_options
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    method: str,
    parameters: tuple[str, ...],
    weights: str | None,
    features: tuple[str, ...],
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
    """Fuse runs, ratings or votes into one ranking per query.

    \b
    podium fuse bm25.run dense.run                         show the first queries
    podium fuse *.run -m 'rrf(k=20)' -o fused.run          a TREC run
    podium fuse *.run --weights bm25=1,dense=2 -o fused.csv
    podium fuse *.run -m retargeting --features items.csv -o fused.run
    zcat votes.csv.gz | podium fuse - -m copeland --json
    """
    from podium.data.unlisted_rule import describe_unlisted_rule

    aggregator = common.make_method(method, parameters, weights)
    content = common.read_input(files, format_, options, unlisted)
    preferences = common.require_preferences(content, files)
    described = common.resolve_features(aggregator, content, features)
    consensus = common.match_weights(aggregator, preferences).aggregate(preferences, described, ties=ties)
    wanted = OutputOptions(output, to, top, tag, overwrite, json_)
    write_consensus(consensus, method, wanted, describe_unlisted_rule(preferences))
