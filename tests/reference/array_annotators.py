"""Sums over the judgements of annotators as numpy expressions."""

from __future__ import annotations

import numpy as np

from podium.kernels.annotator_em import PARTS
from podium.kernels.noisy_contests import TINY


def sum_agreement(given, coins, truth):
    """By coin, the weight of the votes that agree and that disagree with the truths (by pair)."""
    q, n = truth[given.pair], len(coins.weight)
    return tuple(  # type: ignore[return-value]
        np.bincount(coins.first, a * q, n) + np.bincount(coins.second, b * (1 - q), n)
        for a, b in ((given.won, given.lost), (given.lost, given.won))
    )


def sum_evidence(given, coins, right, wrong):
    """By pair, the log likelihood of the votes if the first item is better, and if the second is."""
    pairs = len(given.first)
    won, lost = given.won, given.lost
    rows = (
        won * right[coins.first] + lost * wrong[coins.first],
        won * wrong[coins.second] + lost * right[coins.second],
    )
    return tuple(np.bincount(given.pair, row, pairs) for row in rows)


def _logistic(x):
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, z) / (1.0 + z)


def count_ratings(given, truth):
    """The groups' ratings of items by level, with their prior counts."""
    counts = given.prior.copy()
    np.add.at(counts.transpose(0, 2, 1), (given.group, given.level), truth[given.item])
    return counts


def sum_rating_evidence(given, table, share):
    """The evidence of the ratings on each item's level."""
    odds = np.repeat(share[None, :], given.items, axis=0)
    says = table.transpose(0, 2, 1)[given.group, given.level] * given.weight[given.group][:, None]
    np.add.at(odds, given.item, says)
    return odds


def compute_expected_elo(given, won, lost, k, rate):
    """Elo ratings around 0, one portion of all matches after the other."""
    slots, met = int(given.starts[-1]), won + lost
    ends = (given.first, given.second)
    busy = np.bincount(np.concatenate(ends), np.concatenate((met, met)), slots)
    most = np.maximum.reduceat(np.append(busy, 0.0), given.starts[:-1]) if slots else np.zeros(0)
    parts = np.maximum(PARTS, np.ceil(rate * k * most)).astype(np.int64)
    ratings, pairs = np.zeros(slots), np.diff(given.pair_starts)
    for q in np.flatnonzero(pairs).tolist():
        here = slice(*given.pair_starts[q : q + 2].tolist())
        base, size = int(given.starts[q]), int(given.starts[q + 1] - given.starts[q])
        i, j = given.first[here] - base, given.second[here] - base
        r = ratings[base : base + size]
        for _ in range(int(parts[q])):
            gain = won[here] - met[here] * _logistic(rate * (r[i] - r[j]))
            r += (np.bincount(i, gain, size) - np.bincount(j, gain, size)) * (k / parts[q])
    return ratings


def compute_noisy_derivatives(given, x, known, columns, sums):
    """Fill in the second derivatives of all rows and the sums of gradients and scales; returns the value."""
    slots = given.slots
    d = x[given.first] - x[given.second]
    t = np.full(len(d), np.inf) if known else x[slots + given.group]
    s, s_, e, e_ = _logistic(d), _logistic(-d), _logistic(t), _logistic(-t)
    p, q = np.maximum(s * e + s_ * e_, TINY), np.maximum(s * e_ + s_ * e, TINY)
    a, b = (e - e_) * s * s_, (s - s_) * e * e_
    up, curve = given.won / p - given.lost / q, given.won / p**2 + given.lost / q**2
    columns[0] = a * a * curve - a * (s_ - s) * up
    columns[1] = a * b * curve - 2 * s * s_ * e * e_ * up
    columns[2] = b * b * curve - b * (e_ - e) * up
    for at, down, square in ((0, -a * up, a * a * curve), (slots, -b * up, b * b * curve)):
        if at == 0:
            sums[0, :slots] = _scatter_to_slots(given, down, -1)
            sums[1, :slots] = _scatter_to_slots(given, square, 1)
        elif not known:
            groups = len(given.right)
            sums[:, slots:] = [np.bincount(given.group, v, groups) for v in (down, square)]
    return float(-(given.won * np.log(p) + given.lost * np.log(q)).sum())


def _scatter_to_slots(given, row, sign):
    up, down = (np.bincount(side, row, given.slots) for side in (given.first, given.second))
    return np.asarray(up + sign * down, np.float64)


def multiply_noisy_hessian(given, at, v):
    """The Hessian of noisy contests times v."""
    slots, known = given.slots, len(given.right) == 0
    out = at.own * v
    d = v[given.first] - v[given.second]
    if known:
        out += _scatter_to_slots(given, at.dd * d, -1)
        return out
    t = v[slots + given.group]
    out[:slots] += _scatter_to_slots(given, at.dd * d + at.dt * t, -1)
    out[slots:] += np.bincount(given.group, at.dt * d + at.tt * t, len(given.right))
    return out
