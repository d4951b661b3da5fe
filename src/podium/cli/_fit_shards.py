"""`podium fit` on shards: training over files that are taken one after another."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from podium.cli import _common as common
from podium.errors import ParameterError
from podium.params import parse_spec, suggest_names

if TYPE_CHECKING:
    from podium.aggregators.supervised.training_shards import ShardFiles, SharedLabels
    from podium.scale.shards import Shard

F = TypeVar("F", bound=Callable[..., Any])


class Large(NamedTuple):
    """What the options of shards say."""

    shards: bool
    cache: str | None
    no_cache: bool

    def asked(self, files: Sequence[str]) -> bool:
        """Whether the input is shards: an option of theirs is given, or a folder."""
        return any(self) or any(map(os.path.isdir, files))


def large(command: F) -> F:
    """Options of training over shards."""
    options = (
        click.option(
            "--shards",
            is_flag=True,
            help="The input is shards, files or folders of files that each hold whole queries; they are never in memory"
            " together. For crf and lambdarank. --qrels may be a folder with a file of the same name for each shard.",
        ),
        click.option(
            "--cache",
            type=click.Path(file_okay=False),
            metavar="FOLDER",
            help="Keep prepared shards there for the next run.  [default: a temporary folder]",
        ),
        click.option(
            "--no-cache", is_flag=True, help="Read shards again in every pass, if there is no room on disk."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run(model: Any, given: Given, how: Large, output: str, overwrite: bool, json_: bool) -> None:
    """Train, save, and say what came of it."""
    from podium import models

    facts = {"model": output, **learn(model, given, how)}
    models.save(model, output, overwrite=overwrite)
    if json_:
        common.emit(facts)
    else:
        tell(facts)


def learn(model: Any, given: Given, how: Large) -> dict[str, Any]:
    """Train a model over shards; what came of it."""
    if how.cache is not None and how.no_cache:
        raise click.UsageError("give --cache or --no-cache, not both")
    begin = time.perf_counter()
    train, check = given.shards()
    cache = not how.no_cache if how.cache is None else how.cache
    with common.telling() as progress:
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


def tell(facts: dict[str, Any]) -> None:
    """What came of it, for a person."""
    learned = (
        f"{facts['queries']:,} judged queries of {facts['shards']:,} shard(s) in {facts['seconds']:.1f} s"
    )
    held = f"{facts['validation_queries']:,} other judged queries of {facts['validation_shards']:,} shard(s)"
    rows = [
        ("method", facts["method"]),
        ("learned from", learned),
        ("chosen with", held if facts["validation_shards"] else "nothing: the last pass was kept"),
        ("passes kept", ", ".join(map(str, facts["passes"]))),
    ]
    if "metric" in facts:
        where = f"{facts['metric']} on validation queries, this model"
        rows.append((where, common.number(facts["quality"])))
    common.table(["fact", "value"], [*rows, ("saved as", facts["model"])], left=2)


# -- methods ---------------------------------------------------------------------------------------------------------


def learner(spec: str) -> type | None:
    """The model over features alone that a method names, such as lambdarank in any case; None if it names none."""
    from podium import registry

    name = parse_spec(spec)[0].lower()
    if not name.isidentifier() or name in registry.aggregators.all():
        return None
    return streamed_learners().get(name)


def streamed_learners() -> dict[str, type]:
    """The models over features alone that can be trained over shards, by their names on the command line."""
    from podium import registry

    return {n.lower(): cls for n, cls in registry.learners.all().items() if hasattr(cls, "fit_stream")}


def streamed(spec: str, parameters: Sequence[str], weights: str | None) -> Any:
    """The method, if it can be trained over shards."""
    cls = learner(spec)
    if cls is None:
        method = common.make_method(spec, parameters, weights)
        if not hasattr(method, "fit_stream"):
            raise ParameterError(
                f"{method.name} cannot be trained over shards, only {', '.join(_able())}; "
                "leave --shards out and name the files, which then have to fit in memory"
            )
        return method
    if weights is not None:
        raise ParameterError(f"{cls.__name__} ranks by item features and has no experts; leave --weights out")
    given = parse_spec(spec)[1]
    for name, value in common.pairs(parameters, "parameter").items():
        given |= parse_spec(f"p({name}={value})")[1] if name.isidentifier() else {name: value}
    known = [f.name for f in dataclasses.fields(cls) if f.init and f.name != "prior"]
    for name in given:
        if name not in known:
            raise ParameterError(f"{cls.__name__} has no parameter {name!r}; {suggest_names(name, known)}")
    return cls(**given)


def _able() -> list[str]:
    from podium import registry

    methods = [name for name, cls in registry.aggregators.all().items() if hasattr(cls, "fit_stream")]
    return sorted([*methods, *streamed_learners()])


# -- shards ----------------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Where shards are, and how they are read."""

    train: Sequence[str]
    validation: Sequence[str]
    qrels: str | None
    format: str | None
    options: dict[str, Any]

    def shards(self) -> tuple[list[ShardFiles], list[ShardFiles]]:
        """Those to learn from and those to choose with."""
        from podium.scale.shards import find

        if not self.train:
            raise click.UsageError("no shards; give files or folders of them")
        labels = self._labels()
        train, check = find(self.train), find(self.validation) if self.validation else []
        return [self._files(s, labels) for s in train], [self._files(s, labels) for s in check]

    def _labels(self) -> SharedLabels | dict[str, str] | None:
        """Labels outside the shards: in one file for all, or in files of a folder, called after the shards."""
        from podium.aggregators.supervised.training_shards import SharedLabels
        from podium.scale.shards import find

        if self.qrels is None:
            return None
        return _by_name(find(self.qrels)) if os.path.isdir(self.qrels) else SharedLabels(self.qrels)

    def _files(self, shard: Shard, labels: SharedLabels | dict[str, str] | None) -> ShardFiles:
        from podium.aggregators.supervised.training_shards import ShardFiles

        if not isinstance(labels, dict):
            return ShardFiles((shard.path,), self.format, self.options, labels)
        mine = labels.get(_plain(shard))
        if mine is None:
            raise ParameterError(
                f"{self.qrels} holds no labels for the shard {shard.path}; put them there in a file of that name"
            )
        return ShardFiles((shard.path,), self.format, self.options, mine)


def _plain(shard: Shard) -> str:
    return Path(shard.name).name


def _by_name(shards: Sequence[Shard]) -> dict[str, str]:
    found: dict[str, str] = {}
    for shard in shards:
        if _plain(shard) in found:
            raise ParameterError(
                f"{found[_plain(shard)]} and {shard.path} could both be the labels of shard {_plain(shard)!r}; keep one"
            )
        found[_plain(shard)] = shard.path
    return found
