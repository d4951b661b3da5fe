"""Plackett-Luce: every place of a list is a choice among the items not yet placed, with odds exp(score).

A block of t tied items is t choices from the items at or below it, each by one of the tied (Breslow); a last
block with nothing below it is t - 1 choices, since its last item is no choice. So a tie of two is half a win
for each, and a block of unlisted items is no choice at all. A gamma prior of shape 1 + a on the odds (Caron &
Doucet, 2012) acts as a vote that ties all items of a query: each is chosen a times from all. Its rate only
sets the scale.

The log-posterior is concave in the scores; damped Newton steps maximize it, with Hessian products by running
sums along the lists (compiled), or with the dense Hessian (small inputs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I8, is_large, run_in_threads
from podium.kernels.markov_chains import LAST, Ballots, build_ballots
from podium.kernels.newton import maximize_concave
from podium.kernels.pairwise_votes import Votes, compute_pair_work, count_items_above, merge_comparisons

__all__ = ["PlackettLuceFit", "fit_plackett_luce"]

QUERY_COST, CELLS = 400, 4  # units of work per query in numpy, and matrix cells per unit (measured)


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
    if is_large(QUERY_COST * queries + int(work[-1]) // CELLS):
        from podium.kernels.compiled.plackett_luce import fit_plackett_luce as kernel

        run_in_threads(kernel, work, votes, prior, tolerance, most_steps, *fit)
        return fit
    for q in np.flatnonzero(np.diff(votes.slots) > 1).tolist():
        held, count, wins = build_stages(build_ballots(votes, q), int(np.diff(votes.slots)[q]), prior)
        if wins.any():
            at = slice(int(votes.slots[q]), int(votes.slots[q + 1]))
            fit.score[at], *found = maximize_concave(
                _PlackettLuceLikelihood(held, count, wins), fit.score[at], tolerance, most_steps
            )
            fit.gradient[q], fit.steps[q], fit.value[q] = found
    return fit


def build_stages(lists: Ballots, size: int, prior: float) -> tuple[F8, F8, F8]:
    """Candidates at each stage (stages, items), its number of choices, and how many each item wins."""
    lengths = np.diff(lists.starts)
    above, upto = count_items_above(lists.starts, lists.rank)
    number = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(lists.item)) - lists.starts[:-1][number]
    block = upto - above
    choices = lists.weight[number] * np.where(upto < lengths[number], block, block - 1)
    choices[lists.rank == LAST] = 0.0
    wins = np.bincount(lists.item, choices / block, size).astype(np.float64, copy=False) + prior
    where = np.full((len(lengths), size), -1)
    where[number, lists.item] = place
    first = np.flatnonzero((place == above) & (choices > 0))
    held = np.concatenate((where[number[first]] >= above[first, None], np.ones((1, size), np.bool_)))
    return held.astype(np.float64), np.concatenate((choices[first], [prior * size])), wins


class _PlackettLuceLikelihood:
    """Value, gradient and negated Hessian at the scores of one query."""

    def __init__(self, held: F8, count: F8, wins: F8) -> None:
        self.held, self.count, self.wins = held, count, wins
        self.scale = float(wins.max())

    def value(self, score: F8) -> float:
        return float(self.wins @ score - self.count @ np.log(self.held @ np.exp(score)))

    def slopes(self, score: F8) -> tuple[F8, F8]:
        share = self.held * np.exp(score)
        share /= share.sum(axis=1)[:, None]
        expected = self.count @ share
        return self.wins - expected, np.diag(expected) - (share.T * self.count) @ share
