"""Input columns -> validated, sorted tables. The only place where preferences are validated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.core.errors import ALLOW_REPEATS, InputError, MessageText, Option, ParameterError, PodiumWarning
from podium.core.settings import Duplicates
from podium.data.building.duplicates import ListRows, merge_duplicates
from podium.data.lists import Comparisons, Lists
from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8

__all__ = [
    "LAST_RANK",
    "SELF_VOTE",
    "Duplicates",
    "Origin",
    "build_comparisons",
    "build_lists",
    "check_choice",
    "check_numbers",
    "check_tie_marks",
    "row_origin",
    "warn_if_reversed",
]

Origin = Callable[[int], tuple[str, int | None]]  # input row -> (source, line) for error messages
LAST_RANK = 2**31 - 1
SELF_VOTE = "an item is compared with itself"


def check_choice(name: str, value: object, accepted: Sequence[str]) -> None:
    """Reject a value that is not one of a few words."""
    if value not in accepted:
        raise ParameterError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")


def row_origin(row: int) -> tuple[str, int | None]:
    """The origin of in-memory data."""
    return f"row {row + 1}", None


def _row_error(problem: str, row: int, origin: Origin, remedy: MessageText) -> InputError:
    source, line = origin(row)
    return InputError(problem, source=source, line=line, remedy=remedy)


def check_numbers(values: Any, what: str, origin: Origin = row_origin) -> F8:
    """A float column; a value that is not a finite number is an error that names its row."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                raise _row_error(
                    f"the {what} is {str(value)[:60]!r}", row, origin, f"a {what} is a number"
                ) from None
        raise
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise _row_error(
            f"the {what} is {column[bad[0]]}",
            int(bad[0]),
            origin,
            f"a {what} is a finite number; omit the row if it is unknown",
        )
    return column


def _check_ranks(values: Any, origin: Origin) -> I4:
    if isinstance(values, np.ndarray) and values.dtype == np.int32:
        column: npt.NDArray[Any] = values
    else:
        column = check_numbers(values, "rank", origin)
        broken = np.flatnonzero(column != np.floor(column))
        if len(broken):
            raise _row_error(
                f"the rank is {column[broken[0]]:g}",
                int(broken[0]),
                origin,
                "ranks are whole numbers from 1; give fractional values as scores",
            )
    if len(column) and (column.min() < 1 or column.max() > LAST_RANK):
        row = int(np.flatnonzero((column < 1) | (column > LAST_RANK))[0])
        raise _row_error(
            f"the rank is {column[row]:.15g}",
            row,
            origin,
            f"ranks start at 1 for the top and end at {LAST_RANK}",
        )
    return column.astype(np.int32, copy=False)


def build_lists(
    query: I8,
    expert: I8,
    slot: I8,
    rank: Sequence[float] | npt.NDArray[Any] | None,
    score: Sequence[float] | npt.NDArray[Any] | None,
    *,
    sizes: I8,
    experts: int,
    duplicates: Duplicates = "error",
    blank_scores: bool = False,
    origin: Origin = row_origin,
    name: Callable[[int], str] = str,
) -> Lists:
    """Validate, sort and group list rows.

    `sizes` counts the items of each query; `blank_scores` allows NaN for lists without scores; `name(row)`
    describes a row's item and list for messages.
    """
    if rank is None and score is None:
        raise InputError(
            "the lists have neither ranks nor scores",
            remedy=("give ", Option("rank"), ", ", Option("score"), " or both"),
        )
    ranks = None if rank is None else _check_ranks(rank, origin)
    scores = None
    if score is not None and blank_scores:
        scores = np.asarray(score, np.float64)
        known = np.flatnonzero(~np.isnan(scores))
        check_numbers(scores[known], "score", lambda row: origin(int(known[row])))
    elif score is not None:
        scores = check_numbers(score, "score", origin)
    rows = ListRows(query, expert, slot, ranks, scores)
    list_key = query * max(experts, 1) + expert
    order = _find_sort_order(rows, list_key)
    if order is not None:
        rows, list_key = rows.take(order), list_key[order]
    if blank_scores and rows.score is not None:
        blank = np.isnan(rows.score)
        mixed = np.flatnonzero((list_key[1:] == list_key[:-1]) & (blank[1:] != blank[:-1]))
        if len(mixed):
            row = int(mixed[0]) + 1 if order is None else int(order[mixed[0] + 1])
            remedy = "score all of them, or none"
            raise _row_error("a list has scores for only some of its items", row, origin, remedy)
    if len(query) and (repeat := segments.find_first_repeat(list_key, rows.slot)) is not None:
        if duplicates == "error":
            row = repeat if order is None else int(order[repeat])
            raise _row_error(f"{name(row)} appears twice", row, origin, ALLOW_REPEATS)
        rows, list_key = merge_duplicates(rows, list_key, duplicates, sizes)
        order = _find_sort_order(rows, list_key)
        if order is not None:
            rows, list_key = rows.take(order), list_key[order]
    lists = _group_rows(rows, list_key, len(sizes), experts)
    if rank is not None and score is not None:
        warn_if_reversed(lists)
    return lists


def _find_sort_order(rows: ListRows, list_key: I8) -> I8 | None:
    """The permutation that sorts rows by list, rank (or descending score) and slot; None if sorted."""
    value = -rows.score if rows.rank is None and rows.score is not None else rows.rank
    assert value is not None
    if segments.is_sorted(list_key, value, rows.slot):
        return None
    return np.lexsort((rows.slot, value, list_key))


def _group_rows(rows: ListRows, list_key: I8, queries: int, experts: int) -> Lists:
    first = (
        np.flatnonzero(np.concatenate(([True], list_key[1:] != list_key[:-1])))
        if len(list_key)
        else np.zeros(0, np.int64)
    )
    starts = np.append(first, len(list_key)).astype(np.int64)
    head = list_key[first]
    expert = (head % max(experts, 1)).astype(np.int32)
    query_starts = np.searchsorted(head // max(experts, 1), np.arange(queries + 1)).astype(np.int64)
    if rows.rank is None:
        assert rows.score is not None
        rank = segments.competition_ranks(list_key, -rows.score)
    else:
        rank = rows.rank.copy()  # never share memory with the caller's array
    return Lists(
        query_starts,
        expert,
        starts,
        rows.slot.astype(np.int32),
        rank,
        None if rows.score is None else rows.score.copy(),
    )


def warn_if_reversed(lists: Lists) -> None:
    """Warn if ranks increase with the score: the list was probably read in reverse."""
    if lists.score is None or lists.rows < 2:
        return
    same = lists.list_of_row[1:] == lists.list_of_row[:-1]
    # tied neighbors have no direction
    step = same & (np.diff(lists.rank) > 0)
    above, below = lists.score[:-1][step], lists.score[1:][step]
    rising, falling = int((below > above).sum()), int((below < above).sum())
    if rising > falling:
        warnings.warn(
            f"scores rise down the lists ({rising} steps up, {falling} down): if small scores are good, "
            "give the negated score, or only the ranks",
            PodiumWarning,
            stacklevel=4,
        )


def check_tie_marks(values: Any, origin: Origin) -> npt.NDArray[np.bool_]:
    """Tie marks: only true and false, or 1 and 0, are accepted."""
    column = np.asarray(values)
    if column.dtype.kind == "b":
        return column
    for row, value in enumerate(column.tolist()):
        if isinstance(value, str) or value not in (0, 1):
            raise _row_error(f"the tie mark is {value!r}", row, origin, "a tie mark is true or false")
    return column.astype(np.bool_)


def build_comparisons(
    query: I8,
    expert: I8,
    winner: I8,
    loser: I8,
    tie: Sequence[bool] | npt.NDArray[Any] | None,
    weight: Sequence[float] | npt.NDArray[Any] | None,
    side: npt.NDArray[Any] | None = None,
    *,
    queries: int,
    origin: Origin = row_origin,
) -> Comparisons:
    """Validate and group votes; their order within a query and expert is kept (Elo depends on it)."""
    n = len(query)
    weights = np.ones(n) if weight is None else check_numbers(weight, "weight", origin)
    if n and weights.min() <= 0:
        row = int(np.argmin(weights))
        raise _row_error(
            f"the weight is {weights[row]:g}",
            row,
            origin,
            "weights of votes are positive; omit the vote instead",
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise InputError("the weights of the votes add up to infinity", remedy="rescale them")
    selfies = np.flatnonzero(winner == loser)
    if len(selfies):
        raise _row_error(SELF_VOTE, int(selfies[0]), origin, "a vote needs two items")
    ties = np.zeros(n, np.bool_) if tie is None else check_tie_marks(tie, origin)
    order = np.lexsort((expert, query))
    query_starts = np.searchsorted(query[order], np.arange(queries + 1)).astype(np.int64)
    who, won, lost = (c[order].astype(np.int32) for c in (expert, winner, loser))
    sides = None if side is None else np.asarray(side)[order].astype(np.int32)
    return Comparisons(query_starts, who, won, lost, ties[order], weights[order], sides)
