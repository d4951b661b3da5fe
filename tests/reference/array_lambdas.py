"""LambdaRank and expected metrics as numpy expressions of one query at a time."""

from __future__ import annotations

import itertools

import numpy as np

from podium.kernels import segments
from podium.kernels.lambdas import NEAR, PAIRS, update_weights
from podium.kernels.ranking_expectations import compute_expected_metric, sum_by_index, weigh_pairs
from podium.kernels.ranking_measures import PRECISION, SUM

STEEP = 600.0  # score differences are clipped here to keep exponentials finite


def compute_lambdas(scores, starts, target):
    """The gradient of the objective with respect to every score."""
    out = np.zeros(len(scores))
    for q in np.flatnonzero(target.scale != 0):
        rows = slice(int(starts[q]), int(starts[q + 1]))
        out[rows] = _compute_query_lambdas(
            scores[rows], target.select_queries(np.arange(rows.start, rows.stop), np.array([q]))
        )
    return out


def train_linear_pass(values, starts, target, visit, batch, optimizer):
    """Visit queries in the given order, with a step after every `batch`."""
    for first in range(0, len(visit), batch):
        gradient = np.zeros(values.shape[1])
        chosen = visit[first : first + batch]
        for q in chosen:
            rows = slice(int(starts[q]), int(starts[q + 1]))
            part = target.select_queries(np.arange(rows.start, rows.stop), np.array([q]))
            slope = _compute_query_lambdas((values[rows] * optimizer.weights).sum(axis=1), part)
            gradient += (values[rows] * slope[:, None]).sum(axis=0)
        update_weights(optimizer, gradient / len(chosen))


def _compute_query_lambdas(scores, target):
    if len(scores) == 0:
        return scores
    order, group = sort_rows(scores, target.level)
    change = compute_swap_changes(order, target) * target.scale[0]
    if target.weight is not None:
        change = change * (target.weight[:, None] * target.weight)
    e = np.exp(np.maximum(scores - scores.max(initial=-np.inf), -STEEP))
    better = target.level[:, None] > target.level
    pull = np.where(better, change * (e / (e[:, None] + e)), 0.0)
    slope = pull.sum(axis=0) - pull.sum(axis=1)
    shared = np.bincount(group, weights=slope[order]) / np.bincount(group)
    out = np.empty(len(scores))
    out[order] = shared[group]
    return out


def sample_subsets(starts, level, visit, size, uniform):
    """At most `size` rows of each visited query, with at least one of each level."""
    out = np.full((len(visit), size), -1, np.int64)
    for k, q in enumerate(visit.tolist()):
        chosen = _sample_subset(level[starts[q] : starts[q + 1]].tolist(), size, uniform[k].tolist())
        out[k, : len(chosen)] = [int(starts[q]) + i for i in chosen]
    return out


def _sample_subset(level, size, uniform):
    n = len(level)
    if n <= size:
        return list(range(n))
    begin = [i for i in range(n) if i == 0 or level[i] != level[i - 1]]
    runs = list(itertools.pairwise([*begin, n]))
    if len(runs) > size:
        for k in range(size):
            other = k + int(uniform[size + k] * (len(runs) - k))
            runs[k], runs[other] = runs[other], runs[k]
    chosen = [a + int(u * (b - a)) for (a, b), u in zip(runs[:size], uniform, strict=False)]
    taken = set(chosen)
    rest = [i for i in range(n) if i not in taken]
    for k in range(len(chosen), size):
        done = k - len(taken)
        other = done + int(uniform[k] * (len(rest) - done))
        rest[done], rest[other] = rest[other], rest[done]
        chosen.append(rest[done])
    return sorted(chosen)


def train_crf_pass(potentials, target, weight, visit, rows, batch, optimizer):
    """Visit queries, each through its sampled rows, with a step after every `batch`; the mean expected loss."""
    lost = 0.0
    for first in range(0, len(visit), batch):
        chosen = slice(first, min(first + batch, len(visit)))
        loss, gradient = _compute_batch_gradient(
            potentials, target, weight, visit[chosen], rows[chosen], optimizer.weights
        )
        update_weights(optimizer, gradient / (chosen.stop - chosen.start))
        lost += loss
    return lost / max(float(weight[visit].sum()), 1e-300)


def _compute_batch_gradient(potentials, target, weight, visit, rows, flat):
    """The weighted expected loss of some visits, and its gradient."""
    width = potentials.values.shape[1]
    weights, gradient, lost = flat.reshape(-1, width), np.zeros((len(flat) // width, width)), 0.0
    counts = (rows >= 0).sum(axis=1)
    for n in np.unique(counts).tolist():
        which = np.flatnonzero(counts == n)
        here = rows[which, :n]
        offsets, entries = segments.gather_segments(potentials.starts, here.ravel())
        owner = np.repeat(np.arange(here.size), np.diff(offsets))
        values, group = potentials.values[entries], potentials.group[entries]
        omega = sum_by_index(owner, (values * weights[group]).sum(axis=1), here.size)
        walk = (target.kind, target.discount, target.limit[visit[which]])
        pairs = weigh_pairs(target, here) if target.kind == PAIRS else None
        mean, slope = compute_expected_metric(omega.reshape(here.shape), target.gain[here], *walk, pairs)
        much = weight[visit[which]]
        lost += float((much * (1.0 - mean)).sum())
        slope = -(much[:, None] * slope).ravel()
        np.add.at(gradient, group, values * slope[owner][:, None])
    return lost, gradient.ravel()


def sort_rows(scores, level):
    """Rows from the top, worst grade first where scores are nearly equal; and the tie group of each place."""
    order = np.argsort(-scores, kind="stable")
    near = NEAR * float(np.abs(scores).max(initial=0.0))
    run = np.concatenate(([0], np.cumsum(-np.diff(scores[order]) > near)))
    inside = np.lexsort((order, level[order], run))
    order, grade = order[inside], level[order[inside]]
    group = np.concatenate(([0], np.cumsum((np.diff(run) != 0) | (np.diff(grade) != 0))))
    return order, group


def compute_swap_changes(order, target):
    """|change when rows i and j are swapped| for all pairs of rows of one query, not scaled."""
    n = len(order)
    if target.kind == PAIRS:
        return np.ones((n, n))
    counted = np.arange(n) < target.limit[0]
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    if target.kind == SUM:
        d = np.where(counted, _pad_discount(target.discount, n), 0.0)[place]
        return np.asarray(np.abs((target.gain[:, None] - target.gain) * (d[:, None] - d)))
    by_place = _precision_changes if target.kind == PRECISION else _cascade_changes
    changes = by_place(target.gain[order], _pad_discount(target.discount, n), counted)
    return np.asarray(np.abs(changes + changes.T)[np.ix_(place, place)])


def _pad_discount(discount, n):
    return np.concatenate((discount[:n], np.ones(max(0, n - len(discount)))))


def _precision_changes(gain, discount, counted):
    """Average precision, for places a < b; gains are 0 or 1."""
    inverse = np.where(counted, 1.0 / discount, 0.0)
    hits, between = np.cumsum(gain), np.cumsum(gain * inverse)
    changes = np.zeros((len(gain), len(gain)))
    for a in range(len(gain)):
        b = np.arange(a + 1, len(gain))
        inner = between[b] - gain[b] * inverse[b] - between[a]
        down = hits[b] * inverse[b] - hits[a] * inverse[a] - inner
        up = (hits[a] + 1) * inverse[a] + inner - hits[b] * inverse[b]
        changes[a, b] = np.where(gain[a] > gain[b], down, np.where(gain[a] < gain[b], up, 0.0))
    return changes


def _cascade_changes(gain, discount, counted):
    """A cascade, for places a < b; the places after b do not change."""
    d = np.where(counted, discount, 0.0)
    n = len(gain)
    changes = np.zeros((n, n))
    before = np.concatenate(([1.0], np.cumprod(1.0 - gain)))
    for a in range(n - 1):
        b = slice(a + 1, n)
        # value of the places between a and each b, and the probability of passing them
        through = np.cumprod(np.concatenate(([1.0], 1.0 - gain[b])))[:-1]
        inner = np.cumsum(np.concatenate(([0.0], through * d[b] * gain[b])))[:-1]
        old = d[a] * gain[a] + (1 - gain[a]) * (inner + through * d[b] * gain[b])
        new = d[a] * gain[b] + (1 - gain[b]) * (inner + through * d[b] * gain[a])
        changes[a, b] = before[a] * (new - old)
    return changes
