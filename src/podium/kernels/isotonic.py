"""Isotonic regression in all queries at once.

A `BlockOrder` lists the slots of every query best first, in blocks: the order between blocks is fixed; inside
a block it was free, and its slots are ordered by another score (the primary treatment of ties in Kruskal,
Psychometrika 1964). One compiled loop fits all queries, because most
of them are short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import isotonic as core
from podium.kernels.dispatch import F8, I8

__all__ = ["BlockOrder", "build_block_order", "project_isotonic"]


class BlockOrder(NamedTuple):
    """Slots best first, query by query, and the number of the block at each place (ascending)."""

    rows: I8
    block: I8
    starts: I8


def build_block_order(scores: F8, starts: I8, then: F8 | None = None, grades: F8 | None = None) -> BlockOrder:
    """The order of falling scores, ties in one block by falling `then`; respects known grades (else NaN).

    >>> build_block_order(np.array([1.0, 3.0, 1.0]), np.array([0, 3]), np.array([5.0, 6.0, 7.0])).rows.tolist()
    [1, 2, 0]
    """
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    rows = np.lexsort((-scores, query) if then is None else (-then, -scores, query))
    value = scores[rows]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (value[1:] != value[:-1]) | (query[1:] != query[:-1])
    if grades is not None and not np.isnan(grades).all():
        # the places of graded slots are redistributed among them: higher grades first
        held = np.flatnonzero(~np.isnan(grades[rows]))
        mine = rows[held]
        mine = mine[np.lexsort((held, -grades[mine], query[held]))]
        rows[held] = mine
        falls = np.zeros(len(held), np.bool_)
        same = query[held][1:] == query[held][:-1]
        falls[1:] = same & (grades[mine][1:] < grades[mine][:-1])
        new[held[falls]] = True  # a lower grade never shares a block with a higher one before it
    return BlockOrder(rows, np.cumsum(new) - 1, starts)


def project_isotonic(values: F8, order: BlockOrder, margin: float = 0.0) -> F8:
    """The least-squares values nearest to `values` that fall along the order, by `margin` between blocks.

    >>> order = build_block_order(np.array([3.0, 2.0, 1.0]), np.array([0, 3]))
    >>> project_isotonic(np.array([1.0, 3.0, 2.0]), order).tolist()
    [2.0, 2.0, 2.0]
    """
    along, out = values[order.rows], np.empty(len(values))
    step = margin * order.block if margin else None
    if step is not None:
        # falling by a margin per block equals falling after raising each block by its margins
        along = along + step
    core.fit_falling(0, len(order.starts) - 1, order.starts, along, out)
    found = np.empty(len(values))
    found[order.rows] = out if step is None else out - step
    return found
