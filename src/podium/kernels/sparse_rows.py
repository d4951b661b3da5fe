"""Sparse matrices by rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium._core import sparse_rows as core
from podium.kernels.dispatch import F8, I8

__all__ = ["SparseRows", "solve_positive"]

DENSE = 600  # unknowns up to which a dense solution is faster than iterating


class SparseRows(NamedTuple):
    """Cells with a value, row by row, each cell once, by ascending column."""

    starts: I8
    columns: I8
    values: F8
    width: int

    @classmethod
    def from_entries(cls, values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> SparseRows:
        """Entries of one cell are added.

        >>> SparseRows.from_entries([1.0, 2.0, 4.0], [0, 1, 1], [2, 0, 0], (2, 3)).to_dense().tolist()
        [[0.0, 0.0, 1.0], [6.0, 0.0, 0.0]]
        """
        at = (np.ascontiguousarray(x, np.int64) for x in (rows, columns))
        starts, column, value = core.compress_rows(np.ascontiguousarray(values, np.float64), *at, *shape)
        return cls(starts, column, value, shape[1])

    @property
    def height(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> I8:
        """The row of every value."""
        return np.repeat(np.arange(self.height), np.diff(self.starts))

    def to_dense(self) -> F8:
        """The whole matrix, zeros included."""
        dense = np.zeros((self.height, self.width))
        dense[self.rows, self.columns] = self.values
        return dense

    def diagonal(self) -> F8:
        """The values on the diagonal."""
        diagonal = np.zeros(min(self.height, self.width))
        on = self.rows == self.columns
        diagonal[self.columns[on]] = self.values[on]
        return diagonal

    def multiply(self, dense: F8) -> F8:
        """The product with a dense matrix or vector."""
        wide = np.ascontiguousarray(dense.reshape(self.width, -1))
        product = np.zeros((self.height, wide.shape[1]))
        core.multiply_dense(self.starts, self.columns, self.values, wide, product)
        return product.reshape(self.height, *dense.shape[1:])

    def multiply_columns(self, left: F8 | None = None, right: F8 | None = None) -> F8:
        """For every pair of columns the sum over rows of their products.

        `left` and `right` are other values of the same cells.
        """
        product = np.zeros((self.width, self.width))
        pair = (np.ascontiguousarray(self.values if v is None else v, np.float64) for v in (left, right))
        core.multiply_own_transpose(self.starts, self.columns, *pair, product)
        return product


def solve_positive(matrix: SparseRows, right: F8, tolerance: float = 1e-13) -> F8:
    """Solve a symmetric positive definite system: directly if small, otherwise by conjugate gradients.

    >>> solve_positive(SparseRows.from_entries([2.0, 4.0], [0, 1], [0, 1], (2, 2)), np.array([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    if matrix.height <= DENSE:
        return np.asarray(np.linalg.solve(matrix.to_dense(), right), np.float64)
    # preconditioned by the diagonal
    scale = 1 / matrix.diagonal()
    x, left = np.zeros(len(right)), right.copy()
    along = scale * left
    size, least = float(left @ along), tolerance**2 * float(right @ (scale * right))
    for _ in range(10 * len(right)):
        if size <= least:
            break
        image = matrix.multiply(along)
        step = size / float(along @ image)
        x += step * along
        left -= step * image
        near = scale * left
        before, size = size, float(left @ near)
        along = near + (size / before) * along
    return x
