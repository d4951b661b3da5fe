"""The assignment problem: rows to columns at the least total cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import assignment as core
from podium.kernels.dispatch import F8, I8

__all__ = ["Assignment", "assign_rows"]


class Assignment(NamedTuple):
    """The column of each row, and prices that prove it optimal: their sum never exceeds a cost."""

    column: I8
    row_price: F8
    column_price: F8


def assign_rows(cost: F8) -> Assignment:
    """Assign every row of a square table to its own column at the least total cost.

    Shortest augmenting paths, cubic time. With whole costs all prices are exact.

    >>> assign_rows(np.array([[4.0, 1.0], [2.0, 0.0]])).column.tolist()
    [1, 0]
    """
    size = len(cost)
    assignment = Assignment(np.zeros(size, np.int64), np.zeros(size), np.zeros(size))
    core.assign_rows(np.ascontiguousarray(cost, np.float64), *assignment)
    return assignment
