"""The base class of recipes: marks that records have, and one function from records to judgements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from podium.core.errors import MessageText, Option, ParameterError, PodiumWarning
from podium.core.registry import Registry, recipes
from podium.core.settings import Duplicates, Unlisted
from podium.data.column_roles import WORDS, normalize_name
from podium.data.ids import Id
from podium.formats.base import Content, Format
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.records import Container, Record, find_value, iterate_records
from podium.storage.files import Source, derive_expert_names, refuse_same_names

__all__ = ["Recipe", "find_pair", "find_query_key", "parse_grades", "split_keys"]

NONE = "none"  # as a key: the judgements have no such field
_PAIR_ENDS = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"))
_QUERY_WORDS = (
    *WORDS["query"],
    "prompt",
    "promptid",
    "instruction",
    "question",
    "questionid",
    "context",
    "input",
)


class Recipe(Format):
    """The files of one tool; a subclass with a `name` is registered as a format.

    A file is read by a recipe if its first record lies in one of the `containers`, has the `marks` and
    `matches`, or if the recipe is named. Marks are keys or paths of keys joined by dots, separated by spaces; a
    star stands for any text, and one of several texts of marks is enough. `matches` looks at the values where
    keys do not identify the tool. `read_records` adds the judgements of all records; its keyword parameters
    are options: `query`, `items` and `expert` name the keys that hold them.
    """

    _registry: ClassVar[Registry[Any]] = recipes
    holds = frozenset()
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".jsonl")
    marks: ClassVar[tuple[str, ...]] = ("",)
    containers: ClassVar[frozenset[Container]] = frozenset({"json", "table"})
    unlisted: ClassVar[Unlisted] = "unknown"

    def has_marks(self, fields: Mapping[str, Any]) -> bool:
        """Whether a record has all marks of one of the texts."""
        return any(
            all(
                any(fnmatchcase(key, mark) for key in fields)
                if "*" in mark
                else find_value(fields, mark) is not None or mark in fields
                for mark in marks.split()
            )
            for marks in self.marks
        )

    def matches(self, fields: Mapping[str, Any]) -> bool:
        """Whether a record that has the marks holds the values of this tool."""
        return True

    def read_records(self, records: Iterator[Record], judgments: Judgments) -> None:
        """Add the judgements of the records of one file."""
        raise NotImplementedError

    def read(
        self,
        sources: Sequence[Source],
        *,
        duplicates: Duplicates = "error",
        unlisted: Unlisted | None = None,
        **options: Any,
    ) -> Content:
        judgments = Judgments(self.name)
        unnamed = []
        for source, name in zip(sources, derive_expert_names(sources), strict=True):
            judgments.begin_file(name)
            self.read_records(iterate_records(source), judgments, **options)
            if judgments.has_expert_of_file:
                unnamed.append((name, source))
        if unnamed:
            refuse_same_names(*zip(*unnamed, strict=True))
        names = ", ".join(source.name for source in sources)
        return judgments.build(unlisted or self.unlisted, duplicates, names)

    def option_functions(self, verb: str) -> tuple[Callable[..., Any], ...]:
        if verb == "read":
            return type(self).read_records, Recipe.read
        return super().option_functions(verb)

    def write(self, content: Content) -> Iterator[bytes]:
        raise ParameterError(f"{self.name} files can be read but not written; write csv or jsonl")


def warn_of_guess(record: Record, *parts: str | Option) -> None:
    """Warn of an assumption that changes the answer and that an option can change."""
    warnings.warn(PodiumWarning(f"{record.source.name}: ", *parts), stacklevel=5)


def read_expert(record: Record, key: str | None, defaults: Iterable[str], judgments: Judgments) -> Id:
    """The expert at a key, or at the first default key that is there, or the name of the file."""
    if key == NONE:
        return judgments.expert
    if key is not None:
        return record.read_id(key, "expert")
    values = (record.get(name) for name in defaults)
    value = next((value for value in values if value not in (None, "")), None)
    if isinstance(value, Mapping):  # a user: their address or name is clearer than their number
        value = next((value[k] for k in ("email", "username", "name", "id") if value.get(k)), None)
    return judgments.expert if not isinstance(value, str | int) else value


def read_query(record: Record, key: str | None, default: str | None) -> Id:
    """The query at a key, by default at another one; 'all' if the key is 'none', or if there is no default."""
    name = default if key is None else key
    if name is None or name in (NONE, ""):
        return "all"
    remedy: MessageText = (
        "name its key, ",
        Option("query"),
        ", or give ",
        Option("query", NONE),
        " for one query",
    )
    return record.read_id(name, "query", remedy)


def split_keys(items: str | None, count: int | None = None) -> tuple[str, ...]:
    """The keys that the option `items` names.

    >>> split_keys("data.a,data.b")
    ('data.a', 'data.b')
    """
    keys = tuple(key.strip() for key in (items or "").split(",") if key.strip())
    if items is not None and count is not None and len(keys) != count:
        raise ParameterError("items is ", repr(items), f"; give {count} keys, separated by commas")
    return keys


def find_pair(names: Iterable[str]) -> tuple[str, str] | None:
    """The two names that differ in their first or last word alone, such as a and b; None if there are none or
    several.

    Names of models win over names of their answers, because an item is a model.

    >>> find_pair(["prompt", "answer_a", "answer_b"]), find_pair(["a1", "a2", "b1", "b2"])
    (('answer_a', 'answer_b'), None)
    """
    by_name = {name.lower(): name for name in names}
    pairs = []
    for one, other in _PAIR_ENDS:
        for name in by_name:
            partners = {name.removesuffix(one) + other} if name.endswith(one) else set()
            partners |= (
                {other + name.removeprefix(one)}
                if name.startswith((f"{one}_", f"{one}-", f"{one} "))
                else set()
            )
            pairs += [(by_name[name], by_name[partner]) for partner in partners if partner in by_name]
    models = [pair for pair in pairs if "model" in pair[0].lower() or "system" in pair[0].lower()]
    chosen = models if len(models) == 1 else pairs
    return chosen[0] if len(chosen) == 1 else None


def find_query_key(names: Iterable[str]) -> str | None:
    """The name, or path of names, whose last word queries or prompts usually have; the most specific one first."""
    by_word = {normalize_name(name.rpartition(".")[2]): name for name in reversed(list(names))}
    return next((by_word[word] for word in _QUERY_WORDS if word in by_word), None)


def parse_grades(given: str | None) -> dict[str, float]:
    """The numbers of named grades.

    >>> parse_grades("bad=0,good=1")
    {'bad': 0.0, 'good': 1.0}
    """
    grades = {}
    for word in filter(None, (given or "").split(",")):
        name, _, number = word.rpartition("=")
        try:
            grades[name.strip()] = float(number)
        except ValueError:
            raise ParameterError(
                "grades is ", repr(given), "; write names and numbers, such as bad=0,good=1"
            ) from None
    return grades


def parse_grade(record: Record, value: Any, grades: Mapping[str, float], role: str) -> float:
    """A number, or the number of a named grade."""
    if isinstance(value, str) and value.strip() in grades:
        return grades[value.strip()]
    try:
        return record.parse_number(value, role)
    except ValueError:
        shown = f"the {role} is {value!r}"[:120]
        remedy = ("give numbers, or the number of each category with ", Option("grades", "bad=0,good=1"))
        raise record.error(shown, remedy) from None
