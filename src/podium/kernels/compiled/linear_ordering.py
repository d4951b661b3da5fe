"""Local search for the linear ordering problem."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def improve_order(margin, order):
    """Move single items to their best places until no move helps, in passes over the order as it was."""
    moved = True
    while moved:
        moved = False
        for item in order.copy():
            moved |= reinsert_item(margin[item], order, item)


@njit(cache=True, nogil=True)
def reinsert_item(row, order, item):
    """Move an item to where it gains most; on ties to the highest place. Returns whether it moved."""
    at = 0
    while order[at] != item:
        at += 1
    best, to, gain = 0.0, at, 0.0
    for p in range(at - 1, -1, -1):
        gain += row[order[p]]
        if gain > 0 and gain >= best:
            best, to = gain, p
    gain = 0.0
    for p in range(at + 1, len(order)):
        gain -= row[order[p]]
        if gain > best:
            best, to = gain, p
    if to == at:
        return False
    step = 1 if to > at else -1
    for p in range(at, to, step):
        order[p] = order[p + step]
    order[to] = item
    return True
