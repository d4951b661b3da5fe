"""Rank distributions and expectations under them, row blocks at a time, as numpy expressions."""

from __future__ import annotations

import numpy as np

CHUNK = 1 << 22  # cells of a table held at once


def convolve_directly(win):
    """P(rank = r) for every row of win probabilities, one contest after the other."""
    rows, contests = win.shape
    law = np.zeros((rows, contests + 1))
    law[:, 0] = 1.0
    for t in range(contests):
        w = win[:, t : t + 1]
        law[:, 1 : t + 2] = law[:, 1 : t + 2] * w + law[:, : t + 1] * (1 - w)
        law[:, 0] *= w[:, 0]
    return law


def compute_excess_discount(contests, tilt, table):
    """The expected discount of every row, minus that of an item whose contests are all even."""
    found = np.zeros(len(contests.own))
    order = np.argsort(-contests.uneven, kind="stable")
    order = order[contests.uneven[order] > 0]
    while len(order):
        step = max(1, CHUNK // (4 * int(contests.uneven[order[0]])))
        part, order = order[:step], order[step:]
        found[part] = _compute_excess_rows(contests, part, tilt, table)
    return found


def _collect_edges(contests, rows, tilt):
    """Contests with an edge for some rows: the row, the edge, and its count."""
    lengths = contests.last[rows] - contests.first[rows]
    ends = np.cumsum(lengths)
    met = np.repeat(contests.first[rows] - (ends - lengths), lengths) + np.arange(lengths.sum())
    row = np.repeat(np.arange(len(rows)), lengths)
    d = contests.own[rows][row] - contests.value[met]
    group = contests.group[rows]
    edge = tilt[group[row]] * (contests.slope[group[row]] * d + contests.step * np.sign(d))
    count = np.where(d == 0, 0, contests.many[met])
    known = contests.unjudged_edge[rows] != 0
    row = np.concatenate((row, np.flatnonzero(known)))
    edge = np.concatenate((edge, (tilt[group] * contests.unjudged_edge[rows])[known]))
    count = np.concatenate((count, contests.unjudged_items[rows][known]))
    order = np.argsort(row, kind="stable")
    order = order[count[order] > 0]
    return row[order], edge[order], count[order]


def _compute_excess_rows(contests, rows, tilt, table):
    row, edges, count = _collect_edges(contests, rows, tilt)
    row, edges = np.repeat(row, count), np.repeat(edges, count)
    uneven = contests.uneven[rows]
    most = int(uneven.max())
    at = np.arange(len(row)) - (np.cumsum(uneven) - uneven)[row]
    # padding: a certain win has no effect
    edge, win = (np.zeros((len(rows), most)), np.ones((len(rows), most)))
    edge[row, at], win[row, at] = edges, 0.5 + edges
    s, even = np.zeros((len(rows), most)), np.zeros(most + 1)
    even[0] = 1.0
    for t in range(most):
        p, e = win[:, t : t + 1], edge[:, t : t + 1]
        s[:, 1 : t + 1] = s[:, 1 : t + 1] * p + s[:, :t] * (1 - p) + e * even[1 : t + 1]
        s[:, :1] = s[:, :1] * p + e * even[0]
        even[1 : t + 2] = (even[1 : t + 2] + even[: t + 1]) / 2
        even[0] /= 2
    total, base = np.zeros(len(rows)), table.starts[contests.size[rows] - uneven]
    for r in range(most):
        has = uneven > r
        total[has] += s[has, r] * table.value[base[has] + r]
    return total


def compute_power_excess(contests, tilt, powers):
    """The same for a sum of powers."""
    found = np.zeros(len(contests.own))
    lengths = contests.last - contests.first + 1
    work = np.concatenate(([0], np.cumsum(lengths * len(powers.rate))))
    tanh, log_half = 2 * np.tanh(powers.rate / 2), np.log1p(np.expm1(-powers.rate) / 2)
    cuts = np.searchsorted(work, np.arange(0, int(work[-1]) + CHUNK, CHUNK))
    for a, b in zip(cuts[:-1].tolist(), np.minimum(cuts[1:], len(found)).tolist(), strict=True):
        rows = np.arange(a, b)
        row, edge, count = _collect_edges(contests, rows, tilt)
        if not len(row):
            continue
        with np.errstate(divide="ignore"):  # a certain loss and a very large rate: the logarithm of 0
            logs = count[:, None] * np.log1p(np.maximum(edge[:, None] * tanh, -1.0))
        head = np.flatnonzero(np.diff(row, prepend=-1))
        more = np.add.reduceat(logs, head)
        even = contests.size[rows[row[head]]][:, None] * log_half
        # expm1 keeps small excesses accurate; for large ones exponents are added first to avoid overflow
        change = np.where(
            more < 1, np.exp(even) * np.expm1(np.minimum(more, 1)), np.exp(even + more) - np.exp(even)
        )
        found[rows[row[head]]] = change @ powers.weight
    return found
