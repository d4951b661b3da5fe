"""Plackett-Luce: every place of a list is a choice among the items not yet placed, with odds exp(score).

A block of t tied items is t choices from the items at or below it, each by one of the tied (Breslow); a last
block with nothing below it is t - 1 choices, since its last item is no choice. So a tie of two is half a win
for each, and a block of unlisted items is no choice at all. A gamma prior of shape 1 + a on the odds (Caron &
Doucet, 2012) acts as a vote that ties all items of a query: each is chosen a times from all. Its rate only
sets the scale.

The log-posterior is concave in the scores; damped Newton steps maximize it, with Hessian products by running
sums along the lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import plackett_luce as core
from podium.kernels.dispatch import F8, I8, run_in_threads
from podium.kernels.pairwise_votes import Votes, compute_pair_work, merge_comparisons

__all__ = ["PlackettLuceFit", "fit_plackett_luce"]


class PlackettLuceFit(NamedTuple):
    """Log strengths by slot with mean 0 in every query, and by query how they were computed."""

    score: F8
    gradient: F8  # largest component, relative to the choices won by the most chosen item
    steps: I8
    value: F8  # log-posterior, up to a constant


def fit_plackett_luce(votes: Votes, prior: float, tolerance: float, most_steps: int) -> PlackettLuceFit:
    """Maximize the likelihood times the prior; `prior` is a, in the unit of the weights."""
    votes = merge_comparisons(votes)
    queries, slots = len(votes.slots) - 1, int(votes.slots[-1])
    fit = PlackettLuceFit(np.zeros(slots), np.zeros(queries), np.zeros(queries, np.int64), np.zeros(queries))
    work = compute_pair_work(votes)
    run_in_threads(core.fit_plackett_luce, work, votes, prior, tolerance, most_steps, *fit)
    return fit
