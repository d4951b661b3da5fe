"""Plackett-Luce and the multinomial preference model: dense derivatives, and fits by dense Newton steps."""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.markov_chains import LAST, build_ballots
from podium.kernels.pairwise_votes import count_items_above, merge_comparisons
from reference.newton import maximize_concave


def fit_plackett_luce(votes, prior, tolerance, most_steps):
    """Log strengths by slot with mean 0 in every query."""
    votes, score = merge_comparisons(votes), np.zeros(int(votes.slots[-1]))
    for q in np.flatnonzero(np.diff(votes.slots) > 1).tolist():
        held, count, wins = build_stages(build_ballots(votes, q), int(np.diff(votes.slots)[q]), prior)
        if wins.any():
            at, law = slice(int(votes.slots[q]), int(votes.slots[q + 1])), PlackettLuce(held, count, wins)
            score[at] = maximize_concave(law, score[at], tolerance, most_steps)[0]
    return score


def build_stages(lists, size, prior):
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


class PlackettLuce:
    """Value, gradient and negated Hessian at the scores of one query."""

    def __init__(self, held, count, wins):
        self.held, self.count, self.wins = held, count, wins
        self.scale = float(wins.max())

    def value(self, score):
        return float(self.wins @ score - self.count @ np.log(self.held @ np.exp(score)))

    def slopes(self, score):
        share = self.held * np.exp(score)
        share /= share.sum(axis=1)[:, None]
        expected = self.count @ share
        return self.wins - expected, np.diag(expected) - (share.T * self.count) @ share


class Multinomial:
    """Value, gradient and negated Hessian at the scores of one query; arrays over (group, item)."""

    def __init__(self, net: F8, total: F8, adherence: F8, prior: float) -> None:
        self.pull, self.total, self.adherence, self.prior = adherence @ net, total, adherence, prior
        self.scale = max(float(np.abs(net).sum(axis=0).max()), prior)

    def value(self, score: F8) -> float:
        up = np.exp(self.adherence[:, None] * score)
        z = up.sum(axis=1) * (1 / up).sum(axis=1) - len(score)
        return float(self.pull @ score - self.total @ np.log(z) - self.prior / 2 * (score @ score))

    def slopes(self, score: F8) -> tuple[F8, F8]:
        up = np.exp(self.adherence[:, None] * score)
        down = 1 / up
        sums, falls = up.sum(axis=1)[:, None], down.sum(axis=1)[:, None]
        z = sums * falls - len(score)
        win, lose = up * falls / z, down * sums / z
        first, second = (self.total * self.adherence**n for n in (1, 2))
        gradient = self.pull - first @ (win - lose) - self.prior * score
        cross = (up / z * second[:, None]).T @ down
        bend = np.diag(second @ (win + lose) + self.prior) - cross - cross.T
        return gradient, bend - ((win - lose).T * second) @ (win - lose)
