"""How far experts agree, over many queries: correlations of their lists, copies, and the quality that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.graphs import label_matrix_components

__all__ = [
    "ExpertCorrelations",
    "QueryLists",
    "RankEvidence",
    "compute_expert_correlations",
    "estimate_expert_quality",
    "find_copies",
    "measure_rank_evidence",
]

COPY = 0.98  # experts whose lists correlate more than this are copies of one expert
STEPS = 3  # of the iteration between quality and consensus; its order is stable after two
TOP, TAIL = 0.2, 0.5  # the upper fifth and the lower half of a list


class QueryLists(NamedTuple):
    """The lists of one query: experts, and the ranks of its items by list, 0 where a list lacks an item."""

    expert: npt.NDArray[np.integer]
    rank: F8  # lists x items


class ExpertCorrelations(NamedTuple):
    """How the lists of experts correlate, by pair of experts and by query."""

    mean: F8  # by pair of experts, over the queries that both answer
    shared: I8  # number of these queries
    items: I8  # by expert: items in its queries
    by_query: F8  # mean over the pairs of lists of a query; NaN with fewer than two that tell items apart


class RankEvidence(NamedTuple):
    """Share of the other experts that list an item, by its place in a list; NaN without such items."""

    top: float
    tail: float
    unlisted: float


def compute_expert_correlations(
    queries: Iterable[QueryLists], points: Callable[[F8], F8], experts: int
) -> ExpertCorrelations:
    """Correlations of lists as vectors over all items of a query: the points of a rank, 0 for an item not listed."""
    total, shared = np.zeros((experts, experts)), np.zeros((experts, experts), np.int64)
    items, by_query = np.zeros(experts, np.int64), []
    for expert, rank in queries:
        value = np.where(rank > 0, points(np.maximum(rank, 1.0)), 0.0)
        centered = value - value.mean(axis=1, keepdims=True)
        length = np.sqrt((centered * centered).sum(axis=1))
        # a list that gives all items the same points says nothing about their order
        varies = length > 1e-9 * value.max(axis=1)
        unit = centered[varies] / length[varies, None]
        who = expert[varies]
        block = np.ix_(who, who)
        total[block] += unit @ unit.T
        shared[block] += 1
        items[who] += rank.shape[1]
        count, joint = len(who), unit.sum(axis=0)
        by_query.append((joint @ joint - count) / (count * (count - 1)) if count > 1 else np.nan)
    return ExpertCorrelations(total / np.maximum(shared, 1), shared, items, np.array(by_query))


def find_copies(correlation: F8, shared: I8) -> I8:
    """Number experts so that copies of one expert have the same number."""
    return label_matrix_components((correlation > COPY) & (shared > 0))


def estimate_expert_quality(correlation: F8, group: I8, items: I8) -> F8:
    """Correlation of every expert with the consensus of the others, each weighted by its own quality.

    Copies of an expert (the same `group`) are left out of the consensus that it is compared with, and together
    have the weight of one. Estimates from few `items` are pulled to the mean by what their sampling error is
    of their spread (empirical Bayes), so that without evidence all experts are equal. Below 0: reversed.
    """
    share = 1.0 / np.bincount(group)[group]
    same = group[:, None] == group
    weight, quality = share, np.zeros(len(group))
    for _ in range(STEPS):
        inner, own = correlation @ weight, (correlation * same) @ weight
        # variance of the sum over all experts outside the group, from that over all experts
        variance = weight @ inner - 2.0 * (same @ (weight * inner)) + same @ (weight * own)
        quality = (inner - own) / np.sqrt(np.maximum(variance, 1e-12))
        quality = np.where(variance > 1e-9, np.clip(quality, -1.0, 1.0), 0.0)
        if not (quality > 0).any():
            break
        weight = np.maximum(quality, 0.0) * share
    active = items > 1
    error = 1.0 / np.maximum(items - 1.0, 1.0)
    mean = float(quality[active].mean()) if active.any() else 0.0
    spread = max(float((quality[active].var() - error[active].mean()) if active.any() else 0.0), 0.0)
    return np.where(active, mean + (quality - mean) * spread / (spread + error), mean)


def measure_rank_evidence(queries: Iterable[QueryLists], weight: F8) -> RankEvidence:
    """How well a place in a list predicts that other experts list the item, over experts by `weight`.

    Items that no expert with a weight lists are left out: they say nothing about the experts that count.
    """
    sums, counts = np.zeros(3), np.zeros(3)
    for expert, rank in queries:
        by_list = weight[expert]
        listed: B1 = rank > 0
        votes = by_list @ listed
        rest = np.maximum(by_list.sum() - by_list, 1e-300)
        support = (votes - listed * by_list[:, None]) / rest[:, None]
        length = listed.sum(axis=1, keepdims=True)
        part = np.where(rank <= np.maximum(TOP * length, 1), 0, np.where(rank > TAIL * length, 1, -1))
        part = np.where(listed, part, 2)
        terms = np.where((votes > 0) & (rest > 1e-12)[:, None], by_list[:, None], 0.0)
        for which in range(3):
            sums[which] += (terms * support)[part == which].sum()
            counts[which] += terms[part == which].sum()
    return RankEvidence(*np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), np.nan).tolist())
