"""Votes with a winner, one by one, with the chance that all other voters give each of them.

Ties say nothing about who is favored, so the tests of voters leave them out, and the board that they compare with
is fitted without them. A voter is compared with the others: the scores behind the chances of its votes are those
without its votes, by one Newton step from the scores of all votes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.score_estimate import Estimate, estimate_scores
from podium.analysis.leaderboard.tally import Tally
from podium.analysis.leaderboard.voter_tests import WIDEST
from podium.core.errors import InputError
from podium.kernels.contest_counts import Contests
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic
from podium.kernels.grouping import number_rows, sum_by_group

__all__ = ["DecisiveVotes", "VoteChances", "compute_chances", "fit_decisive_votes", "list_decisive_votes"]

HEAVY = 0.02  # share of the votes from which a voter's own part of the Hessian is taken out
CELLS = 4_000_000  # voters x items of a table held at once


class DecisiveVotes(NamedTuple):
    """One row per vote with a winner, sorted by voter."""

    voters: int
    items: int
    voter: I8
    winner: I8
    loser: I8
    side: I8  # 1: the winner was shown first, -1: the loser was, 0: unknown
    question: I8  # number of the query and the two items

    @property
    def counts(self) -> I8:
        """Votes by voter."""
        return np.bincount(self.voter, minlength=self.voters)


class VoteChances(NamedTuple):
    """The odds that the votes of the others give each vote."""

    logit: F8  # log odds of the winner, by the scores without the voter's votes
    information: F8  # by item, of all votes, weighted
    weights: F8  # by voter


def list_decisive_votes(tally: Tally) -> DecisiveVotes:
    """The single votes of a tally; only whole votes on pairs can be tested."""
    if tally.listed:
        raise InputError(
            "voters are checked by their votes on two items, and these come from lists",
            remedy="the contests of one list are not independent votes; podium annotators reads lists",
        )
    if tally.fractional:
        raise InputError(
            "some vote has a weight that is not a whole number",
            remedy="checks of voters count single votes; leave the weights out",
        )
    if len(tally.experts) < 2:
        name = tally.experts[0] if len(tally.experts) else ""
        raise InputError(
            f"all votes come from one voter, {name!r}",
            remedy="name the column of the voters, such as -O expert=user_id",
        )
    if not (tally.won.any() or tally.lost.any()):
        raise InputError("all votes are ties", remedy="checks of voters need votes with a winner")
    question = number_rows(tally.query, tally.first, tally.second)[1]
    columns = []
    for counts, winner, loser, side in (
        (tally.won, tally.first, tally.second, tally.side),
        (tally.lost, tally.second, tally.first, -tally.side),
    ):
        row = np.repeat(np.arange(len(counts)), np.rint(counts).astype(np.int64))
        columns.append((tally.expert[row], winner[row], loser[row], side[row], question[row]))
    voter, winner, loser, side, question = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = np.argsort(voter, kind="stable")
    return DecisiveVotes(
        len(tally.experts), len(tally.items), voter[order], winner[order], loser[order], side[order], question[order]
    )  # fmt: skip


def fit_decisive_votes(votes: DecisiveVotes, weights: F8, l2: float, start: F8 | None = None) -> Estimate:
    """Bradley-Terry scores of the votes with a winner, each with the weight of its voter."""
    low, high = np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser)
    (first, second), pair = number_rows(low, high)
    weight = weights[votes.voter]
    up = votes.winner == low
    won, lost = (sum_by_group(pair[rows], weight[rows], len(first)) for rows in (up, ~up))
    contests = Contests(
        np.array([0, votes.items]), np.array([0, len(first)]), first.astype(np.int32), second.astype(np.int32),
        won, lost, np.zeros(len(first)),
    )  # fmt: skip
    return estimate_scores(contests, ties="ignore", l2=l2, start=start)


def compute_chances(votes: DecisiveVotes, e: Estimate, weights: F8) -> VoteChances:
    """The log odds of each vote by the scores without the votes of its voter."""
    gap = e.scores[votes.winner] - e.scores[votes.loser]
    chance = logistic(gap)
    weight = weights[votes.voter]
    information = np.asarray(
        sum(np.bincount(side, weight * chance * (1 - chance), votes.items) for side in (votes.winner, votes.loser)),
        np.float64,
    )  # fmt: skip
    residual, n = weight * (1 - chance), votes.items
    ends = np.searchsorted(votes.voter, np.arange(votes.voters + 1))
    logit = gap.copy()
    step = max(1, CELLS // n)
    for begin in range(0, votes.voters, step):
        end = min(begin + step, votes.voters)
        rows = slice(int(ends[begin]), int(ends[end]))
        place = (votes.voter[rows] - begin) * n
        size = (end - begin) * n
        gradient = np.bincount(place + votes.winner[rows], residual[rows], size)
        gradient -= np.bincount(place + votes.loser[rows], residual[rows], size)
        change = gradient.reshape(end - begin, n) @ e.inverse_hessian[:n, :n]
        logit[rows] -= change.ravel()[place + votes.winner[rows]] - change.ravel()[place + votes.loser[rows]]
    hessian = None
    for voter in np.flatnonzero(np.diff(ends) > HEAVY * len(gap)).tolist():
        if weights[voter] == 0:
            continue
        hessian = np.linalg.inv(e.inverse_hessian[:n, :n]) if hessian is None else hessian
        rows = slice(int(ends[voter]), int(ends[voter + 1]))
        winner, loser = votes.winner[rows], votes.loser[rows]
        met = np.bincount(winner * n + loser, (weight * chance * (1 - chance))[rows], n * n).reshape(n, n)
        met = met + met.T
        own = np.diag(met.sum(axis=1)) - met
        gradient = np.bincount(winner, residual[rows], n) - np.bincount(loser, residual[rows], n)
        change = np.linalg.solve(hessian - own, gradient)
        logit[rows] = gap[rows] - (change[winner] - change[loser])
    # items on which the others did not vote at all have no known odds
    return VoteChances(np.clip(logit, -WIDEST * 4, WIDEST * 4), information, weights)
