"""What a verb reads: files and the options that say how to read them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from podium.cli._options import F, add_options, collect
from podium.core import registry
from podium.core.errors import InputError, ParameterError
from podium.core.params import Flags
from podium.core.settings import Unlisted

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.ids import Id
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.formats import Content
    from podium.methods.base import Aggregator

FILES = click.Path(allow_dash=True, dir_okay=True)


@dataclass(frozen=True)
class Input:
    """The input of a verb; files are read when a part of them is asked for."""

    files: tuple[str, ...] = ()
    qrels: Annotated[
        str | None,
        FILES,
        Flags("-q", "--qrels"),
        "Judgements; not needed when the input holds them (LETOR).",
    ] = None
    features: Annotated[
        tuple[str, ...], FILES, "Item features, for a method or model that uses them; may be repeated."
    ] = ()
    names: Annotated[
        str | None,
        click.Path(dir_okay=False),
        "Names of the columns: a text file with one name per line, or one column number and name per line.",
    ] = None
    options: Annotated[
        tuple[str, ...],
        Flags("-O", "--option", metavar="NAME=VALUE"),
        "An option of the format, such as expert=file, columns=..., query=COLUMN or winner_codes=1=a,2=b,0=tie "
        "(see `podium convert --formats`).",
    ] = ()
    unlisted: Annotated[
        Unlisted | None,
        "How to treat items that an expert does not list.  [default: set by the format]",
    ] = None
    format: Annotated[str | None, Flags("-f", "--format"), "Format of the input; detected by default."] = None
    preset_content: Any = None  # content that is not read from files

    @property
    def reading(self) -> dict[str, Any]:
        """The values of `-O` and `--unlisted`, for `formats.read`."""
        given: dict[str, Any] = dict(parse_assignments(self.options, "option"))
        if "format" in given:
            raise ParameterError("set the format with -f, not with -O")
        return given if self.unlisted is None else given | {"unlisted": self.unlisted}

    @property
    def names_folders(self) -> bool:
        """Whether the input is shards: a folder is among the files."""
        return any(Path(name).is_dir() for name in self.files)

    @functools.cached_property
    def content(self) -> Content:
        """What the files hold."""
        from podium import formats

        if self.preset_content is not None:
            content: Content = self.preset_content
            return content
        if not self.files:
            raise click.UsageError("no input file; give at least one, or - for standard input")
        content = formats.read(list(self.files), self.format, **self.reading)
        if content.summary:
            click.echo(content.summary, err=True)
        return content

    @property
    def preferences(self) -> Preferences:
        """The preferences in the input, or an error that says what it holds instead."""
        if self.content.preferences is None:
            what, remedy = "labels", "give runs, ratings or votes"
            if self.content.features is not None:
                what = "item features" if self.content.labels is None else "labels and item features"
                remedy += ", or -O kind=scores to read every feature of a LETOR file as an expert"
            raise ParameterError(
                f"{', '.join(self.files)}: contains {what} but no lists or comparisons; {remedy}"
            )
        return self.content.preferences

    @functools.cached_property
    def labels(self) -> Labels:
        """Labels from `--qrels` or from the input (LETOR files hold both), or an error."""
        labels = self.optional_labels
        if labels is None:
            raise ParameterError("no judgements; give --qrels FILE")
        return labels

    @functools.cached_property
    def optional_labels(self) -> Labels | None:
        """Labels from `--qrels` or from the input, if any."""
        from podium import formats

        if self.qrels is None:
            return self.content.labels
        content = formats.read(self.qrels)
        labels = content.labels
        if content.summary:
            click.echo(content.summary, err=True)
        if labels is None and content.preferences is not None and len(content.preferences.comparisons):
            from podium.data.labels import Labels

            # votes are ground truth too, for the metrics that need no grades; a run is more likely a mistake
            labels = Labels.from_preferences(content.preferences)
            click.echo(f"{self.qrels}: {content.preferences!r} read as {labels!r}", err=True)
        if labels is None:
            raise ParameterError(
                f"{self.qrels} contains no judgements; give a qrels file, or a table with a grade column"
            )
        return labels

    @functools.cached_property
    def item_features(self) -> Features | None:
        """Item features from `--features` or from the input, if any."""
        return Input(self.features).read_features()[1] if self.features else self.content.features

    def features_of(self, method: Aggregator) -> Features | None:
        """The item features; None for a method that uses none."""
        features = self.item_features
        if self.features and not method.tags.uses_features:
            raise ParameterError(f"{method.name} does not use item features; leave --features out")
        return features if method.tags.uses_features else None

    def read_features(self) -> tuple[Content, Features]:
        """Read feature files of any format; `--names` renames their columns.

        Tables need the role of their columns, other formats define it themselves.
        """
        from podium import formats

        names = (
            [self.format]
            if self.format
            else [formats.sniff(p, kind="features") for p in self.files if p != "-"]
        )
        able = all("kind" in registry.formats.get(name)().options("read") for name in names)
        if able and not any(o.startswith("kind=") for o in self.options):
            content = dataclasses.replace(self, options=(*self.options, "kind=features")).content
        else:
            content = self.content
        if content.features is None:
            raise ParameterError(
                f"{', '.join(self.files)} contains no item features; give a LETOR file, or a table with feature columns"
            )
        return content, content.features if self.names is None else rename_columns(
            content.features, self.names
        )


def with_input(command: F) -> F:
    """Add the arguments and options of verbs that read files, and hand over `source`, an `Input`."""
    command = add_options(Input, "options", "unlisted", "format")(collect(Input, "source")(command))
    return click.argument("files", nargs=-1, type=FILES)(command)


def parse_assignments(given: Iterable[str], what: str) -> dict[str, str]:
    """Parse NAME=VALUE arguments; a repeated name is an error."""
    values: dict[str, str] = {}
    for word in given:
        name, equals, value = word.strip().rpartition("=") if what == "weight" else word.partition("=")
        if not equals or not name:
            raise ParameterError(f"{what} {word!r} cannot be read; write NAME=VALUE")
        if name in values:
            raise ParameterError(f"{what} {name!r} is given twice; give it once")
        values[name] = value
    return values


def resolve_id(given: Id, ids: Sequence[Id], what: str, of: str = "") -> Id:
    """Resolve an id: command-line text may denote a number."""
    by_text = {str(k): k for k in reversed(ids)}
    resolved = given if given in ids else by_text.get(str(given))
    if resolved is None:
        few = ", ".join(map(str, ids[:5]))
        raise ParameterError(
            f"there is no {what} {given!r}{of}; there are {few}{', ...' if len(ids) > 5 else ''}"
        )
    return resolved


def rename_columns(features: Features, path: str) -> Features:
    """The same features with the column names in a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(f"cannot be read ({reason})", source=path) from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = [line.split(None, 1) for line in lines]
    if lines and all(len(words) == 2 and words[0] in features.names for words in numbered):
        by_column = {words[0]: words[1] for words in numbered}
        names = [by_column.get(name, name) for name in features.names]
    elif len(lines) == len(features.names):
        names = lines
    else:
        raise InputError(
            f"{len(lines)} names for {len(features.names)} columns",
            source=path,
            remedy="give one name per line for every column, or one column number and name per line",
        )
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns would be called {twice!r}", source=path, remedy="give every column its own name"
        )
    return dataclasses.replace(features, names=tuple(names))
