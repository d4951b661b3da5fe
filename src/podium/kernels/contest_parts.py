"""The contests of all queries in parts, so that memory does not grow with the number of queries.

A query whose lists expand into very many contests forms its own part; where the model allows it, its lists
are not expanded (see `list_contests`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from podium.kernels import contest_scores, segments
from podium.kernels.contest_counts import Contests, counting_bytes
from podium.kernels.contest_scores import ContestSolution
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import Votes, select_queries, without_lists

__all__ = ["Part", "join_solutions", "split"]

PART = 2.0**30  # bytes for the contests of one part, unless a single query needs more
LONG = 5_000_000  # contests of a query's lists from which on the lists are not expanded


class Part(NamedTuple):
    """The contests of some queries; their slots count from 0."""

    base: int  # first slot in the whole input
    met: Contests


def split(votes: Votes, unit: float, side: F8 | None, *, keep_lists: bool) -> Iterator[Part]:
    """The contests of all queries, in order; `keep_lists` allows long lists to stay unexpanded."""
    pairs, needed = counting_bytes(votes)
    alone = (pairs > LONG) if keep_lists and side is None else np.zeros(len(pairs), np.bool_)
    for first, last in _ranges(needed, alone):
        part = select_queries(votes, first, last)
        base = int(votes.slots[first])
        if alone[first:last].any():
            met = contest_scores.count_contests(without_lists(part), unit)._replace(lists=(part, unit))
        else:
            shown = None if side is None else side[slice(*votes.vote_starts[[first, last]].tolist())]
            met = contest_scores.count_contests(part, unit, shown)
        yield Part(base, met)


def _ranges(needed: F8, alone: B1) -> list[tuple[int, int]]:
    """Ranges of queries of about equal size, at most `PART`; each query in `alone` is its own range."""
    cuts = np.flatnonzero(alone)
    edges = np.unique(np.concatenate(([0], cuts, cuts + 1, [len(needed)]))).tolist()
    found: list[tuple[int, int]] = []
    for first, last in pairwise(edges):
        total = segments.offsets(needed[first:last])
        number = 1 if alone[first] else max(1, int(np.ceil(total[-1] / PART)))
        inner = np.searchsorted(total, np.linspace(0, total[-1], number + 1)[1:-1])
        marks = np.unique(np.concatenate(([0], inner, [last - first]))) + first
        found += list(pairwise(marks.tolist()))
    return found or [(0, len(needed))]


def join_solutions(parts: Sequence[tuple[int, ContestSolution]]) -> ContestSolution:
    """One solution for all queries, from parts with their first slots."""
    if len(parts) == 1:
        return parts[0][1]
    solutions = [s for _, s in parts]
    columns: list[Any] = [np.concatenate([s[k] for s in solutions]) for k in range(5)]
    extra = {name: np.concatenate([s.extra[name] for s in solutions]) for name in solutions[0].extra}
    component: I8 = np.concatenate([s.component + base for base, s in parts])
    return ContestSolution._make([*columns, extra, solutions[0].model, component])
