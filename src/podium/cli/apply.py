"""podium apply: a saved model on new input."""

from __future__ import annotations

from typing import Any

import click

from podium.cli import _common as common
from podium.cli._features import names_option, read_features
from podium.cli._results import Wanted, deliver, writing
from podium.errors import ParameterError


@click.command(name="apply", short_help="Rank new input with a saved model.")
@click.argument("model", type=click.Path(dir_okay=False))
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "--features",
    type=common.FILES,
    multiple=True,
    help="Item features, for a model that uses them; may be repeated.",
)
@click.option(
    "--unseen",
    type=click.Choice(["error", "ignore"]),
    help="What to do with experts that the model was not trained on.  [default: as fitted]",
)
@names_option
@writing
@common.reading
@common.as_json
def verb(
    model: str,
    files: tuple[str, ...],
    features: tuple[str, ...],
    unseen: str | None,
    names: str | None,
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
    """
    from podium import models

    aggregator = models.load(model)
    wanted = Wanted(output, to, top, tag, overwrite, json_)
    if hasattr(aggregator, "rank"):  # a model over features alone
        if features or unseen is not None or unlisted is not None:
            raise ParameterError(
                f"{aggregator.name} ranks by features alone; give their files, and no other option"
            )
        _, described = read_features(files, format_, options, names)
        deliver(aggregator.rank(described, ties=ties), repr(aggregator), wanted)
        return
    if names is not None:
        raise ParameterError(f"{aggregator.name} does not rank by features alone; leave --names out")
    if unseen is not None:
        if not hasattr(aggregator, "unseen"):
            raise ParameterError(f"{aggregator.name} does not learn experts; leave --unseen out")
        aggregator.unseen = unseen
    content = common.read(files, format_, options, unlisted)
    preferences = common.preferences_of(content, files)
    consensus = aggregator.aggregate(
        preferences, common.features_for(aggregator, content, features), ties=ties
    )
    deliver(consensus, repr(aggregator), wanted)
