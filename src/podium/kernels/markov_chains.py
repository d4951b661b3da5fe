"""Stationary distributions of random walks over the items of a query, driven by its lists.

A comparison is a list of two. Where lists put unlisted items below, these form one tied last block. With
probability `teleport` the walk jumps to a random item; from an item in no list it always does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import ballots as core_ballots
from podium._core import markov_chains as core
from podium.kernels.dispatch import F8, I4, I8, run_in_threads
from podium.kernels.pairwise_votes import (
    Votes,
    compute_pair_work,
    merge_comparisons,
)

__all__ = [
    "LAST",
    "MULTISET",
    "ONE_LIST",
    "ONE_LIST_ANY",
    "Ballots",
    "build_ballots",
    "solve_list_chain",
    "solve_majority_chain",
]

MULTISET, ONE_LIST, ONE_LIST_ANY = 1, 2, 3  # MC1, MC2, MC3
LAST = 2**31 - 1  # rank of the block of unlisted items


class StationaryDistribution(NamedTuple):
    """Probabilities by slot, and the number of steps of the slowest query."""

    probability: F8
    steps: int
    converged: bool


class Ballots(NamedTuple):
    """The lists, comparisons and unlisted blocks of one query in one form."""

    starts: I8
    item: I8  # 0 .. M - 1
    rank: I4
    weight: F8


def solve_list_chain(
    votes: Votes, kind: int, teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    """MC1, MC2 or MC3: the walk uses one list (or all lists that hold the item) to choose where to go."""
    return _solve_chain(
        "solve_list_chain", merge_comparisons(votes), (kind,), teleport, tolerance, most_steps
    )


def solve_majority_chain(
    votes: Votes, teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    """MC4: the walk draws a random item and moves there if the majority prefers it."""
    return _solve_chain("solve_majority_chain", votes, (), teleport, tolerance, most_steps)


def _solve_chain(
    name: str, votes: Votes, kind: tuple[int, ...], teleport: float, tolerance: float, most_steps: int
) -> StationaryDistribution:
    sizes = np.diff(votes.slots)
    found = np.empty(int(votes.slots[-1]))
    work = compute_pair_work(votes, 1 / 256)
    steps = np.zeros(len(sizes), np.int64)
    kernel = getattr(core, name)
    run_in_threads(kernel, work, votes, *kind, teleport, tolerance, most_steps, found, steps)
    return StationaryDistribution(found, int(steps.max(initial=0)), bool((steps <= most_steps).all()))


def build_ballots(votes: Votes, query: int) -> Ballots:
    """All votes of one query, as lists; votes of weight 0 are excluded."""
    starts, item, rank, weight = core_ballots.build_ballots(votes, query)
    return Ballots(starts, item, rank.astype(np.int32), weight)
