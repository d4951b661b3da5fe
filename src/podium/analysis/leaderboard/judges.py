"""The experts behind a leaderboard: shares of the votes, side bias, and copies.

Votes for the item shown first reveal a side bias only if the design separates sides from items. If a
reference is always shown first, votes for it may be votes for the reference. The information about the side
is what remains after the information about the items is removed, and if little remains nothing is reported.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.score_estimate import Estimate, compute_outcome_probabilities
from podium.analysis.leaderboard.tally import Tally
from podium.data.ids import Id
from podium.evaluate.significance import holm
from podium.kernels import graphs
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import normal_cdf
from podium.kernels.grouping import number_rows, sum_by_group, sum_rows
from podium.kernels.sparse_rows import SparseRows, solve_positive

__all__ = [
    "Agreement",
    "OneSidedJudge",
    "PositionBias",
    "compute_agreement",
    "compute_expected_shares",
    "estimate_bias_by_judge",
    "estimate_position_bias",
    "find_one_sided_judges",
]  # fmt: skip

MOST_JUDGES = 500  # judges compared with each other, those with the most votes
SHARED = 10  # comparisons that two judges must share
ALIKE, COPY = 0.5, 0.9  # error correlations from which two judges count as dependent, and as copies
SURE = 4.0  # minimum distance of such a correlation from 0 in standard errors
ONE_SIDED, DECIDED, RARE = 0.8, 20, 0.01  # least share, least votes and largest p of a one-sided judge
UNKNOWN = 0.5  # side effects with a larger standard error (log odds) are not reported
TASTE = 1.0  # prior standard deviation (log odds) of a judge's own opinion of an item


class OneSidedJudge(NamedTuple):
    """A judge who favors one side."""

    judge: Id
    votes: float
    first_share: float


class PositionBias(NamedTuple):
    """Advantage of being shown first, in log odds; the error is infinite if side and item are confounded."""

    votes: float  # votes with a winner and known sides
    first_share: float  # share for the item shown first; NaN if there are none
    advantage: float
    error: float

    @property
    def is_known(self) -> bool:
        """Whether the votes separate side from item."""
        return self.error <= UNKNOWN

    @property
    def z(self) -> float:
        """Distance from 0 in standard errors."""
        return self.advantage / self.error


def compute_expected_shares(e: Estimate, tally: Tally) -> F8:
    """Per row: expected share of the votes (ties half) for the first item."""
    win, _, tie = compute_outcome_probabilities(e.solution, e.scores[tally.first] - e.scores[tally.second])
    return np.asarray(win + tie / 2, np.float64)


class _SidedVotes(NamedTuple):
    """Rows with known sides, oriented so that the first item is the one shown first."""

    judge: I8
    first: I8
    second: I8
    for_first: F8  # votes for the first item, without ties
    for_second: F8
    surplus: F8  # votes for the first (ties half) minus those expected from the scores
    weight: F8  # their variance

    def take_rows(self, rows: I8) -> _SidedVotes:
        ids, sums = ([column[rows] for column in self[part]] for part in (slice(3), slice(3, None)))
        return _SidedVotes(*ids, *sums)


def _collect_sided_votes(tally: Tally, e: Estimate) -> _SidedVotes:
    known = np.flatnonzero(tally.side)
    forward = tally.side[known] > 0
    won, lost, tied = (c[known] for c in (tally.won, tally.lost, tally.tied))
    chance = compute_expected_shares(e, tally)[known]
    total = won + lost + tied
    surplus = np.where(forward, 1, -1) * (won + tied / 2 - total * chance)
    a, b = tally.first[known], tally.second[known]
    return _SidedVotes(
        tally.expert[known], np.where(forward, a, b), np.where(forward, b, a), np.where(forward, won, lost),
        np.where(forward, lost, won), surplus, total * chance * (1 - chance),
    )  # fmt: skip


def _estimate_bias(shown: _SidedVotes, precision: SparseRows) -> PositionBias:
    """One Newton step from zero advantage, with the items (known with some `precision`) projected out."""
    votes, share = shown.for_first.sum() + shown.for_second.sum(), np.nan
    if votes > 0:
        share = shown.for_first.sum() / votes
    size = precision.height
    shift, slope = (
        np.bincount(shown.first, weights=c, minlength=size)
        - np.bincount(shown.second, weights=c, minlength=size)
        for c in (shown.weight, shown.surplus)
    )
    # only what the items cannot explain is information about the side
    of_items = solve_positive(precision, np.asarray(shift, np.float64))
    left = float(shown.weight.sum() - shift @ of_items)
    if not left > 0:
        return PositionBias(float(votes), float(share), 0.0, float("inf"))
    advantage = float(shown.surplus.sum() - slope @ of_items) / left
    return PositionBias(float(votes), float(share), advantage, left**-0.5)


def _build_precision(first: I8, second: I8, weight: F8, size: int, own: float) -> SparseRows:
    """Second derivatives by the item scores, with `own` added to each."""
    rows, columns = (
        np.concatenate((first, second, first, second)),
        np.concatenate((first, second, second, first)),
    )
    values = np.concatenate((weight, weight, -weight, -weight))
    every = np.arange(size)
    at = np.concatenate((rows, every)), np.concatenate((columns, every))
    return SparseRows.from_entries(np.concatenate((values, np.full(size, own))), *at, (size, size))


def estimate_position_bias(tally: Tally, e: Estimate) -> PositionBias:
    """Advantage of being shown first over all judges: as fitted, or by one step from scores without it."""
    if e.contests.side is not None:
        shown = _collect_sided_votes(tally, e)
        votes = float(shown.for_first.sum() + shown.for_second.sum())
        share, fitted = float(shown.for_first.sum() / max(votes, 1e-300)), e.solution.extra["advantage"][0]
        return PositionBias(votes, share, float(fitted), float(e.inverse_hessian[-1, -1]) ** 0.5)
    chance = compute_expected_shares(e, tally)
    weight = (tally.won + tally.lost + tally.tied) * chance * (1 - chance)
    met = _build_precision(
        tally.first, tally.second, weight, len(tally.items), max(e.solution.model.l2, 1e-9)
    )
    return _estimate_bias(_collect_sided_votes(tally, e), met)


def estimate_bias_by_judge(tally: Tally, e: Estimate) -> list[PositionBias]:
    """The same per judge (by code), given all votes on the items and the judge's possible own opinions.

    NaN for judges with fewer than DECIDED votes.
    """
    shown = _collect_sided_votes(tally, e)
    order = np.argsort(shown.judge, kind="stable")
    ends = np.searchsorted(shown.judge[order], np.arange(len(tally.experts) + 1))
    biases = []
    size = len(tally.experts)
    firsts, seconds = (sum_by_group(shown.judge, c, size) for c in (shown.for_first, shown.for_second))
    for judge, (begin, end) in enumerate(itertools.pairwise(ends.tolist())):
        votes = float(firsts[judge] + seconds[judge])
        if votes < DECIDED:
            share = float(firsts[judge] / votes) if votes else float("nan")
            biases.append(PositionBias(votes, share, 0.0, float("inf")))
            continue
        own = shown.take_rows(order[begin:end])
        items, at = np.unique(np.concatenate((own.first, own.second)), return_inverse=True)
        own = own._replace(first=at[: end - begin], second=at[end - begin :])
        biases.append(
            _estimate_bias(own, _build_precision(own.first, own.second, own.weight, len(items), TASTE**-2))
        )
    return biases


def find_one_sided_judges(tally: Tally, effects: Sequence[PositionBias]) -> list[OneSidedJudge]:
    """Judges who nearly always vote for the item shown first (or second), most votes first.

    Only where the items do not explain it; `effects` are those of `estimate_bias_by_judge`.
    """
    some = [code for code, effect in enumerate(effects) if effect.is_known]
    p = holm(2 * normal_cdf(-np.abs([effects[code].z for code in some])))
    flagged = [
        OneSidedJudge(tally.experts[code], effects[code].votes, effects[code].first_share)
        for code, value in zip(some, p.tolist(), strict=True)
        if value < RARE and max(effects[code].first_share, 1 - effects[code].first_share) >= ONE_SIDED
    ]
    return sorted(flagged, key=lambda judge: -judge.votes)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of the judges with the most votes on shared comparisons (same query, same two items)."""

    judges: list[Id]
    codes: I8  # codes of these judges among the experts
    shared: F8  # shared comparisons
    agree: F8  # share of them with the same answer; NaN if none is shared
    correlation: F8  # correlation of residuals; 0 if not significant, 1 on the diagonal
    effective: float  # effective number of independent judges: n^2 over the sum of all correlations
    copies: list[list[Id]]  # groups with nearly identical residuals

    def compute_weights(self, experts: int) -> F8:
        """Weights by expert under which correlated judges share one vote; 1 for judges not compared."""
        weights = np.ones(experts)
        weights[self.codes] = 1 / self.correlation.sum(axis=1)
        return weights

    def group_experts(self, experts: int) -> I8:
        """A number by expert, equal for correlated judges."""
        label = graphs.label_matrix_components(self.correlation > 0)
        found = np.arange(len(self.codes), len(self.codes) + experts)
        found[self.codes] = label
        return found


def compute_agreement(tally: Tally, e: Estimate) -> Agreement | None:
    """Compare the judges; None if no two of them share SHARED comparisons.

    Judges who are independently right have independent residuals; copies have correlated residuals. The
    effective number is that of Kish's design effect.
    """
    if tally.listed and len(tally.queries) < SHARED:
        return None  # contests of one list are correlated and reveal little about copies
    codes = np.sort(np.argsort(-tally.count_by_expert(), kind="stable")[:MOST_JUDGES])
    # each judge's answer to each question (same query, same two items), whichever side the items were on
    row = np.full(len(tally.experts), -1)
    row[codes] = np.arange(len(codes))
    kept = np.flatnonzero(row[tally.expert] >= 0)
    (query, _, _), question = number_rows(tally.query[kept], tally.first[kept], tally.second[kept])
    columns = (tally.won + tally.tied / 2, sum(tally.sums), compute_expected_shares(e, tally))
    (judge, question), (half, total, wanted, rows) = sum_rows(
        (row[tally.expert[kept]], question), (*(np.asarray(c)[kept] for c in columns), np.ones(len(kept)))
    )
    share = half / total
    off, ones = share - wanted / rows, np.ones(len(share))
    order = np.lexsort((judge, question))

    def multiply_judges(left: F8 | B1, right: F8 | None = None) -> F8:
        """For every pair of judges the sum over shared questions of one value times the other."""
        entries = np.asarray(left, np.float64)[order], question[order], judge[order]
        table = SparseRows.from_entries(*entries, (len(query), len(codes)))
        return table.multiply_columns(right=None if right is None else right[order])

    shared = multiply_judges(ones)
    if len(codes) < 2 or np.triu(shared, 1).max() < SHARED:
        return None
    same = (share > 0.5, share == 0.5, share < 0.5)
    agree = np.asarray(sum(map(multiply_judges, same)), np.float64)
    together, own = multiply_judges(off), multiply_judges(off**2, ones)
    # each judge's residuals are normalized over the questions that both answered
    size = np.sqrt(own * own.T)
    raw = np.divide(together, size, out=np.zeros_like(size), where=size > 0)
    sure = (shared >= SHARED) & (raw * np.sqrt(np.maximum(shared, 1)) > SURE) & (raw > ALIKE)
    correlation = np.where(sure, np.minimum(raw, 1.0), 0.0)
    np.fill_diagonal(correlation, 1.0)
    agree = np.divide(agree, shared, out=np.full_like(agree, np.nan), where=shared > 0)
    judges, worth = [tally.experts[int(c)] for c in codes], len(codes) ** 2 / float(correlation.sum())
    copies: dict[int, list[Id]] = {}
    for name, group in zip(judges, graphs.label_matrix_components(correlation >= COPY).tolist(), strict=True):
        copies.setdefault(group, []).append(name)
    groups = sorted((g for g in copies.values() if len(g) > 1), key=len, reverse=True)
    return Agreement(judges, codes, shared, agree, correlation, worth, groups)
