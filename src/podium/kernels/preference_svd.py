"""Strengths with which lists and votes prefer one item to another: matrices Y as operators, never built.

Y(i, j) is the strength with which a list puts i above j: 1 (binary), or the difference of their positions on
the list's scale. A product with Y or its transpose is then one walk along the list with running sums, so the
row sums and leading singular vectors of a matrix cost a few passes over its rows, whatever its size (Volkovs,
Larochelle & Zemel, CIKM 2012, for the matrices). All terms are nonnegative: nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from podium._core import preference_svd as core
from podium._core import single_list_svd as core_single
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8, run_in_threads
from podium.kernels.preference_matrices import (
    MatrixOperator,
    PreferenceMatrices,
    build_dense_matrix,
    compact_matrices,
    select_matrices,
)

__all__ = [
    "LeadingVectors",
    "PreferenceMatrices",
    "build_dense_matrix",
    "compute_leading_vectors",
    "compute_singular_vectors",
    "select_matrices",
    "sum_rows_and_columns",
]

TOLERANCE = 1e-13  # relative residual at convergence of singular vectors
MATRIX_COST = 60  # units of work per matrix besides its rows
SLOW = 0.4  # conjugate directions replace power iteration when the change falls by less than this factor
PATIENCE = 6  # steps of power iteration before that decision
DENSE = 300  # items up to which a decomposition of rank above one builds the matrix
CELLS = 4_000_000  # cells of matrices decomposed at once
SPARE, DEPTH, RESTARTS = 4, 5, 50  # of the block Krylov iteration above that size
NOTHING = 1e-12  # singular values below this fraction of the largest are zero


class LeadingVectors(NamedTuple):
    """The leading singular vectors of every matrix: unit, nonnegative, zero for a matrix of zeros."""

    u: F8  # over (matrix, item): how much an item is preferred
    v: F8  # over (matrix, item): how much others are preferred to it
    sigma: F8
    iterations: I8  # products with Y and its transpose, by matrix
    converged: bool


def sum_rows_and_columns(m: PreferenceMatrices) -> tuple[F8, F8]:
    """For every (matrix, item): the sums of its row, sum_j Y(i, j), and of its column, sum_j Y(j, i)."""
    offsets = m.starts_out
    row, column = np.zeros(int(offsets[-1])), np.zeros(int(offsets[-1]))
    single = _is_single_list(m)
    _run_kernel(core_single.sum_rows_and_columns, np.flatnonzero(single), m, offsets, row, column)
    _run_kernel(core.sum_rows_and_columns, np.flatnonzero(~single), m, offsets, row, column)
    return row, column


def compute_leading_vectors(
    m: PreferenceMatrices, tolerance: float = TOLERANCE, max_iterations: int = 2000
) -> LeadingVectors:
    """The leading singular vectors and value of every matrix.

    Power iteration from the vector of ones: where the largest singular value belongs to several pairs of
    vectors the result is the one nearest to all ones, so it does not depend on ids. Matrices with a small gap
    between the first two singular values continue with conjugate directions, for at most `max_iterations`
    steps.
    """
    offsets, count = m.starts_out, len(m.query)
    u, v, sigma = np.zeros(int(offsets[-1])), np.zeros(int(offsets[-1])), np.zeros(count)
    steps = np.zeros(count, np.int64)
    how, out = (tolerance, SLOW, PATIENCE), (u, v, sigma, steps)
    _run_kernel(
        core_single.compute_leading_vectors, np.flatnonzero(_is_single_list(m)), m, offsets, *how, *out
    )
    _run_kernel(
        core.compute_leading_vectors,
        np.flatnonzero(steps == 0),
        m,
        offsets,
        *how,
        max_iterations,
        *out,
    )
    return LeadingVectors(u, v, sigma, np.abs(steps), bool((steps > 0).all()))


def _is_single_list(m: PreferenceMatrices) -> B1:
    """Which matrices consist of a single list."""
    return np.asarray((np.diff(m.list_starts) == 1) & (np.diff(m.vote_starts) == 0))


def _run_kernel(kernel: Callable[..., None], which: I8, m: PreferenceMatrices, *arguments: Any) -> None:
    """Run a kernel on some of the matrices, in parts of about equal work."""
    if len(which):
        rows = m.starts[m.list_starts] + m.vote_starts + MATRIX_COST * np.arange(len(m.list_starts))
        work = segments.offsets(np.diff(rows + m.starts_out if m.below else rows)[which])
        run_in_threads(kernel, work, which, m, *arguments)


# -- more than one pair of vectors ---------------------------------------------------------------------------


def compute_singular_vectors(m: PreferenceMatrices, p: int) -> tuple[F8, F8, F8]:
    """The first p singular vectors and values of every matrix: u and v (entries, p), sigma (matrices, p).

    The first is that of `compute_leading_vectors`. Signs of the others make u sum to a positive number, or v
    where u sums to zero. Values that a matrix does not have, and their vectors, are zero.
    """
    first = compute_leading_vectors(m)
    u, v, sigma = (np.zeros((len(part), p)) for part in first[:3])
    u[:, 0], v[:, 0], sigma[:, 0] = first.u, first.v, first.sigma
    if p == 1:
        return u, v, sigma
    small, entry = compact_matrices(m)
    for which in _batch_by_size(small.sizes):
        inside = entry[segments.gather_segments(small.starts_out, which)[1]]
        head_u, head_v = (part[inside].reshape(len(which), -1) for part in (first.u, first.v))
        solve = _decompose_dense if head_u.shape[1] <= DENSE else _decompose_large
        rest = solve(small, which, (head_u, first.sigma[which], head_v), p)
        kept = rest[1].shape[1]
        u[inside, 1 : 1 + kept] = rest[0].reshape(-1, kept)
        v[inside, 1 : 1 + kept] = rest[2].reshape(-1, kept)
        sigma[which, 1 : 1 + kept] = rest[1]
    sigma[sigma <= NOTHING * sigma[:, :1]] = 0.0
    for k in range(1, p):
        by_u, by_v = (np.bincount(m.owner, part[:, k], len(m.query)) for part in (u, v))
        # a sum of 0 except for rounding does not determine a sign
        sign = np.where(np.where(np.abs(by_u) > 1e-9, by_u, by_v) < 0, -1.0, 1.0)
        factor = np.where(sigma[:, k] > 0, sign, 0.0)[m.owner]
        u[:, k] *= factor
        v[:, k] *= factor
    return u, v, sigma


Parts = tuple[F8, F8, F8]  # left vectors, values, right vectors


def _batch_by_size(sizes: I8) -> Iterator[I8]:
    """Matrices of one size, at most as many as fit in memory."""
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        step = max(1, CELLS // int(size) ** 2) if size <= DENSE else 1
        for at in range(0, len(which), step):
            yield which[at : at + step]


def _decompose_dense(m: PreferenceMatrices, which: I8, head: Parts, p: int) -> Parts:
    """Decompose the remainder without the first pair, in one batch."""
    table = np.array([build_dense_matrix(m, int(g)) for g in which])
    table -= np.einsum("g,gi,gj->gij", head[1], head[0], head[2])
    u, sigma, v = np.linalg.svd(table, full_matrices=False)
    kept = min(p - 1, table.shape[1])
    return u[:, :, :kept], sigma[:, :kept], v.transpose(0, 2, 1)[:, :, :kept]


def _decompose_large(m: PreferenceMatrices, which: I8, head: Parts, p: int) -> Parts:
    """Decompose the remainder of one large matrix by block Krylov iteration, with products only."""
    a, (left, value, right) = MatrixOperator(select_matrices(m, which)), (part[0] for part in head)

    def multiply_block(block: F8) -> F8:
        return np.column_stack([a.multiply(x) - value * (right @ x) * left for x in block.T])

    def multiply_block_transposed(block: F8) -> F8:
        return np.column_stack([a.multiply_transposed(x) - value * (left @ x) * right for x in block.T])

    kept = min(p - 1, a.size)
    # a fixed seed, so that every call returns the same vectors
    v = np.random.default_rng(0).normal(size=(a.size, min(kept + SPARE, a.size)))
    for _ in range(RESTARTS):
        blocks = [v]
        for _ in range(DEPTH):
            # powers of a matrix become parallel: orthogonalize every block
            blocks.append(np.linalg.qr(multiply_block_transposed(multiply_block(blocks[-1])))[0])
        basis = np.linalg.qr(np.hstack(blocks[1:]))[0]
        u, sigma, inner = np.linalg.svd(multiply_block(basis), full_matrices=False)
        v = (basis @ inner.T)[:, : v.shape[1]]
        u, sigma = u[:, :kept], sigma[:kept]
        if np.abs(multiply_block_transposed(u) - v[:, :kept] * sigma).max() <= NOTHING * value:
            break
    return u[None], sigma[None], v[None, :, :kept]
