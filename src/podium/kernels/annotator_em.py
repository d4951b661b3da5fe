"""Accuracy of annotators when the truth is unknown: expectation maximization for pairs and for classes.

Votes are merged by annotator and pair. Truths are latent; every annotator reports them with its own
probability (a coin), and both are estimated jointly. An annotator's weight multiplies its votes and its
prior, so that weight two equals two annotators with the same votes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from podium._core import annotator_em as core
from podium.kernels import contest_counts, segments
from podium.kernels.dispatch import F8, I4, I8, run_in_threads
from podium.kernels.grouping import number_rows, sum_rows
from podium.kernels.pairwise_votes import Votes

__all__ = [
    "AccuracyModel",
    "AnnotatorVotes",
    "FixedPoint",
    "Ratings",
    "build_annotator_votes",
    "compute_expected_elo",
    "estimate_confusions",
    "estimate_pair_truths",
    "find_fixed_point",
    "sum_agreement",
]

FURTHEST = 30.0  # log odds; bound on an annotator's certainty during the iteration
FALL = 1e-12  # relative decrease of the objective that counts as rounding
WINDOW = 10  # steps kept for the extrapolation
STEADY = 1e-12  # regularization that keeps their weights finite when all are alike
PARTS = 64  # smallest number of portions in which Elo matches are played


class AnnotatorVotes(NamedTuple):
    """Votes without ties, merged by pair, annotator and (if requested) the side shown first."""

    starts: I8  # slots of query q: starts[q] .. starts[q + 1]
    pair_starts: I8  # pairs of query q
    first: I4  # by pair, slots with first < second, in order
    second: I4
    pair: I8  # by row, in order
    group: I8  # by row, the annotator (or annotator and query)
    won: F8  # by row, weight of the votes for first over second
    lost: F8
    side: I8  # by row: 0 unknown, 1 the first slot was shown first, 2 the second was


class AccuracyModel(NamedTuple):
    """The coin of each row, by the truth, and the prior of the coins."""

    first: I8  # by row: the coin if the first item is the better one
    second: I8  # by row: the coin if the second item is the better one
    weight: F8  # by coin
    right: F8  # by coin: prior numbers of right and of wrong votes
    wrong: F8


class Ratings(NamedTuple):
    """Classes that annotators assigned to items."""

    items: int
    item: I8
    group: I8
    level: I8
    weight: F8  # by group
    prior: F8  # groups x levels x levels: prior counts of ratings (last axis) by truth


class FixedPoint(NamedTuple):
    """The end of the iteration."""

    x: F8
    objective: float  # log likelihood plus log prior
    steps: int
    converged: bool


def build_annotator_votes(
    votes: Votes, list_group: I8, vote_group: I8, unit: float = 1.0, side: I8 | None = None
) -> AnnotatorVotes:
    """All votes on pairs, by group; `side` gives who was shown first in each comparison: 1 the winner."""
    rows = contest_counts.expand_votes(votes, list_group, vote_group, side)
    # a tie is no evidence of who is right
    rows = contest_counts.PairVotes._make(column[rows.tied == 0] for column in rows)
    (first, second), pair = number_rows(rows.first, rows.second)
    # keys are numbered from 0, so the side -1 becomes 2
    shown = np.where(rows.side < 0, 2, rows.side)
    keys, (won, lost) = sum_rows((pair, rows.group, shown), (rows.won * unit, rows.lost * unit))
    of_pair, group, shown = keys
    # pairs are sorted by their first slot and the slots of a query are contiguous
    pair_starts = np.searchsorted(first, votes.slots).astype(np.int64)
    ends = first.astype(np.int32), second.astype(np.int32)
    return AnnotatorVotes(votes.slots, pair_starts, *ends, of_pair, group, won, lost, shown)


def find_fixed_point(
    step: Callable[[F8], tuple[F8, float]], x: F8, tolerance: float, max_iterations: int
) -> FixedPoint:
    """The fixed point of `step`, which also returns the objective at its argument; the objective never falls.

    Anderson mixing extrapolates the limit from the last few steps; where the objective is lower there than
    before, the plain step is taken instead and the history is cleared.
    """
    plain, best = x, -np.inf
    moves: list[F8] = []
    places: list[F8] = []
    for steps in range(1, max_iterations + 1):
        new, value = step(x)
        # extrapolation can overshoot, but plain EM steps never lower the objective: return to the last one
        if value < best - FALL * abs(best):
            moves, places, x = [], [], plain
            continue
        move, plain, best = new - x, new, value
        if np.abs(move).max(initial=0.0) <= tolerance:
            return FixedPoint(new, value, steps, True)
        moves, places = [*moves[-WINDOW:], move], [*places[-WINDOW:], new]
        if len(moves) > 1:
            # the combination of the last places whose moves cancel best
            change = np.diff(np.array(moves), axis=0)
            # einsum, not @: a fixed summation order, independent of the number of threads
            square = np.einsum("in,jn->ij", change, change)
            # collinear moves would make the system singular
            square[np.diag_indices_from(square)] *= 1 + STEADY
            share = np.linalg.lstsq(square, np.einsum("in,n->i", change, move))[0]
            new = new - np.einsum("i,in->n", share, np.diff(np.array(places), axis=0))
        x = np.clip(new, -FURTHEST, FURTHEST)
    return FixedPoint(plain, best, max_iterations, False)


# -- pairs ---------------------------------------------------------------------------------------------------


def estimate_pair_truths(
    given: AnnotatorVotes, coins: AccuracyModel, tolerance: float, max_iterations: int
) -> tuple[F8, F8, FixedPoint]:
    """For every pair the probability that its first item is better; for every coin that of a right vote.

    Starts from the vote fractions.
    """
    pairs = len(given.first)
    won, lost = (
        np.bincount(given.pair, side * coins.weight[coins.first], pairs) for side in (given.won, given.lost)
    )
    x = _compute_accuracy_odds(given, coins, won / np.maximum(won + lost, 1e-300))
    found = find_fixed_point(
        lambda at: _update_pair_truths(given, coins, at)[:2], x, tolerance, max_iterations
    )
    _, value, odds = _update_pair_truths(given, coins, found.x)
    return _logistic(odds), _logistic(found.x), found._replace(objective=value)


def sum_agreement(given: AnnotatorVotes, coins: AccuracyModel, truth: F8) -> tuple[F8, F8]:
    """By coin, the weight of the votes that agree and that disagree with the truths (by pair)."""
    right, wrong = np.zeros(len(coins.right)), np.zeros(len(coins.right))
    columns = (given.pair, coins.first, coins.second, given.won, given.lost)
    core.sum_agreement(*columns, truth, right, wrong)
    return right, wrong


def _compute_accuracy_odds(given: AnnotatorVotes, coins: AccuracyModel, truth: F8) -> F8:
    """Log odds of a right vote for every coin, given the truths."""
    right, wrong = sum_agreement(given, coins, truth)
    right, wrong = right + coins.right, wrong + coins.wrong
    return np.asarray(np.log(right / wrong), np.float64)


def _update_pair_truths(given: AnnotatorVotes, coins: AccuracyModel, x: F8) -> tuple[F8, float, F8]:
    """New log odds of the coins, the objective at the old ones, and the log odds of the pairs."""
    right, wrong = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    up, down = _sum_evidence(given, coins, right * coins.weight, wrong * coins.weight)
    # before any vote both orders of a pair are equally likely, hence log 2
    value = (np.logaddexp(up, down) - np.log(2)).sum()
    value += (coins.weight * (coins.right * right + coins.wrong * wrong)).sum()
    return _compute_accuracy_odds(given, coins, _logistic(up - down)), float(value), up - down


def _sum_evidence(given: AnnotatorVotes, coins: AccuracyModel, right: F8, wrong: F8) -> tuple[F8, F8]:
    """By pair, the log likelihood of the votes if the first item is better, and if the second is."""
    pairs = len(given.first)
    out = np.zeros((2, pairs))
    columns = (given.pair, coins.first, coins.second, given.won, given.lost)
    core.sum_evidence(*columns, right, wrong, out[0], out[1])
    return out[0], out[1]


def _logistic(x: F8) -> F8:
    z = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, z) / (1.0 + z), np.float64)


# -- classes -------------------------------------------------------------------------------------------------


def estimate_confusions(
    given: Ratings, tolerance: float, max_iterations: int
) -> tuple[F8, F8, F8, FixedPoint]:
    """Probabilities of the levels of each item, confusion tables of the groups, and level frequencies.

    Starts from the rating fractions of each item. Level frequencies have a prior of one item per level.
    """
    levels = given.prior.shape[1]
    votes = np.zeros((given.items, levels))
    np.add.at(votes, (given.item, given.level), given.weight[given.group])
    total = votes.sum(axis=1, keepdims=True)
    start = np.where(total > 0, votes / np.where(total > 0, total, 1.0), 1.0 / levels)
    x = _estimate_tables(given, start, np.flatnonzero(total > 0))
    rated = np.flatnonzero(total > 0)
    found = find_fixed_point(
        lambda at: _update_class_truths(given, rated, at)[:2], x, tolerance, max_iterations
    )
    _, value, truth = _update_class_truths(given, rated, found.x)
    table, share = _unpack_tables(given, found.x)
    return truth, np.exp(table), np.exp(share), found._replace(objective=value)


def _unpack_tables(given: Ratings, x: F8) -> tuple[F8, F8]:
    """Log tables and log frequencies, normalized to sum to one."""
    levels = given.prior.shape[1]
    table, share = x[:-levels].reshape(given.prior.shape), x[-levels:]
    return table - _logsumexp(table), share - _logsumexp(share)


def _logsumexp(x: F8) -> F8:
    top = x.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)), np.float64)


def _estimate_tables(given: Ratings, truth: F8, rated: I8) -> F8:
    """The most likely tables and frequencies given the items' levels, as logs in one row."""
    counts = given.prior.copy()
    core.count_ratings(given.item, given.group, given.level, truth, counts)
    share = truth[rated].sum(axis=0) + 1.0
    logs = np.log(counts) - np.log(counts.sum(axis=-1, keepdims=True))
    return np.concatenate((logs.ravel(), np.log(share / share.sum())))


def _update_class_truths(given: Ratings, rated: I8, x: F8) -> tuple[F8, float, F8]:
    """New tables and frequencies, the objective at the old ones, and the level probabilities of each item."""
    table, share = _unpack_tables(given, x)
    odds = np.repeat(share[None, :], given.items, axis=0)
    core.sum_rating_evidence(given.item, given.group, given.level, given.weight, table, odds)
    total = _logsumexp(odds)
    # the sum of the log frequencies is their prior of one item per level
    value = total[rated].sum() + share.sum() + (given.weight * (given.prior * table).sum(axis=(1, 2))).sum()
    truth = np.exp(odds - total)
    return _estimate_tables(given, truth, rated), float(value), truth


# -- ratings from pairs --------------------------------------------------------------------------------------


def compute_expected_elo(given: AnnotatorVotes, won: F8, lost: F8, k: float, rate: float) -> F8:
    """Elo ratings around 0, averaged over all orders of the matches, to first order in the step k.

    `won` and `lost` are matches by pair (fractions allowed); `rate` turns a difference of ratings into log
    odds. In a random order every match comes at a random time, so each match is cut into portions, and one
    portion of all matches is played at once, then the next.
    """
    slots, met = int(given.starts[-1]), won + lost
    ends = (given.first, given.second)
    busy = np.bincount(np.concatenate(ends), np.concatenate((met, met)), slots)
    # the appended 0 keeps the index of a last query without items valid
    most = np.maximum.reduceat(np.append(busy, 0.0), given.starts[:-1]) if slots else np.zeros(0)
    # so many portions that a single one moves no rating by more than one unit of log odds
    parts = np.maximum(PARTS, np.ceil(rate * k * most)).astype(np.int64)
    ratings, pairs = np.zeros(slots), np.diff(given.pair_starts)
    work = segments.offsets(pairs * parts + 1)
    given_columns = (given.starts, given.pair_starts, *ends, won, lost, parts, k, rate, ratings)
    run_in_threads(core.compute_expected_elo, work, *given_columns)
    return ratings
