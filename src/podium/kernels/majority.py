"""Orders from pairwise majorities, one query at a time; scores count items below minus items above.

Results do not depend on ids: items that the votes do not distinguish get equal scores. The methods take the
matrix of one query; `score_by_majority` applies one of them to all queries of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from podium._core import condorcet as core_condorcet
from podium._core import majority as core
from podium.kernels.dispatch import F8, I8, run_in_threads
from podium.kernels.pairwise_votes import (
    Votes,
    build_votes,
    compute_pair_work,
)

__all__ = [
    "condorcet",
    "copeland",
    "greedy",
    "minimax",
    "ranked_pairs",
    "schulze",
    "score_blocks",
    "score_by_majority",
    "split_cycle",
]


def score_by_majority(method: Callable[..., F8], votes: Votes, cubic: float, *options: bool) -> F8:
    """Scores of every slot by one of the methods below; `cubic` as in `compute_pair_work`."""
    scores = np.zeros(int(votes.slots[-1]))
    run_in_threads(_KERNELS[method.__name__], compute_pair_work(votes, cubic), votes, *options, scores)
    return scores


def copeland(table: F8) -> F8:
    """Items beaten minus items lost to."""
    return score_by_majority(copeland, build_votes(table), 0.0)


def condorcet(table: F8) -> F8:
    """Merge sort by majority, from the order of net votes; items without votes start, and so stay, last."""
    return score_by_majority(condorcet, build_votes(table), 0.0)


def greedy(table: F8) -> F8:
    """Repeatedly take the item with the largest net preference over those left."""
    return score_by_majority(greedy, build_votes(table), 0.0)


def schulze(table: F8, winning: bool) -> F8:
    """Items beaten minus items lost to, by the strength of the strongest path of majorities."""
    return score_by_majority(schulze, build_votes(table), 0.0, winning)


def ranked_pairs(table: F8) -> F8:
    """Lock majorities by falling margin; equal margins are locked together, except those in a cycle."""
    return score_by_majority(ranked_pairs, build_votes(table), 0.0)


def minimax(table: F8, winning: bool) -> F8:
    """Repeatedly take the items whose strongest defeat by those left is weakest."""
    return score_by_majority(minimax, build_votes(table), 0.0, winning)


def split_cycle(table: F8, winning: bool) -> F8:
    """Repeatedly take the items that none of those left defeats."""
    return score_by_majority(split_cycle, build_votes(table), 0.0, winning)


_KERNELS: dict[str, Callable[..., Any]] = {
    "condorcet": core_condorcet.condorcet,
    "copeland": core.copeland,
    "greedy": core.greedy,
    "minimax": core.minimax,
    "ranked_pairs": core.ranked_pairs,
    "schulze": core.schulze,
    "split_cycle": core.split_cycle,
}


def score_blocks(blocks: list[I8], size: int) -> F8:
    """Items below minus items above, from tied blocks in order."""
    scores, above = np.empty(size), 0
    for block in blocks:
        scores[block] = size - 2 * above - len(block)
        above += len(block)
    return scores
