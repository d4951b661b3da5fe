"""`podium fit` on shards: training that reads one file at a time."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from podium.cli import _common as common
from podium.core.errors import ParameterError
from podium.core.params import parse_spec, suggest_names

if TYPE_CHECKING:
    from podium.learning.training_shards import ShardFiles, SharedLabels
    from podium.storage.shards import Shard

F = TypeVar("F", bound=Callable[..., Any])


class TrainingShardOptions(NamedTuple):
    """The values of the shard options."""

    shards: bool
    cache: str | None
    no_cache: bool

    def is_requested(self, files: Sequence[str]) -> bool:
        """Whether the input is shards: a shard option or a folder is given."""
        return any(self) or any(map(os.path.isdir, files))


def training_shard_options(command: F) -> F:
    """Add the options of training on shards."""
    options = (
        click.option(
            "--shards",
            is_flag=True,
            help="The input is shards: files of whole queries, or folders of them, loaded one at a time. For crf and"
            " lambdarank. --qrels may be a folder with one file per shard, of the same name.",
        ),
        click.option(
            "--cache",
            type=click.Path(file_okay=False),
            metavar="FOLDER",
            help="Keep prepared shards in this folder for the next run.  [default: a temporary folder]",
        ),
        click.option(
            "--no-cache", is_flag=True, help="Re-read the shards in every pass, to save disk space."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def fit_shards(
    model: Any,
    given: TrainingShardInput,
    how: TrainingShardOptions,
    output: str,
    overwrite: bool,
    json_: bool,
) -> None:
    """Train, save, and print a summary."""
    from podium import models

    facts = {"model": output, **train_on_shards(model, given, how)}
    models.save(model, output, overwrite=overwrite)
    if json_:
        common.print_json(facts)
    else:
        print_summary(facts)


def train_on_shards(model: Any, given: TrainingShardInput, how: TrainingShardOptions) -> dict[str, Any]:
    """Train a model on shards; return the facts to report."""
    if how.cache is not None and how.no_cache:
        raise click.UsageError("give --cache or --no-cache, not both")
    begin = time.perf_counter()
    train, check = given.find_files()
    cache = not how.no_cache if how.cache is None else how.cache
    with common.progress_bar() as progress:
        model.fit_stream(train, validation=check, cache=cache, progress=progress)
    quality = model.quality_ if isinstance(model.quality_, list) else [model.quality_]
    measured = {"metric": str(model.choose_by), "quality": sum(quality) / len(quality)} if check else {}
    facts = {
        "method": repr(model),
        **model.seen._asdict(),
        "passes": model.passes_,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    return facts | measured


def print_summary(facts: dict[str, Any]) -> None:
    """Print the summary as a table."""
    learned = (
        f"{facts['queries']:,} judged queries of {facts['shards']:,} shard(s) in {facts['seconds']:.1f} s"
    )
    held = f"{facts['validation_queries']:,} other judged queries of {facts['validation_shards']:,} shard(s)"
    rows = [
        ("method", facts["method"]),
        ("trained on", learned),
        ("validated on", held if facts["validation_shards"] else "nothing: the last pass was kept"),
        ("passes kept", ", ".join(map(str, facts["passes"]))),
    ]
    if "metric" in facts:
        where = f"{facts['metric']} on validation queries, this model"
        rows.append((where, common.format_number(facts["quality"])))
    common.print_table(["fact", "value"], [*rows, ("saved as", facts["model"])], left=2)


# -- methods ---------------------------------------------------------------------------------------------------------


def find_learner(spec: str) -> type | None:
    """The feature-only model of this name, such as lambdarank, ignoring case; None if there is none."""
    from podium.core import registry

    name = parse_spec(spec)[0].lower()
    if not name.isidentifier() or name in registry.aggregators.all():
        return None
    return list_streaming_learners().get(name)


def list_streaming_learners() -> dict[str, type]:
    """The feature-only models that can be trained on shards, by command-line name."""
    from podium.core import registry

    return {n.lower(): cls for n, cls in registry.learners.all().items() if hasattr(cls, "fit_stream")}


def make_streaming_learner(spec: str, parameters: Sequence[str], weights: str | None) -> Any:
    """The method, if it can be trained on shards."""
    cls = find_learner(spec)
    if cls is None:
        method = common.make_method(spec, parameters, weights)
        if not hasattr(method, "fit_stream"):
            raise ParameterError(
                f"{method.name} cannot be trained on shards, only {', '.join(_list_trainable())}; "
                "leave --shards out and give files that fit in memory"
            )
        return method
    if weights is not None:
        raise ParameterError(f"{cls.__name__} ranks by item features and has no experts; leave --weights out")
    given = parse_spec(spec)[1]
    for name, value in common.parse_assignments(parameters, "parameter").items():
        given |= parse_spec(f"p({name}={value})")[1] if name.isidentifier() else {name: value}
    known = [f.name for f in dataclasses.fields(cls) if f.init and f.name != "prior"]
    for name in given:
        if name not in known:
            raise ParameterError(f"{cls.__name__} has no parameter {name!r}; {suggest_names(name, known)}")
    return cls(**given)


def _list_trainable() -> list[str]:
    from podium.core import registry

    methods = [name for name, cls in registry.aggregators.all().items() if hasattr(cls, "fit_stream")]
    return sorted([*methods, *list_streaming_learners()])


# -- shards ----------------------------------------------------------------------------------------------------------


class TrainingShardInput(NamedTuple):
    """Where the shards are and how to read them."""

    train: Sequence[str]
    validation: Sequence[str]
    qrels: str | None
    format: str | None
    options: dict[str, Any]

    def find_files(self) -> tuple[list[ShardFiles], list[ShardFiles]]:
        """The training and validation shards."""
        from podium.storage.shards import find_shards

        if not self.train:
            raise click.UsageError("no shards; give files or folders of them")
        labels = self._find_labels()
        train, check = find_shards(self.train), find_shards(self.validation) if self.validation else []
        return [self._build_files(s, labels) for s in train], [self._build_files(s, labels) for s in check]

    def _find_labels(self) -> SharedLabels | dict[str, str] | None:
        """Labels outside the shards: one file for all, or a folder of files named like the shards."""
        from podium.learning.training_shards import SharedLabels
        from podium.storage.shards import find_shards

        if self.qrels is None:
            return None
        return (
            _index_by_name(find_shards(self.qrels)) if os.path.isdir(self.qrels) else SharedLabels(self.qrels)
        )

    def _build_files(self, shard: Shard, labels: SharedLabels | dict[str, str] | None) -> ShardFiles:
        from podium.learning.training_shards import ShardFiles

        if not isinstance(labels, dict):
            return ShardFiles((shard.path,), self.format, self.options, labels)
        mine = labels.get(_shard_basename(shard))
        if mine is None:
            raise ParameterError(
                f"{self.qrels} contains no labels for the shard {shard.path}; add a file of that name"
            )
        return ShardFiles((shard.path,), self.format, self.options, mine)


def _shard_basename(shard: Shard) -> str:
    return Path(shard.name).name


def _index_by_name(shards: Sequence[Shard]) -> dict[str, str]:
    found: dict[str, str] = {}
    for shard in shards:
        if _shard_basename(shard) in found:
            raise ParameterError(
                f"{found[_shard_basename(shard)]} and {shard.path} could both be the labels of shard "
                f"{_shard_basename(shard)!r}; keep one"
            )
        found[_shard_basename(shard)] = shard.path
    return found
