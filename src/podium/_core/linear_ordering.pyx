"""Local search for the linear ordering problem."""

from libc.stdint cimport int64_t

import numpy as np


def improve_order(const double[:, ::1] margin, int64_t[::1] order):
    """Move single items to their best places until no move helps, in passes over the order as it was."""
    cdef int64_t[::1] before = np.empty(order.shape[0], np.int64)
    cdef Py_ssize_t k
    cdef bint moved = True
    with nogil:
        while moved:
            moved = False
            before[:] = order
            for k in range(order.shape[0]):
                moved |= reinsert_item(margin, order, before[k])


cdef bint reinsert_item(const double[:, ::1] margin, int64_t[::1] order, int64_t item) noexcept nogil:
    """Move an item to where it gains most; on ties to the highest place. Returns whether it moved."""
    cdef Py_ssize_t p, to, step, at = 0
    cdef double best = 0.0, gain = 0.0
    while order[at] != item:
        at += 1
    to = at
    for p in range(at - 1, -1, -1):
        gain += margin[item, order[p]]
        if gain > 0 and gain >= best:
            best = gain
            to = p
    gain = 0.0
    for p in range(at + 1, order.shape[0]):
        gain -= margin[item, order[p]]
        if gain > best:
            best = gain
            to = p
    if to == at:
        return False
    step = 1 if to > at else -1
    p = at
    while p != to:
        order[p] = order[p + step]
        p += step
    order[to] = item
    return True
