"""The experts behind a leaderboard: how much each says, which side they vote for, and who copies whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from podium.data.vocabulary import Id
from podium.evaluate.leaderboard.tally import Tally
from podium.evaluate.next_pair import chances
from podium.evaluate.significance import holm
from podium.evaluate.uncertainty import Estimate
from podium.kernels.dispatch import F8, I8

__all__ = ["Agreement", "Sided", "agreement", "expected", "shares", "sides_by_judge"]

MOST_JUDGES = 500  # whose votes are compared with each other; those with the most votes
SHARED = 10  # comparisons two judges must have in common
ALIKE, COPY = 0.5, 0.9  # correlations of their errors from which two judges count as dependent, and as copies
SURE = 4.0  # standard errors such a correlation must be from 0
ONE_SIDED, DECIDED, RARE = 0.8, 20, 0.01  # share, votes and p-value from which a judge votes for a side


class Sided(NamedTuple):
    """A judge who votes for one side."""

    judge: Id
    votes: float
    first_share: float


def shares(tally: Tally) -> F8:
    """The share of the votes that each expert cast."""
    total = tally.won + tally.lost + tally.tied
    return np.asarray(
        np.bincount(tally.expert, weights=total, minlength=len(tally.experts)) / total.sum(), np.float64
    )


def expected(e: Estimate, tally: Tally) -> F8:
    """By row: what share of the votes (ties half) the first item should have."""
    win, _, tie = chances(e.solution, e.scores[tally.first] - e.scores[tally.second])
    return np.asarray(win + tie / 2, np.float64)


def sides_by_judge(tally: Tally) -> list[Sided]:
    """Judges who nearly always vote for the item shown first (or second), those with the most votes first."""
    from scipy.special import betainc

    known = tally.side != 0
    judge, count = tally.expert[known], len(tally.experts)
    forward = tally.side[known] > 0
    for_first = np.where(forward, tally.won[known], tally.lost[known])
    for_second = np.where(forward, tally.lost[known], tally.won[known])
    one, two = (np.bincount(judge, weights=c, minlength=count) for c in (for_first, for_second))
    total = one + two
    some = np.flatnonzero(total >= DECIDED)
    fewer, all_ = np.floor(np.minimum(one, two)[some]), np.floor(total[some])
    tail = betainc(all_ - fewer, fewer + 1, 0.5)  # of a fair coin; unlike bdtr, it takes counts of any size
    p = holm(np.minimum(2 * tail, 1.0))
    lean = np.maximum(one, two)[some] / total[some]
    flagged = some[(p < RARE) & (lean >= ONE_SIDED)]
    flagged = flagged[np.argsort(-total[flagged], kind="stable")]
    return [Sided(tally.experts[int(j)], float(total[j]), float(one[j] / total[j])) for j in flagged]


@dataclass(frozen=True, eq=False)
class Agreement:
    """How the judges with the most votes agree on the comparisons they share (same query, same two items)."""

    judges: list[Id]
    codes: I8  # of these judges among the experts
    shared: F8  # comparisons in common
    agree: F8  # share of them with the same answer; NaN for none
    correlation: (
        F8  # of their departures from what the scores expect; 0 where it is not sure, 1 on the diagonal
    )
    effective: float  # independent judges they are worth: n^2 over the sum of all correlations
    copies: list[list[Id]]  # groups whose departures are nearly the same

    def weights(self, experts: int) -> F8:
        """Weights by expert under which judges that go together share one voice; 1 for judges not looked at."""
        found = np.ones(experts)
        found[self.codes] = 1 / self.correlation.sum(axis=1)
        return found

    def groups(self, experts: int) -> I8:
        """A number by expert, the same for judges that go together."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        label = connected_components(csr_array(self.correlation > 0), directed=False)[1]
        found = np.arange(len(self.codes), len(self.codes) + experts)
        found[self.codes] = label
        return found


class _Answers(NamedTuple):
    """What each judge said to each question (same query, same two items), whichever side the items were shown on."""

    at: tuple[I8, I8]  # judge, question
    shape: tuple[int, int]
    share: F8  # of the first item
    off: F8  # less what the scores expect

    def table(self, values: Any) -> Any:
        """One value an answer, as judges x questions."""
        from scipy.sparse import csr_array

        return csr_array((np.asarray(values, np.float64), self.at), shape=self.shape)


def _answers(tally: Tally, e: Estimate, codes: I8) -> _Answers:
    row = np.full(len(tally.experts), -1)
    row[codes] = np.arange(len(codes))
    kept = np.flatnonzero(row[tally.expert] >= 0)
    question = (tally.query * len(tally.items) + tally.first) * len(tally.items) + tally.second
    questions, column = np.unique(question[kept], return_inverse=True)
    cell, which = np.unique(row[tally.expert[kept]] * len(questions) + column, return_inverse=True)
    columns = (tally.won + tally.tied / 2, tally.won + tally.lost + tally.tied, expected(e, tally))
    half, total, wanted = (np.bincount(which, weights=c[kept]) for c in columns)
    at = (cell // len(questions), cell % len(questions))
    share = half / total
    return _Answers(at, (len(codes), len(questions)), share, share - wanted / np.bincount(which))


def agreement(tally: Tally, e: Estimate) -> Agreement | None:
    """Compare the judges; None when no two of them share SHARED comparisons.

    Two judges who are right for their own reasons depart from the expected score independently; two who copy depart
    together. The effective number is that of Kish's design effect.
    """
    if tally.listed and len(tally.queries) < SHARED:
        return None  # the contests of one list hang together and say little about who copies whom
    total = tally.won + tally.lost + tally.tied
    votes = np.bincount(tally.expert, weights=total, minlength=len(tally.experts))
    codes = np.sort(np.argsort(-votes, kind="stable")[:MOST_JUDGES])
    given = _answers(tally, e, codes)
    asked, off = given.table(np.ones(len(given.share))), given.table(given.off)
    shared = _dense(asked @ asked.T)
    if len(codes) < 2 or np.triu(shared, 1).max() < SHARED:
        return None
    same = [given.table(mark) for mark in (given.share > 0.5, given.share == 0.5, given.share < 0.5)]
    agree = np.asarray(sum(_dense(mark @ mark.T) for mark in same), np.float64)
    together, own = _dense(off @ off.T), _dense((off * off) @ asked.T)
    size = np.sqrt(own * own.T)
    raw = np.divide(together, size, out=np.zeros_like(size), where=size > 0)
    sure = (shared >= SHARED) & (raw * np.sqrt(np.maximum(shared, 1)) > SURE) & (raw > ALIKE)
    correlation = np.where(sure, np.minimum(raw, 1.0), 0.0)
    np.fill_diagonal(correlation, 1.0)
    agree = np.divide(agree, shared, out=np.full_like(agree, np.nan), where=shared > 0)
    judges, worth = [tally.experts[int(c)] for c in codes], len(codes) ** 2 / float(correlation.sum())
    return Agreement(judges, codes, shared, agree, correlation, worth, _groups(judges, correlation))


def _dense(matrix: Any) -> F8:
    return np.asarray(matrix.toarray(), np.float64)


def _groups(judges: list[Id], correlation: F8) -> list[list[Id]]:
    """Judges linked by correlations of copies."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    label = connected_components(csr_array(correlation >= COPY), directed=False)[1]
    groups = [
        [judges[int(j)] for j in np.flatnonzero(label == g)] for g in range(int(label.max(initial=-1)) + 1)
    ]
    return sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
