"""How far experts agree, over many queries: whose order and whose choice of items the other experts confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.graphs import label_matrix_components

__all__ = [
    "ExpertCorrelations",
    "OrderEvidence",
    "QueryLists",
    "compute_expert_correlations",
    "compute_order_shares",
    "estimate_expert_quality",
    "find_copies",
    "measure_order_evidence",
    "measure_similarity",
    "pull_to_mean",
]

COPY = 0.98  # experts whose lists correlate more than this are copies of one expert
COPIED_QUERIES = 3  # that a majority of equal experts must share before they are copies
FEWEST_COMPARED = 10  # rows of an expert; lists of fewer may be equal by chance
UNLIKE = 2  # power of the correlation that keeps experts from being evidence, where unlike ones are asked
NEAR_COPIES = 16  # power of the similarity that keeps experts from being evidence
MOST_COMMON = 0.98  # correlation with unlike experts
STEPS = 2  # of the iteration between quality and consensus; more only make the weights more extreme
TOP, TAIL = 0.2, 0.5  # the upper fifth and the lower half of a list
ERRORS = 2.0  # standard errors by which an order must be worse than others before it counts for less
FEWEST_JUDGED = 5  # experts whose orders can be judged by the items of the others


class QueryLists(NamedTuple):
    """The lists of one query: experts, and the ranks of its items by list, 0 where a list lacks an item."""

    expert: npt.NDArray[np.integer]
    rank: F8  # lists x items


class ExpertCorrelations(NamedTuple):
    """How the lists of experts correlate with those of a panel of them, and in every query."""

    mean: F8  # experts x panel, over the queries that both answer
    shared: I8  # number of these queries
    items: I8  # by expert: items in its queries
    rows: I8  # by expert: rows of its lists
    length: F8  # by expert: mean length of its lists
    by_query: F8  # mean over the pairs of lists of a query; NaN with fewer than two that tell items apart


class OrderEvidence(NamedTuple):
    """By expert: how the order of its lists agrees with the number of other experts that list an item."""

    agreement: F8  # correlation of place and support within its lists, from -1 (reversed) to 1
    error: F8  # standard error of that, were the order random; infinite without evidence
    query: I8  # by list; the number of its query
    expert: I8  # by list
    support: F8  # lists x (upper fifth, lower half, items that it lacks): sums of support
    items: F8  # numbers of items in these sums


def compute_expert_correlations(
    queries: Iterable[QueryLists], points: Callable[[F8], F8], order: F8, panel: I8
) -> ExpertCorrelations:
    """Correlations of lists as vectors over all items of a query: the points of a rank, 0 for an item not listed.

    `order` is by expert the share of its order that counts; for the rest, all items of a list have its mean points.
    `panel` are the experts with whom every expert is compared.
    """
    experts = len(order)
    total, shared = np.zeros((experts, len(panel))), np.zeros((experts, len(panel)), np.int64)
    place = np.full(experts, -1)
    place[panel] = np.arange(len(panel))
    items, by_query = np.zeros(experts, np.int64), []
    rows, answered = np.zeros(experts, np.int64), np.zeros(experts)
    for expert, rank in queries:
        listed: B1 = rank > 0
        size = listed.sum(axis=1)
        rows[expert] += size
        answered[expert] += 1
        value = np.where(listed, points(np.maximum(rank, 1.0)), 0.0)
        if (order[expert] < 1.0).any():
            flat = value.sum(axis=1, keepdims=True) / np.maximum(size, 1)[:, None]
            value = np.where(listed, flat + order[expert, None] * (value - flat), 0.0)
        centered = value - value.mean(axis=1, keepdims=True)
        norm = np.sqrt((centered * centered).sum(axis=1))
        # a list that gives all items the same points has no information on their order
        varies = norm > 1e-9 * value.max(axis=1)
        unit = centered[varies] / norm[varies, None]
        who = expert[varies]
        inside = place[who] >= 0
        block = np.ix_(who, place[who[inside]])
        total[block] += unit @ (unit if inside.all() else unit[inside]).T
        shared[block] += 1
        items[who] += rank.shape[1]
        count, joint = len(who), unit.sum(axis=0)
        by_query.append((joint @ joint - count) / (count * (count - 1)) if count > 1 else np.nan)
    mean, length = total / np.maximum(shared, 1), rows / np.maximum(answered, 1)
    return ExpertCorrelations(mean, shared, items, rows, length, np.array(by_query))


def find_copies(correlations: ExpertCorrelations, panel: I8) -> I8:
    """Number experts so that copies of one expert have the same number; those outside the panel copy one inside.

    More than half of the experts are a majority of one opinion rather than copies, unless they share three queries;
    and experts with fewer than ten rows may agree by chance.
    """
    shared = correlations.shared
    equal = (correlations.mean > COPY) & (shared > 0) & _are_comparable(correlations.rows, panel)
    if equal[panel].sum(axis=1).max(initial=0) > len(panel) / 2:
        equal &= shared >= COPIED_QUERIES
    number = np.arange(len(equal), dtype=np.int64) + len(panel)
    number[panel] = label_matrix_components(equal[panel])
    others = np.setdiff1d(np.flatnonzero(equal.any(axis=1)), panel)
    if len(others):
        number[others] = number[panel][equal[others].argmax(axis=1)]
    return np.unique(number, return_inverse=True)[1]


def measure_similarity(correlations: ExpertCorrelations, group: I8, panel: I8) -> F8:
    """How far an expert is a copy of another one, from 0 to 1; 1 in the same `group`.

    Good experts correlate since they are good. Similar ones correlate beyond what both have in common with the experts
    unlike them: the square of the partial correlation. Two standard errors are taken off the correlation, so that
    few items do not make experts similar.
    """
    correlation, _, items, rows, length, _ = correlations
    error = 1.0 / np.sqrt(np.maximum(items - 1.0, 1.0))
    doubt = ERRORS * (1.0 - np.minimum(correlation**2, 1.0)) * np.maximum(error[:, None], error[panel])
    certain = np.where(_are_comparable(rows, panel), np.clip(correlation - doubt, 0.0, 1.0), 0.0)
    same = group[:, None] == group[panel]
    alike = np.where(same, 1.0, certain**UNLIKE)
    common = np.clip(_correlate_with_others(correlation, 1.0 - alike, alike, length, panel), 0.0, MOST_COMMON)
    rest = np.sqrt(1.0 - common**2)
    partial = (certain - np.outer(common, common[panel])) / np.outer(rest, rest[panel])
    return np.where(same, 1.0, np.clip(partial, 0.0, 1.0) ** 2)


def _are_comparable(rows: I8, panel: I8) -> B1:
    return (rows[:, None] >= FEWEST_COMPARED) & (rows[panel] >= FEWEST_COMPARED)


def _correlate_with_others(correlation: F8, evidence: F8, similarity: F8, length: F8, panel: I8) -> F8:
    """Correlation of every expert with the panel's consensus, in which `evidence` says who counts for whom.

    The first consensus weighs experts by the length of their lists: every item that they rank counts once. Then they
    are weighted by their own correlation, and n experts have the weight of one as far as they are similar.
    """
    within = correlation[panel]
    np.fill_diagonal(within, 1.0)
    weight, quality = length[panel], np.zeros(len(correlation))
    redundancy = np.maximum(similarity[panel].sum(axis=1), 1.0)
    for _ in range(STEPS):
        by = evidence * weight
        variance = ((by @ within) * by).sum(axis=1)
        # where only copies have a weight there is nothing to correlate with, and the last value stays
        known = variance > 1e-9 * weight.sum() ** 2
        found = (by * correlation).sum(axis=1) / np.sqrt(np.where(known, variance, 1.0))
        quality = np.clip(np.where(known, found, quality), -1.0, 1.0)
        weight = np.maximum(quality[panel], 0.0) / redundancy
        if (weight > 0).sum() < 2:
            break  # one expert is left, whom nobody confirms: the others would be judged by it alone
    return quality


def estimate_expert_quality(correlation: F8, similarity: F8, items: I8, length: F8, panel: I8) -> F8:
    """Correlation of every expert with the consensus of the panel, whose members are weighted by their own quality.

    Copies are no evidence for each other, near copies little. Estimates from few `items` are pulled to the mean, so
    that without evidence all experts are equal. Below 0: reversed.
    """
    quality = _correlate_with_others(correlation, 1.0 - similarity**NEAR_COPIES, similarity, length, panel)
    # the variance of a correlation over n items that are not associated is 1 / (n - 1)
    return pull_to_mean(quality, 1.0 / np.maximum(items - 1.0, 1.0), (items > 1).astype(np.float64))


def pull_to_mean(value: F8, error: F8, weight: F8) -> F8:
    """Values pulled to their mean by what their sampling variance, `error`, is of their spread (empirical Bayes).

    Those of weight 0 say nothing: they get the mean.

    >>> pull_to_mean(np.array([0.0, 1.0, 9.0]), np.array([0.125, 0.125, 0.125]), np.array([1.0, 1.0, 0.0])).tolist()
    [0.25, 0.75, 0.5]
    """
    active = weight > 0
    if not active.any():
        return np.zeros(len(value))
    mean = float(np.average(value[active], weights=weight[active]))
    variance = np.average((value[active] - mean) ** 2 - error[active], weights=weight[active])
    spread = max(float(variance), 0.0)
    return np.where(active, mean + (value - mean) * spread / (spread + error), mean)


def measure_order_evidence(queries: Iterable[QueryLists], weight: F8) -> OrderEvidence:
    """How the place of an item in a list goes with its support: the share of the other experts' rows that list it.

    Whoever reverses or shuffles a list keeps its items, so no order of other lists moves the support. An expert counts
    by `weight` x length of its list. Parts of lists leave items out that no other expert with a weight lists: unlisted
    ones are only known where somebody lists them, and all parts have to be counted alike.
    """
    experts = len(weight)
    product, degrees = np.zeros(experts), np.zeros(experts)
    query_of_list: list[I8] = [np.zeros(0, np.int64)]
    expert_of_list: list[I8] = [np.zeros(0, np.int64)]
    sums, counts = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for query, (expert, rank) in enumerate(queries):
        listed: B1 = rank > 0
        size = listed.sum(axis=1)
        by_list = weight[expert] * size
        votes = by_list @ listed
        rest = by_list.sum() - by_list
        others = rest > 1e-12
        support = (votes - listed * by_list[:, None]) / np.where(others, rest, 1.0)[:, None]
        length = np.maximum(size, 1)[:, None]
        place = np.where(listed, rank - rank.sum(axis=1, keepdims=True) / length, 0.0)
        excess = np.where(listed, support - (support * listed).sum(axis=1, keepdims=True) / length, 0.0)
        scale = np.sqrt((place * place).sum(axis=1) * (excess * excess).sum(axis=1))
        varies = others & (scale > 1e-9)
        correlation = -(place * excess).sum(axis=1)[varies] / scale[varies]
        # a correlation over n rows counts n - 1 times, the inverse of its variance under a random order
        product[expert[varies]] += (size[varies] - 1) * correlation
        degrees[expert[varies]] += size[varies] - 1
        known = support > 1e-12
        top, tail = rank <= np.maximum(TOP * length, 1), rank > TAIL * length
        parts = [part & known for part in (listed & top, listed & tail & ~top, ~listed)]
        sums.append(np.stack([(support * part).sum(axis=1) for part in parts], axis=1))
        counts.append(np.stack([part.sum(axis=1) for part in parts], axis=1))
        query_of_list.append(np.full(len(expert), query))
        expert_of_list.append(np.asarray(expert, np.int64))
    # the correlation of n numbers with a random order of them has the variance 1 / (n - 1)
    error = np.where(degrees > 0, 1.0 / np.sqrt(np.maximum(degrees, 1.0)), np.inf)
    by_list = (np.concatenate(lists) for lists in (query_of_list, expert_of_list, sums, counts))
    return OrderEvidence(product / np.maximum(degrees, 1.0), error, *by_list)


def compute_order_shares(agreement: F8, error: F8) -> F8:
    """The share of every expert's order that counts: its agreement as a share of that of experts known to be right.

    An expert has the benefit of the doubt: two standard errors are added to its agreement, so that few and short
    lists count in full. Without an expert whose agreement is above chance, all orders do; and so do those of fewer
    than five experts: the items of so few others say as much about what the others can find as about the order.
    """
    known = agreement > ERRORS * error
    if len(agreement) < FEWEST_JUDGED or not known.any():
        return np.ones(len(agreement))
    typical = float(np.average(agreement[known], weights=error[known] ** -2))
    return np.clip((agreement + ERRORS * error) / typical, 0.0, 1.0)
