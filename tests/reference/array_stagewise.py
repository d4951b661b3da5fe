"""Rankings filled stage by stage, as numpy expressions of one query."""

from __future__ import annotations

import numpy as np

from podium.kernels.majority import score_blocks
from podium.kernels.stagewise_model import NEAR, compute_footrule_distances


def compute_stage_scores(places, starts, theta, distance):
    """Scores by slot of the ranking that takes the cheapest item at each stage."""
    scores = np.zeros(len(places))
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        scores[a:b] = _score_query(places[a:b], theta, distance == "kendall")
    return scores


def _score_query(places, theta, pairs):
    """One query, for small inputs."""
    table = _compute_pair_costs(places, theta) if pairs else _compute_gap_costs(places, theta)
    size, near = len(places), NEAR * len(places) * float(np.abs(theta).sum())
    left, blocks, above = np.arange(size), [], 0
    cost = table.sum(axis=0)
    while len(left):
        cost = cost if pairs else table[above]
        taken = left[cost[left] <= cost[left].min() + near]
        while pairs and len(taken) > 1:
            inside = table[np.ix_(taken, taken)].sum(axis=0)
            best = taken[inside <= inside.min() + near]
            if len(best) == len(taken):
                break
            taken = best
        blocks.append(taken)
        above += len(taken)
        left = np.setdiff1d(left, taken, assume_unique=True)
        if pairs:
            for item in taken.tolist():
                cost -= table[item]
    return score_blocks(blocks, size)


def _compute_pair_costs(places, theta):
    """Cost of x while y is left, at (y, x): the total theta of the experts that put y above x, ties half."""
    table = np.zeros((len(places), len(places)))
    for k in range(len(theta)):
        place = places[:, k]
        table += theta[k] * ((place[:, None] < place) + 0.5 * (place[:, None] == place))
    np.fill_diagonal(table, 0.0)
    return table


def _compute_gap_costs(places, theta):
    """Cost of x at each stage, at (stage, x)."""
    size = len(places)
    table = np.zeros((size, size))
    for stage in range(1, size + 1):
        for k in range(len(theta)):
            table[stage - 1] += theta[k] * compute_footrule_distances(places[:, k], stage, size)
    return table
