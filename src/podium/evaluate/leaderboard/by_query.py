"""One leaderboard per query, for votes whose queries do not have the same items."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from podium.data.preferences import Preferences
from podium.data.vocabulary import Id
from podium.errors import InputError, ParameterError, PodiumWarning
from podium.evaluate.leaderboard.board import Leaderboard, Settings, leaderboard
from podium.evaluate.leaderboard.tally import Tally

__all__ = ["leaderboards_by_query"]

SHOWN = 5  # queries named in a warning


def leaderboards_by_query(
    votes: Preferences | Tally, *, settings: Settings | None = None, **changes: Any
) -> dict[Id, Leaderboard]:
    """A leaderboard of the items of each query, by query; see `Settings` for the keywords.

    Queries with fewer than two votes have none, and a warning names them.

    >>> votes = Preferences.from_comparisons([1, 1, 2, 2], ["j"] * 4, ["a", "b", "x", "y"], ["b", "a", "y", "x"])
    >>> {query: len(board) for query, board in leaderboards_by_query(votes).items()}
    {1: 2, 2: 2}
    """
    over = changes.get("over", settings.over if settings is not None else None)
    if over == "queries":
        raise ParameterError(
            "over is queries, and each leaderboard has one query; accepted here: votes, experts"
        )
    found, left_out = {}, []
    for query, tally in _parts(votes):
        if tally.votes < 2:
            left_out.append(query)
        else:
            found[query] = leaderboard(tally, settings=settings, **changes)
    if not found:
        raise InputError("no query has two votes", remedy="a leaderboard needs at least two")
    if left_out:
        more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
        names = ", ".join(map(str, left_out[:SHOWN])) + more
        warnings.warn(
            f"no leaderboard for queries with fewer than two votes: {names}", PodiumWarning, stacklevel=2
        )
    return found


def _parts(votes: Preferences | Tally) -> Iterator[tuple[Id, Tally]]:
    """One query after the other, so that the pairs of all lists are never in memory at once."""
    if isinstance(votes, Tally):
        yield from votes.by_query()
        return
    for query in votes.queries:
        part = votes.select([query])
        if len(part.comparisons) or bool((part.lists.lengths > 1).any()):
            yield query, Tally.of(part)
