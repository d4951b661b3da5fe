"""Votes in tables: winner and loser, or two items and the winner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import Option
from podium.data.ids import CodedColumn
from podium.data.preferences import Preferences
from podium.data.vote_outcomes import (
    AnswerCodes,
    PairAnswers,
    build_votes,
    decode_outcomes,
    refuse_sides_as_items,
)
from podium.kernels.dispatch import B1

if TYPE_CHECKING:
    from podium.formats.table_format import FileTable

__all__ = ["read_votes", "skip_self_votes"]

TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


def read_votes(
    table: FileTable, roles: dict[str, str], query: CodedColumn, expert: CodedColumn, codes: AnswerCodes
) -> Preferences:
    """Comparisons from a table of votes."""
    weight = table.read_numbers(roles["weight"], "weight") if "weight" in roles else None
    tie = _read_tie_marks(table, roles["tie"]) if "tie" in roles else None
    if "loser" in roles and "winner" in roles:
        one, two = table.read_ids(roles["winner"], "winner"), table.read_ids(roles["loser"], "loser")
        refuse_sides_as_items(one, two, (roles["winner"], roles["loser"]), table.source.name)
        return Preferences.from_comparisons(
            query, expert, one, two, tie=tie, weight=weight, origin=table.origin
        )
    for role in ("item_a", "item_b", "winner"):
        if role not in roles:
            listed = ", ".join(map(repr, table.columns))
            raise table.source.error(
                f"votes need a column {role}; the columns are {listed}",
                1,
                ("give ", Option(role), ", or ", Option("winner"), " and ", Option("loser")),
            )
    names = roles["item_a"], roles["item_b"]
    items = table.read_ids(names[0], "item_a"), table.read_ids(names[1], "item_b")
    first, second, answers = (table.columns[name] for name in (*names, roles["winner"]))
    found = decode_outcomes(
        PairAnswers(first, second, answers, names),
        codes,
        table.error,
        (Option("missing"), " lists the cells that mean 'no answer'"),
    )
    if tie is not None:
        found = found._replace(tie=found.tie | tie[found.row])
    return build_votes(query, expert, items, found, weight, table.origin)


def skip_self_votes(table: FileTable, roles: dict[str, str]) -> FileTable:
    """The table without votes between an item and itself."""
    pair = ("winner", "loser") if "loser" in roles else ("item_a", "item_b")
    if not set(pair) <= roles.keys():
        return table
    one, two = (table.columns[roles[role]] for role in pair)
    return table.select_rows(np.flatnonzero([a != b for a, b in zip(one, two, strict=True)]))


def _read_tie_marks(table: FileTable, name: str) -> B1:
    found = np.zeros(len(table), np.bool_)
    for row, value in enumerate(table.columns[name]):
        word = "" if value is None else str(value).strip().lower()
        if word not in TRUTH:
            raise table.error(
                row, f"the tie mark is {value!r}", "accepted: true, false, yes, no, 1, 0 or empty"
            )
        found[row] = TRUTH[word]
    return found
