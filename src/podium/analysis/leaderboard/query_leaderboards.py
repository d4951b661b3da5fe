"""One leaderboard per query, for votes whose queries have different items."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from podium.analysis.leaderboard.result import Leaderboard, LeaderboardSettings, leaderboard
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError, PodiumError, PodiumWarning
from podium.core.text import join_names
from podium.data.ids import Id
from podium.data.preferences import Preferences

__all__ = ["leaderboards_by_query"]

SHOWN = 3  # queries named in a warning


def leaderboards_by_query(
    votes: Preferences | Tally, *, settings: LeaderboardSettings | None = None, **changes: Any
) -> dict[Id, Leaderboard]:
    """A leaderboard of each query's items, by query; see `LeaderboardSettings` for the keywords.

    Queries with too few votes (fewer than two) have none, and a warning names them with the reason.

    >>> votes = Preferences.from_comparisons([1, 1, 2, 2], ["j"] * 4, ["a", "b", "x", "y"], ["b", "a", "y", "x"])
    >>> {query: len(board) for query, board in leaderboards_by_query(votes).items()}
    {1: 2, 2: 2}
    """
    over = changes.get("over", settings.over if settings is not None else None)
    if over == "queries":
        raise ParameterError(
            "over is queries, and each leaderboard has one query; accepted here: votes, experts"
        )
    boards: dict[Id, Leaderboard] = {}
    left_out: dict[Id, PodiumError] = {}
    for query, tally in _iterate_queries(votes):
        try:
            boards[query] = leaderboard(tally, settings=settings, **changes)
        except PodiumError as error:
            left_out[query] = error
    if not boards:
        raise next(
            iter(left_out.values()), InputError("there are no votes", remedy="give lists or comparisons")
        )
    if left_out:
        names = join_names([f"{query} ({error})" for query, error in left_out.items()], SHOWN)
        text = f"no leaderboard for {len(left_out):,} of {len(boards) + len(left_out):,} queries: {names}"
        warnings.warn(text, PodiumWarning, stacklevel=2)
    return boards


def _iterate_queries(votes: Preferences | Tally) -> Iterator[tuple[Id, Tally]]:
    """One query at a time, so that the pairs of all lists are never in memory at once."""
    if isinstance(votes, Tally):
        yield from votes.split_by_query()
        return
    for query in votes.queries:
        part = votes.select([query])
        if len(part.comparisons) or bool((part.lists.lengths > 1).any()):
            yield query, Tally.from_preferences(part)
