"""podium apply: a saved model on new input."""

from __future__ import annotations

from typing import Any

import click

from podium.cli import _common as common
from podium.cli._results import Wanted, deliver, writing


@click.command(name="apply", short_help="Rank new input with a saved model.")
@click.argument("model", type=click.Path(dir_okay=False))
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("--features", type=common.FILES, help="Item features, for a model that uses them.")
@writing
@common.reading
@common.as_json
def verb(
    model: str,
    files: tuple[str, ...],
    features: str | None,
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
    """Rank new input with a model that `podium fit` saved.

    \b
    podium apply model.podium bm25.run dense.run -o fused.run
    """
    from podium import models

    aggregator = models.load(model)
    content = common.read(files, format_, options, unlisted)
    preferences = common.preferences_of(content, files)
    described = common.features_for(aggregator, content, features)
    consensus = aggregator.aggregate(preferences, described, ties=ties)
    deliver(consensus, repr(aggregator), Wanted(output, to, top, tag, overwrite, json_))
