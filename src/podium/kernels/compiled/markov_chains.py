"""Random walks over items: steps along lists in linear time, and sweeps over the majority matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.pairwise_votes import allocate_matrix, compute_margins, compute_vote_matrix

LAST = 2**31 - 1  # rank of the block of unlisted items


@njit(cache=True, nogil=True)
def solve_list_chain(first, last, votes, kind, teleport, tolerance, most_steps, found, steps):
    """MC1 (kind 1), MC2 (2) and MC3 (3), by power iteration."""
    for q in range(first, last):
        base = votes.slots[q]
        size = votes.slots[q + 1] - base
        starts, item, rank, weight = build_ballots(votes, q)
        out, stay, held = compute_shares(starts, item, rank, weight, size, kind)
        x = found[base : base + size]
        x[:] = 1.0 / size
        y = np.empty(size)
        steps[q] = most_steps + 1
        for step in range(most_steps):
            step_along_lists(starts, item, rank, out, kind == 3, x, y)
            change = apply_teleport(x, y, stay, held, teleport)
            if change * (1 - teleport) <= tolerance * teleport:
                steps[q] = step + 1
                break
        x /= x.sum()


@njit(cache=True, nogil=True)
def build_ballots(votes, q):
    """The lists, unlisted blocks and comparisons of a query as one table, without votes of weight 0."""
    base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
    a, b = votes.query_starts[q], votes.query_starts[q + 1]
    c, d = votes.vote_starts[q], votes.vote_starts[q + 1]
    count = b - a + d - c
    rows = (b - a) * size if votes.below else votes.starts[b] - votes.starts[a]
    starts, weight = np.zeros(count + 1, np.int64), np.empty(count)
    item, rank = np.empty(rows + 2 * (d - c), np.int64), np.empty(rows + 2 * (d - c), np.int64)
    n = at = 0
    for lst in range(a, b):
        if votes.list_weight[lst] == 0 or votes.starts[lst] == votes.starts[lst + 1]:
            continue
        at = copy_list(votes, lst, base, size, item, rank, at)
        weight[n] = votes.list_weight[lst]
        n += 1
        starts[n] = at
    for v in range(c, d):
        if votes.vote_weight[v] == 0:
            continue
        item[at], item[at + 1] = votes.winner[v] - base, votes.loser[v] - base
        rank[at], rank[at + 1] = 1, 1 if votes.tie[v] else 2
        weight[n] = votes.vote_weight[v]
        n += 1
        at += 2
        starts[n] = at
    return starts[: n + 1], item[:at], rank[:at], weight[:n]


@njit(cache=True, nogil=True)
def copy_list(votes, lst, base, size, item, rank, at):
    """Append one list, and its unlisted items if they are below; returns the end."""
    start = at
    for row in range(votes.starts[lst], votes.starts[lst + 1]):
        item[at], rank[at] = votes.item[row] - base, votes.rank[row]
        at += 1
    if votes.below:
        listed = np.zeros(size, np.bool_)
        for row in range(start, at):
            listed[item[row]] = True
        for i in range(size):
            if not listed[i]:
                item[at], rank[at] = i, LAST
                at += 1
    return at


@njit(cache=True, nogil=True)
def compute_shares(starts, item, rank, weight, size, kind):
    """The mass each row sends to every target in its list, the part of each item that stays, listed items."""
    out, total, stay = np.empty(len(item)), np.zeros(size), np.zeros(size)
    for lst in range(len(weight)):
        start, stop = starts[lst], starts[lst + 1]
        upto = start
        for row in range(start, stop):
            while upto < stop and rank[upto] <= rank[row]:
                upto += 1
            count = upto - start
            total[item[row]] += weight[lst] * (count if kind == 1 else 1)
            out[row] = weight[lst] / (1 if kind == 1 else count if kind == 2 else stop - start)
    for row in range(len(item)):
        out[row] /= total[item[row]]
    if kind == 3:
        stay[:] = 1.0
        for lst in range(len(weight)):
            above = starts[lst]
            for row in range(starts[lst], starts[lst + 1]):
                while rank[above] < rank[row]:
                    above += 1
                stay[item[row]] -= out[row] * (above - starts[lst])
    return out, stay, total > 0


@njit(cache=True, nogil=True)
def step_along_lists(starts, item, rank, out, strictly, x, y):
    """One step along the lists: from every row to the rows above it (and to those at its rank, with itself)."""
    y[:] = 0.0
    for lst in range(len(starts) - 1):
        risen, row = 0.0, starts[lst + 1] - 1
        while row >= starts[lst]:
            top = row
            here = x[item[row]] * out[row]
            while top > starts[lst] and rank[top - 1] == rank[row]:
                top -= 1
                here += x[item[top]] * out[top]
            given = risen if strictly else risen + here
            risen += here
            for r in range(top, row + 1):
                y[item[r]] += given
            row = top - 1


@njit(cache=True, nogil=True)
def apply_teleport(x, y, stay, held, teleport):
    """Add the staying and the teleporting mass, replace x, and return the change."""
    size, jumping = len(x), 0.0
    for i in range(size):
        if not held[i]:
            jumping += x[i]
    anywhere = (teleport + (1 - teleport) * jumping) / size
    change = 0.0
    for i in range(size):
        new = anywhere + (1 - teleport) * (y[i] + (stay[i] * x[i] if held[i] else 0.0))
        change += abs(new - x[i])
        x[i] = new
    return change


@njit(cache=True, nogil=True)
def solve_majority_chain(first, last, votes, teleport, tolerance, most_steps, found, steps):
    """MC4, by Gauss-Seidel sweeps from the weakest item up: without cycles the first sweep is exact."""
    room = allocate_matrix(votes, first, last)
    for q in range(first, last):
        beaten = compute_margins(compute_vote_matrix(votes, q, room))
        size = len(beaten)
        losses = np.zeros(size)
        for i in range(size):
            for j in range(size):
                beaten[i, j] = 1.0 if beaten[i, j] > 0 else 0.0
                losses[j] += beaten[i, j]
        order = np.argsort(-losses, kind="mergesort")
        held = find_compared_items(votes, q)
        x = found[votes.slots[q] : votes.slots[q + 1]]
        lone = teleport / size / (1 - (1 - teleport) * (size - held.sum()) / size) if size else 0.0
        x[:] = lone  # the exact value of items in no list, and a start for the others
        for i in range(size):
            if held[i]:
                x[i] = 1.0 / size
        steps[q] = most_steps + 1
        for step in range(most_steps):
            change = sweep_balance(beaten, losses, order, held, lone, teleport, x)
            if change * (1 - teleport) <= tolerance * teleport:
                steps[q] = step + 1
                break
        x /= x.sum()


@njit(cache=True, nogil=True)
def find_compared_items(votes, q):
    """Which items of a query appear in some list or vote of positive weight."""
    base, size = votes.slots[q], votes.slots[q + 1] - votes.slots[q]
    held = np.zeros(size, np.bool_)
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        if votes.list_weight[lst] > 0 and votes.starts[lst] < votes.starts[lst + 1]:
            if votes.below:
                held[:] = True
            for row in range(votes.starts[lst], votes.starts[lst + 1]):
                held[votes.item[row] - base] = True
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        if votes.vote_weight[v] > 0:
            held[votes.winner[v] - base] = held[votes.loser[v] - base] = True
    return held


@njit(cache=True, nogil=True)
def sweep_balance(beaten, losses, order, held, lone, teleport, x):
    """Solve each item's balance in turn with the newest values of the others; returns the change."""
    size, change = len(x), 0.0
    anywhere = lone  # mass that teleports and items without votes bring to every item
    for i in order:
        if held[i]:
            new = (anywhere + (1 - teleport) / size * dot(beaten[i], x)) / (
                1 - (1 - teleport) * (1 - losses[i] / size)
            )
            change += abs(new - x[i])
            x[i] = new
    return change


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a, b):
    """Sum of products; the compiler may reorder the terms, which makes it fast."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
