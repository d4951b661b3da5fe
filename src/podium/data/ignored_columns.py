"""Warnings about columns that were not read but could change the result."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from podium.core.errors import PodiumWarning
from podium.data.column_roles import WORDS, normalize_name

__all__ = ["MEANINGFUL_WORDS", "TableReading", "warn_of_ignored_columns"]

# unambiguous names of a role: a column with such a name that is not read always causes a warning
_PROMPT_WORDS = ("prompt", "promptid", "instruction", "instructionid")
# ambiguous names: never matched automatically; they cause a warning if the cells fit the role
_POSSIBLE_QUERY_WORDS = ("task", "taskid", "question", "questionid", "search", "searchid")
_PEOPLE_WORDS = (
    "labeler", "labelerid", "labeller", "labellerid", "reviewer", "reviewerid", "evaluator", "evaluatorid",
    "crowdworker", "participant", "participantid", "respondent", "grader", "graderid", "juror", "coder",
    "annotatorname", "judgename", "workername", "username",
)  # fmt: skip
_WEIGHT_WORDS = ("weights", "frequency", "multiplicity", "importance", "confidence", "votes", "nvotes")
# names of all columns that have a role, or that a warning may be about
MEANINGFUL_WORDS = frozenset(
    (
        *chain.from_iterable(WORDS.values()),
        *_PROMPT_WORDS,
        *_POSSIBLE_QUERY_WORDS,
        *_PEOPLE_WORDS,
        *_WEIGHT_WORDS,
    )
)


@dataclass(frozen=True)
class TableReading:
    """How a table was read: the column used for each role, and the roles that the caller set."""

    columns: Mapping[str, Sequence[Any]]
    roles: Mapping[str, str]
    decided_roles: Collection[str]  # roles that the caller set to a column or to none
    source: str
    none: str = "''"  # how the caller writes that a role has no column

    @property
    def unused_columns(self) -> list[str]:
        """The columns that were not used."""
        return [name for name in self.columns if name not in self.roles.values()]

    @property
    def item_columns(self) -> list[Sequence[Any]]:
        """The item columns."""
        pair = ("winner", "loser") if "loser" in self.roles else ("item_a", "item_b")
        return [self.columns[self.roles[r]] for r in ("item", *pair) if r in self.roles]


def warn_of_ignored_columns(reading: TableReading) -> None:
    """Warn of columns that look like queries, experts or weights but were not read."""
    for text in (
        *_describe_unused_queries(reading),
        *_describe_unused_experts(reading),
        *_describe_unused_weights(reading),
    ):
        warnings.warn(f"{reading.source}: {text}", PodiumWarning, stacklevel=4)


def _describe_unused_queries(reading: TableReading) -> Iterator[str]:
    """Columns that may be queries: without a query column all rows are one query."""
    if "query" in reading.decided_roles:
        return
    if "query" in reading.roles:
        candidates = [
            n for n in _select_by_words(reading, _PROMPT_WORDS) if _splits_groups(reading, "query", n)
        ]
        read = f"the queries are in {reading.roles['query']!r}" if candidates else ""
    else:
        candidates = [n for n in reading.unused_columns if _looks_like_queries(n, reading)]
        read = "no query column, all rows are query 'all'"
    if candidates:
        yield (
            f"{read}; not used: {', '.join(map(repr, candidates))}; "
            f"give query={candidates[0]!r} if it has the queries, or query={reading.none} for one query"
        )


def _describe_unused_experts(reading: TableReading) -> Iterator[str]:
    if "expert" in reading.decided_roles:
        return
    candidates = [
        n
        for n in _select_by_words(reading, (*WORDS["expert"], *_PEOPLE_WORDS))
        if _splits_groups(reading, "expert", n)
    ]
    if candidates:
        used = reading.roles.get("expert")
        read = "no expert column, one expert for all rows" if used is None else f"the experts are in {used!r}"
        keep = f"expert={reading.none}" if used is None else f"expert={used!r}"
        yield (
            f"{read}; not used: {', '.join(map(repr, candidates))}; "
            f"give expert={candidates[0]!r} if it has the experts, or {keep} if not"
        )


def _describe_unused_weights(reading: TableReading) -> Iterator[str]:
    if "weight" in reading.decided_roles:
        return
    lists = "item" in reading.roles  # in lists, counts and the like describe the item
    words = ("weight", "weights") if lists else (*WORDS["weight"], *_WEIGHT_WORDS)
    candidates = [n for n in _select_by_words(reading, words) if _has_several_values(reading.columns[n])]
    if not candidates:
        return
    named = ", ".join(map(repr, candidates))
    if lists:
        remedy = f"weights apply to experts (weights=), not to list rows; to ignore it: weight={reading.none}"
    else:
        keep = repr(reading.roles["weight"]) if "weight" in reading.roles else reading.none
        remedy = f"give weight={candidates[0]!r} if it has the weights of the votes, or weight={keep} if not"
    yield f"not used: {named}; {remedy}"


def _select_by_words(reading: TableReading, words: Collection[str]) -> list[str]:
    return [name for name in reading.unused_columns if normalize_name(name) in words]


def _has_several_values(cells: Sequence[Any]) -> bool:
    """Whether a column has more than one value."""
    first = next(iter(cells), None)
    return any(cell != first for cell in cells)


def _splits_groups(reading: TableReading, role: str, name: str) -> bool:
    """Whether this column would split rows that were read as one query or expert."""
    cells = reading.columns[name]
    if role not in reading.roles:
        return _has_several_values(cells)
    if not set(map(type, cells)) <= {str, int, float, type(None)}:
        return False  # nested values cannot be ids
    used = reading.columns[reading.roles[role]]
    return len(set(zip(used, cells, strict=True))) > len(set(used))


def _looks_like_queries(name: str, reading: TableReading) -> bool:
    """Whether a column probably has queries: its name suggests it, or it partitions the items.

    Prompts aside, it has several values, all of them ids, each with two or more rows on average, or each with
    its own items. A column partitions the items if each item, judged twice or more on average, always has the
    same value, and each value has two or more items on average: attributes of the annotator or of a single
    judgement do not, and neither does a second name of the item.
    """
    word, votes = normalize_name(name), "item" not in reading.roles
    if votes and word not in (*_PROMPT_WORDS, *_POSSIBLE_QUERY_WORDS):
        return False  # before the cells are read: this column may hold conversations
    cells = reading.columns[name]
    if word in _PROMPT_WORDS:
        return _has_several_values(cells)
    if not set(map(type, cells)) <= {str, int}:
        return False
    values = set(cells)
    if len(values) < 2 or "" in values:
        return False
    if word in _POSSIBLE_QUERY_WORDS:
        return len(values) <= len(cells) / 2 or (votes and _count_partitioned_items(reading, cells) > 0)
    if len(values) > len(cells) / 2:
        return False
    if any(isinstance(v, str) and re.fullmatch(r"[+-]?\d*\.\d*(e[+-]?\d+)?", v.lower()) for v in values):
        return False  # measurements
    return len(cells) >= 2 * _count_partitioned_items(reading, cells) >= 4 * len(values)


def _count_partitioned_items(reading: TableReading, cells: Sequence[Any]) -> int:
    """The number of items if each always has the same cell in a column, else 0."""
    cell_of: dict[Any, Any] = {}
    for items in reading.item_columns:
        for item, cell in zip(items, cells, strict=True):
            if cell_of.setdefault(item, cell) != cell:
                return 0
    return len(cell_of)
