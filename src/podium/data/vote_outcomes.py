"""Decodes the winners of votes between two items: sides, ids, custom codes, and soft preferences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from podium.core.errors import InputError, MessageText, Option, ParameterError
from podium.data.building.validate import Origin
from podium.data.column_roles import WORDS, normalize_name
from podium.data.ids import CodedColumn
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8, I8

__all__ = [
    "SIDES",
    "AnswerCodes",
    "PairAnswers",
    "PreferenceScale",
    "Side",
    "VoteOutcomes",
    "WinnerCodes",
    "build_votes",
    "decode_outcomes",
    "parse_winner_codes",
    "refuse_sides_as_items",
]

Side = Literal["a", "b", "tie"]
RemedyParts = tuple[str | Option, ...]
RowError = Callable[[int, str, MessageText], InputError]  # row, problem, remedy
# accepted input: text as on the command line, a mapping of cells to sides, or the two ends of a scale
WinnerCodes = str | Mapping[Any, str] | tuple[float, float]

FIRST = ("a", "left", "model_a", "item_a", "doc_a", "first")
SECOND = ("b", "right", "model_b", "item_b", "doc_b", "second")
TIE = ("tie", "same", "s", "equal", "draw", "both", "tie (bothbad)", "both_bad", "bothbad")
SIDES: dict[str, Side] = {
    **dict.fromkeys(FIRST, "a"), **dict.fromkeys(SECOND, "b"), **dict.fromkeys(TIE, "tie"),
}  # fmt: skip
_SCALE = re.compile(r"\s*([-+]?[\d.]+)\s*\.\.\s*([-+]?[\d.]+)\s*")
_EXAMPLES = "'1=a,2=b,0=tie' for codes, '1..2' for numbers from 1 (the first item) to 2 (the second)"


class PreferenceScale(NamedTuple):
    """A preference scale: at `first` the first item wins, at `second` the second; the midpoint is a tie."""

    first: float
    second: float


class PairAnswers(NamedTuple):
    """Rows with two items and the answer; `names` are the names of the two item columns."""

    first: Sequence[Any]
    second: Sequence[Any]
    answers: Sequence[Any]
    names: tuple[str, str]


class VoteOutcomes(NamedTuple):
    """Votes; a soft preference becomes two votes, one per side."""

    row: I8  # the input row of each vote
    second: B1  # whether the second item won
    tie: B1
    share: F8  # fraction of the weight of the row


AnswerCodes = dict[str, Side] | PreferenceScale


def parse_winner_codes(given: WinnerCodes | None) -> AnswerCodes:
    """The meaning of winner cells, from text, a mapping, or the two ends of a scale.

    >>> parse_winner_codes("1=a, 2=b, 0=tie"), parse_winner_codes("1..2")
    ({'1': 'a', '2': 'b', '0': 'tie'}, PreferenceScale(first=1.0, second=2.0))
    """
    if given is None:
        return {}
    if isinstance(given, str):
        scale = _SCALE.fullmatch(given)
        if scale is not None:
            return _parse_scale(scale[1], scale[2], given)
        words = [word.rpartition("=") for word in given.split(",")]
        if not all(equals and code.strip() for code, equals, _ in words):
            raise ParameterError(f"winner_codes is {given!r}; write {_EXAMPLES}")
        given = {code: side for code, _, side in words}
    if isinstance(given, Sequence) and len(given) == 2:
        return _parse_scale(given[0], given[1], given)
    if not isinstance(given, Mapping):
        raise ParameterError(f"winner_codes is {given!r}; write {_EXAMPLES}")
    codes: dict[str, Side] = {}
    for cell, word in given.items():
        side = SIDES.get(word.strip().lower()) if isinstance(word, str) else None
        if side is None:
            raise ParameterError(
                f"winner_codes maps {cell!r} to {word!r}; accepted: a (the first item), b (the second), tie"
            )
        if codes.setdefault(_normalize_code(cell), side) != side:
            raise ParameterError(f"winner_codes maps {cell!r} to two sides")
    return codes


def _parse_scale(first: Any, second: Any, given: object) -> PreferenceScale:
    try:
        ends = PreferenceScale(float(first), float(second))
    except (TypeError, ValueError):
        raise ParameterError(f"winner_codes is {given!r}; write {_EXAMPLES}") from None
    if not np.isfinite(ends).all() or ends.first == ends.second:
        raise ParameterError(f"winner_codes is {given!r}; the two ends of a scale must be different numbers")
    return ends


def _normalize_code(cell: Any) -> str:
    """A cell normalized for comparison: 1, '1' and '1.0' are the same code."""
    text = str(cell).strip().lower()
    return text.removesuffix(".0") if re.fullmatch(r"[-+]?\d+\.0", text) else text


def decode_outcomes(
    pairs: PairAnswers, codes: AnswerCodes, error: RowError, blank: RemedyParts
) -> VoteOutcomes:
    """The votes of all rows; `blank` is the remedy for rows without an answer."""
    if isinstance(codes, PreferenceScale):
        return _decode_scale(pairs, codes, error, blank)
    sides: Sequence[Side | None] | None = None
    if set(map(type, pairs.answers)) == {str}:
        # the usual case: only words for sides, none of which is an item id
        words = {answer: _decode_answer(answer, codes, pairs.names) for answer in set(pairs.answers)}
        clear = words.keys().isdisjoint(pairs.first) and words.keys().isdisjoint(pairs.second)
        if clear and None not in words.values():
            sides = [words[answer] for answer in pairs.answers]
    if sides is None:
        sides = _decode_rows(pairs, codes, error, blank)
    n = len(sides)
    second, tie = (np.fromiter((s == side for s in sides), np.bool_, n) for side in ("b", "tie"))
    return VoteOutcomes(np.arange(n), second, tie, np.ones(n))


def _decode_answer(answer: Any, codes: Mapping[str, Side], names: tuple[str, str]) -> Side | None:
    """The side that a cell denotes: by the caller's codes, else by column name, else by a common word."""
    if codes and (side := codes.get(_normalize_code(answer))) is not None:
        return side
    if not isinstance(answer, str):
        return None
    word = answer.strip()
    if word in names:
        return "a" if word == names[0] else "b"
    return SIDES.get(word.lower())


def _decode_rows(
    pairs: PairAnswers, codes: Mapping[str, Side], error: RowError, blank: RemedyParts
) -> list[Side]:
    sides: list[Side] = []
    for row, (a, b, answer) in enumerate(zip(pairs.first, pairs.second, pairs.answers, strict=True)):
        if codes and (coded := codes.get(_normalize_code(answer))) is not None:
            sides.append(coded)
            continue
        side = _decode_answer(answer, {}, pairs.names)
        named: Side | None = "a" if answer == a else "b" if answer == b else None
        if side and named and side != named:
            problem = f"the winner {_format_value(answer)} is both an item id and the word for the other side"
            raise error(row, problem, ("rename the items, or give ", Option("winner_codes", "...=a,...=b")))
        choice = named or side
        if choice is None:
            pair = f"{_format_value(a)} and {_format_value(b)}"
            if answer is None or answer == "":
                raise error(row, f"the winner of {pair} is empty", blank)
            accepted = ", ".join(dict.fromkeys((*codes, *pairs.names, *FIRST[:3], *SECOND[:3], *TIE)))
            remedy = (
                f"accepted: the id of one of the two, or {accepted}; ",
                Option("winner_codes"),
                f" decodes other cells, {_EXAMPLES}; ",
                *blank,
            )
            raise error(row, f"the winner of {pair} is {_format_value(answer)}", remedy)
        sides.append(choice)
    return sides


def _decode_scale(
    pairs: PairAnswers, scale: PreferenceScale, error: RowError, blank: RemedyParts
) -> VoteOutcomes:
    """Numbers on a scale as votes for both sides, weighted by the strength of preference."""
    low, high = sorted(scale)
    chance = np.empty(len(pairs.answers))  # probability that the second item wins
    for row, answer in enumerate(pairs.answers):
        is_number = isinstance(answer, str | int | float | np.number) and not isinstance(answer, bool)
        try:
            value = float(answer) if is_number else np.nan
        except (ValueError, OverflowError):
            value = np.nan
        if not low <= value <= high:
            scale_text = f"winner_codes declares numbers from {scale.first:g} to {scale.second:g}; "
            a, b = pairs.first[row], pairs.second[row]
            raise error(
                row,
                f"the winner of {_format_value(a)} and {_format_value(b)} is {_format_value(answer)}",
                (scale_text, *blank),
            )
        chance[row] = (value - scale.first) / (scale.second - scale.first)
    # one vote for a clear winner or an exact tie, else one vote per side
    both = (chance > 0) & (chance < 1) & (chance != 0.5)
    rows: I8 = np.repeat(np.arange(len(chance)), np.where(both, 2, 1))
    follows = np.zeros(len(rows), np.bool_)
    follows[1:] = rows[1:] == rows[:-1]
    second = np.where(both[rows], follows, chance[rows] == 1)
    share = np.where(both[rows], np.where(second, chance[rows], 1 - chance[rows]), 1.0)
    return VoteOutcomes(rows, second, chance[rows] == 0.5, share)


def _format_value(value: Any) -> str:
    """A value for a message; long values are shortened in the middle."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]} ... {text[-15:]}"


def build_votes(
    query: CodedColumn,
    expert: CodedColumn,
    items: tuple[CodedColumn, CodedColumn],
    outcomes: VoteOutcomes,
    weight: F8 | None,
    origin: Origin,
) -> Preferences:
    """Comparisons from decoded rows; the first item of a row was shown first."""
    row, both = outcomes.row, CodedColumn.concat(items, "item")
    a, b = (side[row] for side in both.codes.reshape(2, -1))
    return Preferences.from_comparisons(
        CodedColumn(query.codes[row], query.ids),
        CodedColumn(expert.codes[row], expert.ids),
        CodedColumn(np.where(outcomes.second, b, a), both.ids),
        CodedColumn(np.where(outcomes.second, a, b), both.ids),
        tie=outcomes.tie,
        weight=outcomes.share if weight is None else outcomes.share * weight[row],
        side=np.where(outcomes.second, -1, 1),
        origin=lambda vote: origin(int(row[vote])),
    )


def refuse_sides_as_items(
    winner: CodedColumn, loser: CodedColumn, names: tuple[str, str], source: str
) -> None:
    """Reject a winner column that names sides where the ids of the winners are expected.

    Single letters may be ids, unless the losers come from a column that is one side of a pair.
    """
    winners, losers = set(winner.ids.tolist()), set(loser.ids.tolist())
    words = {w for w in winners if isinstance(w, str) and w.strip().lower() in SIDES}
    sure = normalize_name(names[1]) in (*WORDS["item_a"], *WORDS["item_b"]) or any(len(w) > 1 for w in words)
    # real items with such names would also occur as losers
    if words and words == winners and sure and not losers >= winners:
        listed = ", ".join(map(repr, sorted(words)))
        raise InputError(
            f"the column {names[0]!r} contains {listed}: the side that won, not the item",
            source=source,
            remedy=(
                "name the columns of both items, ",
                Option("item_a", "..."),
                " and ",
                Option("item_b", "..."),
                ", with ",
                Option("winner", names[0]),
            ),
        )
