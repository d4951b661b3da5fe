"""Records of collected votes: items with texts, questions, votes, and the invitations of judges."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, Literal

from podium.core.errors import ParameterError
from podium.data.ids import Id
from podium.studio.token_store import User

CollectionKind = Literal["pairs", "ratings"]
InviteRole = Literal["judge", "viewer"]
ANSWERS = ("first", "second", "tie", "skip")  # to a pair
GRADES = ("1", "2", "3", "4", "5", "skip")  # to a rating
LONGEST_NAME = 100  # characters of a judge's name


@dataclass(frozen=True)
class CollectionItem:
    """What a judge sees of an item."""

    item: Id
    title: str = ""
    body: str = ""
    url: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values; the title is the id where none was given."""
        return {**vars(self), "title": self.title or str(self.item)}


@dataclass(frozen=True)
class VoteCollection:
    """What judges of a project are asked."""

    project: str
    kind: CollectionKind
    question: str
    query: Id
    gold_every: int  # one question in this many has a known answer; 0: none
    closed: bool
    made: float


@dataclass(frozen=True)
class AskedQuestion:
    """A question shown to a judge; `second` is None for a rating, `gold` the known answer."""

    key: str
    project: str
    judge: str
    first: Id
    second: Id | None
    gold: str | None
    made: float


@dataclass(frozen=True)
class CollectedVote:
    """One vote that was not undone."""

    number: int
    key: str
    judge: str
    first: Id
    second: Id | None
    answer: str
    gold: str | None
    seconds: float | None
    made: float


@dataclass(frozen=True)
class JudgeInvite:
    """A link for a judge, or for a viewer of the board; without a name, whoever opens it gives one."""

    id: str
    project: str
    judge: str
    role: InviteRole
    revoked: bool
    made: float


def check_judge_name(name: str) -> str:
    """The name of a judge without surrounding spaces; refused if it is empty, too long or not printable."""
    plain = name.strip()
    if not plain or len(plain) > LONGEST_NAME or not plain.isprintable():
        raise ParameterError(
            f"the judge's name is {name[:50]!r}; accepted: 1 to {LONGEST_NAME} printable characters"
        )
    return plain


def parse_optional_id(text: str | None) -> Id | None:
    """An id from a column that may be empty."""
    item: Id | None = None if text is None else json.loads(text)
    return item


def build_question(row: sqlite3.Row) -> AskedQuestion:
    """A question from its row."""
    items = {"first": json.loads(row["first"]), "second": parse_optional_id(row["second"])}
    return AskedQuestion(**(dict(row) | items))


def build_vote(row: sqlite3.Row) -> CollectedVote:
    """A vote from its row."""
    items = {"first": json.loads(row["first"]), "second": parse_optional_id(row["second"])}
    kept = {name: value for name, value in dict(row).items() if name != "project"}
    return CollectedVote(**(kept | items))


def build_invite(row: sqlite3.Row) -> JudgeInvite:
    """An invitation from its row."""
    return JudgeInvite(**(dict(row) | {"revoked": bool(row["revoked"])}))


def hide_gold(user: User) -> dict[str, None]:
    """What replaces the fields of a vote that a user may not see: right answers are for editors.

    >>> hide_gold(User("ann", "judge")), hide_gold(User("ben", "editor"))
    ({'gold': None}, {})
    """
    return {} if user.may_act_as("editor") else {"gold": None}
