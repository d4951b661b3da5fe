"""The base class of file formats: a name, and methods to detect, read and write the format."""

from __future__ import annotations

import collections.abc
import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from podium.core.errors import InputError, Option, ParameterError, PodiumWarning
from podium.core.params import suggest_names
from podium.core.registry import Registry, formats
from podium.data.consensus import Consensus
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.ids import CodedColumn, Id, Ids
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.data.vote_table import VoteTable, concat_vote_tables
from podium.kernels.dispatch import F8, I4
from podium.storage.files import Source

__all__ = ["Content", "Format", "merge_contents", "refuse_mixed_readings", "to_content"]


@dataclass(frozen=True, eq=False)
class Content:
    """The content of files: preferences, labels and features, each optional.

    `part` numbers the file (0, 1, ...) of each query, where files are the parts of a data set; `seconds` maps
    experts to the duration of each of their judgements, where a table has such a column. `summary` says what a
    recipe read, dropped and assumed, one line per recipe. `votes` are the votes one by one with their
    attributes, where attributes were requested.
    """

    preferences: Preferences | None = None
    labels: Labels | None = None
    features: Features | None = None
    part: I4 | None = None
    name: str = ""
    seconds: Mapping[Id, F8] | None = None
    summary: str = ""
    votes: VoteTable | None = None

    @property
    def parts(self) -> frozenset[str]:
        """The lists, votes, labels and features that are present."""
        p = self.preferences
        there = {
            "lists": p is not None and p.lists.rows > 0,
            "votes": p is not None and len(p.comparisons) > 0,
            "labels": self.labels is not None,
            "features": self.features is not None,
        }
        return frozenset(name for name, has in there.items() if has)

    def dataset(self) -> Dataset:
        """The content as a data set; without preferences, it has the items but no lists or votes."""
        preferences = self.preferences
        if preferences is None:
            holder = self.features or self.labels
            if holder is None:
                raise InputError("the content is empty", remedy="read a file first")
            index = holder.index
            preferences = Preferences(index, Ids([]), Lists.empty(len(index)), Comparisons.empty(len(index)))
        return Dataset(preferences, self.labels, self.features, self.part, self.name)


def to_content(
    thing: Content | Dataset | Preferences | Labels | Features | Consensus, tag: str = "podium"
) -> Content:
    """Anything that can be written, as content; a consensus becomes the list of one expert named `tag`."""
    if isinstance(thing, Content):
        return thing
    if isinstance(thing, Dataset):
        return Content(thing.preferences, thing.labels, thing.features, thing.part, thing.name)
    if isinstance(thing, Preferences):
        return Content(preferences=thing)
    if isinstance(thing, Labels):
        return Content(labels=thing)
    if isinstance(thing, Features):
        return Content(features=thing)
    if isinstance(thing, Consensus):
        index = thing.index
        filled = np.flatnonzero(index.sizes)
        rank = (np.arange(len(thing.order)) - index.starts[index.query_of_slot] + 1).astype(np.int32)
        lists = Lists(
            np.searchsorted(filled, np.arange(len(index) + 1)).astype(np.int64),
            np.zeros(len(filled), np.int32),
            np.append(index.starts[:-1][filled], index.starts[-1]),
            thing.order,
            rank,
            thing.scores[thing.order],
        )
        return Content(preferences=Preferences(index, Ids([tag]), lists, Comparisons.empty(len(index))))
    raise ParameterError(
        f"cannot write a {type(thing).__name__}; accepted: preferences, labels, features, a consensus"
    )


class Format:
    """A file format; subclasses with a `name` are registered in `podium.core.registry.formats`.

    `sniff` returns the confidence (0 to 1) that the first lines of a file have this format; a format whose
    files all begin alike has a `signature`, a regular expression, instead. `read` takes all files of one call;
    `write` yields the bytes of a file in chunks. Their keyword parameters are the options. `holds` names what
    a file can store; content without any of it cannot be written.
    """

    name: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    signature: ClassVar[bytes] = b""
    summary: ClassVar[str] = ""
    holds: ClassVar[frozenset[str]] = frozenset({"lists", "votes", "labels", "features"})

    _registry: ClassVar[Registry[Any]] = formats

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            cls._registry.add(cls.name, cls)

    def sniff(self, head: bytes) -> float:
        """Confidence, from 0 to 1, that a file with this beginning has this format."""
        return float(bool(self.signature and re.match(self.signature, head)))

    def fits(self, head: bytes, options: Mapping[str, Any]) -> bool:
        """Whether these options identify this format for a file that no format detects."""
        return False

    def read(self, sources: Sequence[Source]) -> Content:
        """The combined content of the files."""
        raise NotImplementedError

    def write(self, content: Content) -> Iterator[bytes]:
        """The bytes of one file with the content."""
        raise NotImplementedError

    def option_functions(self, verb: str) -> tuple[Callable[..., Any], ...]:
        """The functions whose keyword parameters are the options of `read` or `write`."""
        return (getattr(type(self), verb),)

    def options(self, verb: str) -> list[str]:
        """Names of the options of `read` or `write`."""
        functions = self.option_functions(verb)
        parameters = [p for f in functions for p in inspect.signature(f).parameters.values()]
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def check_options(self, verb: str, given: dict[str, Any]) -> dict[str, Any]:
        """Reject unknown options; text is converted to the declared type of the option."""
        if not given:
            return {}
        accepted = self.options(verb)
        for name in given:
            if name not in accepted:
                hint = suggest_names(name, accepted) if accepted else "it takes no options"
                raise ParameterError(f"format {self.name} has no option {name!r} to {verb}; {hint}")
        kinds: dict[str, Any] = {}
        for function in self.option_functions(verb):
            kinds |= typing.get_type_hints(function)
        return {name: _convert_option(name, value, kinds[name]) for name, value in given.items()}

    def warn_of_omitted(self, **parts: object) -> None:
        """Warn of parts that are present but that this format cannot store."""
        present = [word.replace("_", " ") for word, part in parts.items() if part]
        if present:
            warnings.warn(
                f"not written, because {self.name} files cannot store them: {', '.join(present)}",
                PodiumWarning,
                stacklevel=4,
            )


def _convert_option(name: str, value: Any, kind: Any) -> Any:
    """An option converted to its annotated type; the command line passes only text."""
    if not isinstance(value, str):
        return value
    accepted = set(typing.get_args(kind)) | {kind}
    if bool in accepted:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if value.lower() not in words:
            raise ParameterError(f"option {name} is {value!r}; accepted: true or false")
        return words[value.lower()]
    if int in accepted:
        if not value.isdecimal():
            raise ParameterError(f"option {name} is {value!r}; accepted: a whole number")
        return int(value)
    if str not in accepted and any(typing.get_origin(a) is collections.abc.Sequence for a in accepted):
        return tuple(value.split(",")) if value else ()
    return value


def refuse_mixed_readings(contents: Sequence[tuple[str, Content]]) -> None:
    """Reject files of which some place the items that a list omits below it, and others leave them unknown."""
    files = {c.preferences.unlisted: file for file, c in contents if c.preferences and "lists" in c.parts}
    if len(files) > 1:
        raise InputError(
            "items that a list omits are "
            f"below the listed ones in {files['below']}, and unknown in {files['unknown']}",
            remedy=("choose one reading with ", Option("unlisted", "below", "unknown")),
        )


def merge_contents(contents: Sequence[Content]) -> Content:
    """Combine several contents into one."""
    if len(contents) == 1:
        return contents[0]
    preferences = [c.preferences for c in contents if c.preferences is not None]
    labels = [c.labels for c in contents if c.labels is not None]
    features = [c.features for c in contents if c.features is not None]
    votes = [c.votes for c in contents if c.votes is not None]
    merged_labels = labels[0] if labels else None
    if len(labels) > 1:
        grades = np.concatenate([part.grades for part in labels])
        merged_labels = Labels.from_rows(*_concat_indexes([part.index for part in labels]), grades)
    lists = Preferences.concat(preferences) if preferences else None
    if len({x.names for x in features}) > 1:
        raise InputError("the files have different features", remedy="read them separately")
    merged_features = features[0] if features else None
    if len(features) > 1:
        values = np.concatenate([x.values for x in features])
        rows = _concat_indexes([x.index for x in features])
        merged_features = Features.from_rows(*rows, values, features[0].names)
    seconds = [c.seconds for c in contents if c.seconds is not None]
    experts = dict.fromkeys(e for part in seconds for e in part)
    return Content(
        lists,
        merged_labels,
        merged_features,
        seconds={e: np.concatenate([s[e] for s in seconds if e in s]) for e in experts} if seconds else None,
        summary="\n".join(c.summary for c in contents if c.summary),
        votes=concat_vote_tables(votes) if votes else None,
    )


def _concat_indexes(indexes: Sequence[ItemIndex]) -> tuple[CodedColumn, CodedColumn]:
    """The (query, item) pairs of several indexes as two columns."""
    query = CodedColumn.concat([CodedColumn(i.query_of_slot, i.queries) for i in indexes], "query")
    return query, CodedColumn.concat([CodedColumn(np.arange(len(i.items)), i.items) for i in indexes], "item")
