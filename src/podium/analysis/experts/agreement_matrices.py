"""Agreement of all pairs of experts: tau-b and RBO of their lists, or the share of agreeing pairs of votes.

Each expert is compared with all earlier ones in one pass, to avoid one call per pair of experts or per query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.contest_counts import orient_votes
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import number_rows, sum_by_group, sum_rows
from podium.metrics.agreement import compute_rbos, compute_taus

__all__ = [
    "AgreementMatrices",
    "ExpertListRows",
    "compare_lists",
    "compare_votes",
    "effective_number",
    "sort_list_rows",
]

PERSISTENCE = 0.9  # p of RBO: probability that a reader continues to the next item


class AgreementMatrices(NamedTuple):
    """One row and one column per expert; NaN where two experts share nothing."""

    agreement: F8
    overlap: F8 | None
    shared: I8  # queries that both answer
    evidence: F8  # pairs of items that the agreement rests on


class ExpertListRows(NamedTuple):
    """All list entries, expert by expert, query by query, best first."""

    slot: I8
    score: F8
    place: I8  # from 1; equal scores in id order
    list: I8  # of each row
    expert: I8  # of each list
    query: I8  # of each list
    length: I8  # of each list


def sort_list_rows(preferences: Preferences) -> ExpertListRows:
    """Non-empty lists; scores take precedence over ranks, as everywhere in evaluation."""
    lists = preferences.lists
    filled = np.flatnonzero(lists.lengths > 0)
    by_expert = filled[np.lexsort((lists.query_of_list[filled], lists.expert[filled]))]
    number = np.full(len(lists), -1, np.int64)
    number[by_expert] = np.arange(len(by_expert))
    mine = number[lists.list_of_row]
    scores = lists.fill_scores(preferences.index.sizes)
    order = np.lexsort((lists.item, -scores, mine))
    length = lists.lengths[by_expert]
    place = np.arange(len(order)) - np.repeat(np.cumsum(length) - length, length) + 1
    slot = lists.item[order].astype(np.int64)
    expert = lists.expert[by_expert].astype(np.int64)
    return ExpertListRows(
        slot, scores[order], place, mine[order], expert, lists.query_of_list[by_expert], length
    )


def compare_lists(preferences: Preferences, rows: ExpertListRows) -> AgreementMatrices:
    """Means over the queries both answer (tau: with two or more shared items, not all tied by either)."""
    experts = len(preferences.experts)
    agreement, overlap = np.full((experts, experts), np.nan), np.full((experts, experts), np.nan)
    shared, evidence = np.zeros((experts, experts), np.int64), np.zeros((experts, experts))
    at, list_of = np.full(len(preferences.index.items), -1, np.int64), np.full(len(preferences), -1, np.int64)
    first_list = np.searchsorted(rows.expert, np.arange(experts + 1))
    first_row = segments.offsets(rows.length)[first_list]
    for b in range(experts):
        mine, lists = slice(first_row[b], first_row[b + 1]), slice(first_list[b], first_list[b + 1])
        at[rows.slot[mine]] = np.arange(mine.start, mine.stop)
        list_of[rows.query[lists]] = np.arange(lists.start, lists.stop)
        tau, rbo, count, pairs = _compare_with_earlier(
            rows, at, list_of, int(first_row[b]), int(first_list[b]), b
        )
        at[rows.slot[mine]] = list_of[rows.query[lists]] = -1
        for matrix, values in ((agreement, tau), (overlap, rbo), (shared, count), (evidence, pairs)):
            matrix[b, :b] = matrix[:b, b] = values
        shared[b, b] = len(range(*lists.indices(len(rows.expert))))
        agreement[b, b] = overlap[b, b] = 1.0 if shared[b, b] else np.nan
    return AgreementMatrices(agreement, overlap, shared, evidence)


def _compare_with_earlier(
    rows: ExpertListRows, at: I8, list_of: I8, before: int, lists: int, experts: int
) -> tuple[F8, F8, I8, F8]:
    """Compare one expert (to whose rows `at` and `list_of` point) with all earlier ones."""
    other = list_of[rows.query[:lists]]
    both = np.flatnonzero(other >= 0)  # earlier experts' lists on queries that this expert answers
    pair = np.full(lists, -1, np.int64)
    pair[both] = np.arange(len(both))
    hit = at[rows.slot[:before]]
    mine = np.flatnonzero(hit >= 0)
    theirs, segment = hit[mine], pair[rows.list[mine]]
    starts = np.searchsorted(segment, np.arange(len(both) + 1))
    tau = compute_taus(starts, rows.score[mine], rows.score[theirs])
    rbo = compute_rbos(
        segment,
        rows.place[mine],
        rows.place[theirs],
        rows.length[both],
        rows.length[other[both]],
        PERSISTENCE,
    )
    expert, common = rows.expert[both], np.diff(starts)
    pairs = np.where(np.isnan(tau), 0.0, common * (common - 1) / 2)
    return (
        _mean_by_group(expert, tau, experts),
        _mean_by_group(expert, rbo, experts),
        np.bincount(expert, minlength=experts),
        sum_by_group(expert, pairs, experts),
    )


def _mean_by_group(group: I8, values: F8, groups: int) -> F8:
    known = ~np.isnan(values)
    count = np.bincount(group[known], minlength=groups)
    total = np.bincount(group[known], weights=values[known], minlength=groups)
    means: F8 = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    return means


def compare_votes(preferences: Preferences) -> AgreementMatrices:
    """Share of agreement among the pairs that both experts decide; votes on a pair are summed first."""
    votes, experts = preferences.comparisons, len(preferences.experts)
    oriented = orient_votes(votes.winner, votes.loser, votes.tie, votes.weight)
    pair = number_rows(oriented.first, oriented.second)[1]
    (expert, pair), (won, lost) = sum_rows((votes.expert, pair), (oriented.won, oriented.lost))
    # the pairs that an expert decides, sorted by expert
    side = np.sign(won - lost)
    expert, pair, side = (column[side != 0] for column in (expert, pair, side))
    agreement, evidence = np.full((experts, experts), np.nan), np.zeros((experts, experts))
    answered = np.zeros((experts, len(preferences)), np.float32)  # float32 counts are exact and use BLAS
    answered[votes.expert, votes.query_of_row] = 1.0
    shared = (answered @ answered.T).astype(np.int64)
    first = np.searchsorted(expert, np.arange(experts + 1))
    voted = np.zeros(int(pair.max(initial=-1)) + 1)
    for b in range(experts):
        mine = slice(first[b], first[b + 1])
        voted[pair[mine]] = side[mine]
        theirs = voted[pair[: first[b]]]
        both = theirs != 0
        same = (theirs == side[: first[b]])[both].astype(np.float64)
        agreement[b, :b] = agreement[:b, b] = _mean_by_group(expert[: first[b]][both], same, b)
        evidence[b, :b] = evidence[:b, b] = np.bincount(expert[: first[b]][both], minlength=b)
        agreement[b, b] = 1.0 if first[b + 1] > first[b] else np.nan
        voted[pair[mine]] = 0.0
    return AgreementMatrices(agreement, None, shared, evidence)


def effective_number(agreement: F8, active: B1) -> float:
    """Effective number of experts: (sum of eigenvalues)^2 / (sum of their squares) of a correlation matrix.

    It is 1 if all experts are copies. Pairs that share nothing count as independent.

    >>> effective_number(np.ones((3, 3)), np.ones(3, np.bool_)), effective_number(np.eye(3), np.ones(3, np.bool_))
    (1.0, 3.0)
    """
    known = np.nan_to_num(agreement[np.ix_(active, active)], nan=0.0)
    np.fill_diagonal(known, 1.0)
    if not len(known):
        return 0.0
    values = np.maximum(np.linalg.eigvalsh(known), 0.0)
    return round(float(values.sum() ** 2 / (values**2).sum()), 9)
