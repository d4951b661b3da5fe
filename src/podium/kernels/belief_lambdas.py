"""Gradients of a ranking model towards the preferences implied by beliefs about features.

Beliefs give every item a score t; the probability that i belongs above j is P(i, j) = 1 / (1 + exp(t_j -
t_i)). The quality of an order is N = sum of P(i, j) / log2(place_i + 1) over the places up to a cutoff and
all j below i. (The published sum runs over all j: both directions of a pair inside the cutoff then add up to
a constant, and a query no longer than the cutoff has no training signal.) A pair weighs |change of N when it
is swapped|, and the loss is the weighted cross entropy between P and the model's own 1 / (1 + exp(s_j -
s_i)).

Nearly equal scores are ordered worst belief first; rows equal in both share their slope, so ids have no
effect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import belief_lambdas as core
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, run_in_threads

__all__ = ["BeliefGradients", "compute_belief_lambdas"]


class BeliefGradients(NamedTuple):
    """Gradients of one pass; divide by `mass` to give all queries the same weight."""

    slope: F8  # by row: the loss falls along it
    loss: F8  # by query
    mass: F8  # by query: sum of the pair weights


def compute_belief_lambdas(scores: F8, belief: F8, starts: I8, cutoff: int) -> BeliefGradients:
    """Gradients for scores and belief scores of rows grouped by query."""
    queries = len(starts) - 1
    found = BeliefGradients(np.zeros(len(scores)), np.zeros(queries), np.zeros(queries))
    sizes = np.diff(starts)
    work = segments.offsets(sizes * sizes)
    run_in_threads(core.compute_belief_lambdas, work, starts, scores, belief, cutoff, *found)
    return found
