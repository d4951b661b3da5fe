"""Votes in tables: winner and loser, or two items and which of them won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.preferences import Preferences
from podium.data.vocabulary import Coded
from podium.errors import Option
from podium.kernels.dispatch import B1

if TYPE_CHECKING:
    from podium.formats.table import Table

__all__ = ["read_votes", "skip_self_votes"]

FIRST = ("a", "left", "model_a", "item_a", "doc_a", "first")
SECOND = ("b", "right", "model_b", "item_b", "doc_b", "second")
TIE = ("tie", "same", "s", "equal", "draw", "both", "tie (bothbad)", "both_bad", "bothbad")
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


def read_votes(table: Table, roles: dict[str, str], query: Coded, expert: Coded) -> Preferences:
    """Comparisons from a table of votes."""
    weight = table.numbers(roles["weight"], "weight") if "weight" in roles else None
    if "loser" in roles and "winner" in roles:
        one, two = table.ids(roles["winner"], "winner"), table.ids(roles["loser"], "loser")
        tie = _truth(table, roles["tie"]) if "tie" in roles else None
        return Preferences.from_comparisons(
            query, expert, one, two, tie=tie, weight=weight, origin=table.origin
        )
    for role in ("item_a", "item_b", "winner"):
        if role not in roles:
            names = ", ".join(map(repr, table.columns))
            raise table.source.error(
                f"votes need a column {role}; there are {names}",
                1,
                ("say ", Option(role), ", or ", Option("winner"), " and ", Option("loser")),
            )
    left, right = table.ids(roles["item_a"], "item_a"), table.ids(roles["item_b"], "item_b")
    second, tie = _outcomes(table, roles)
    a, b = (np.array(c.ids.tolist(), dtype=object)[c.codes] for c in (left, right))
    winner, loser = np.where(second, b, a).tolist(), np.where(second, a, b).tolist()
    side = np.where(second, -1, 1)  # the first item of a row was shown first
    return Preferences.from_comparisons(
        query, expert, winner, loser, tie=tie, weight=weight, side=side, origin=table.origin
    )


def skip_self_votes(table: Table, roles: dict[str, str]) -> Table:
    """Without the votes between an item and itself."""
    pair = ("winner", "loser") if "loser" in roles else ("item_a", "item_b")
    if not set(pair) <= roles.keys():
        return table
    one, two = (table.columns[roles[role]] for role in pair)
    return table.only(np.flatnonzero([a != b for a, b in zip(one, two, strict=True)]))


def _outcomes(table: Table, roles: dict[str, str]) -> tuple[B1, B1]:
    """Which votes the second item won, and which are ties."""
    left, right, answers = (table.columns[roles[role]] for role in ("item_a", "item_b", "winner"))
    if set(map(type, answers)) == {
        str
    }:  # the usual case: only words for sides, none of which is an item's id
        words = {answer: _side(answer) for answer in set(answers)}
        if None not in words.values() and words.keys().isdisjoint(left) and words.keys().isdisjoint(right):
            sides = [words[answer] for answer in answers]
            return np.array([s == "b" for s in sides], np.bool_), np.array(
                [s == "tie" for s in sides], np.bool_
            )
    second, tie = np.zeros(len(table), np.bool_), np.zeros(len(table), np.bool_)
    for row, (a, b, answer) in enumerate(zip(left, right, answers, strict=True)):
        meaning = _meaning(answer, a, b)
        if meaning is None:
            accepted = ", ".join((*FIRST[:3], *SECOND[:3], *TIE))
            remedy = (
                f"accepted: the id of one of the two, or {accepted}; ",
                Option("missing"),
                " leaves out cells without answer",
            )
            raise table.error(row, f"the winner of {a!r} and {b!r} is {answer!r}"[:200], remedy)
        if meaning == "unclear":
            raise table.error(
                row,
                f"the winner {answer!r} is both the id of one item and the word for the side of the other",
                "rename the items",
            )
        second[row], tie[row] = meaning == "b", meaning == "tie"
    return second, tie


def _side(answer: str) -> str | None:
    word = answer.strip().lower()
    return "a" if word in FIRST else "b" if word in SECOND else "tie" if word in TIE else None


def _meaning(answer: Any, a: Any, b: Any) -> str | None:
    side = _side(answer) if isinstance(answer, str) else None
    named = "a" if answer == a else "b" if answer == b else None
    if side and named and side != named:
        return "unclear"
    return named or side


def _truth(table: Table, name: str) -> B1:
    found = np.zeros(len(table), np.bool_)
    for row, value in enumerate(table.columns[name]):
        word = "" if value is None else str(value).strip().lower()
        if word not in TRUTH:
            raise table.error(
                row, f"the tie mark is {value!r}", "accepted: true, false, yes, no, 1, 0 or empty"
            )
        found[row] = TRUTH[word]
    return found
