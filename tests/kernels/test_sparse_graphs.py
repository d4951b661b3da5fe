"""Sparse matrices, graphs and bounded minimization against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from podium.kernels import graphs
from podium.kernels.bounded_minimum import minimize_smooth, solve_nonnegative
from podium.kernels.sparse_rows import SparseRows, solve_positive


@pytest.mark.parametrize("seed", range(40))
def test_components_and_reachability(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 40)), int(random.integers(0, 80))
    source, target = random.integers(0, n, (2, m))
    graph = csr_array((np.ones(m), (source, target)), shape=(n, n))
    weak = connected_components(graph, directed=True, connection="weak")[1]
    np.testing.assert_array_equal(graphs.label_weak_components(source, target, n), weak)
    strong = connected_components(graph, directed=True, connection="strong")[1]
    ours = graphs.label_strong_components(source, target, n)
    pairs = set(zip(ours.tolist(), strong.tolist(), strict=True))
    assert len(pairs) == len(set(ours.tolist())) == len(set(strong.tolist()))
    root = int(random.integers(n))
    mark = np.zeros(n, bool)
    mark[breadth_first_order(graph, root, return_predecessors=False)] = True
    np.testing.assert_array_equal(graphs.mark_reachable(source, target, n, root), mark)


@pytest.mark.parametrize("seed", range(40))
def test_sparse_products(seed):
    random = np.random.default_rng(seed)
    shape, n = tuple(random.integers(1, 30, 2).tolist()), int(random.integers(0, 200))
    rows, columns, values = (
        random.integers(0, shape[0], n),
        random.integers(0, shape[1], n),
        random.normal(size=n),
    )
    ours = SparseRows.from_entries(values, rows, columns, shape)
    expected = csr_array((values, (rows, columns)), shape=shape).toarray()
    np.testing.assert_allclose(ours.to_dense(), expected, atol=1e-13)
    np.testing.assert_allclose(ours.diagonal(), expected.diagonal(), atol=1e-13)
    dense = random.normal(size=(shape[1], 3))
    np.testing.assert_allclose(ours.multiply(dense), expected @ dense, atol=1e-12)
    np.testing.assert_allclose(ours.multiply(dense[:, 0]), expected @ dense[:, 0], atol=1e-12)
    np.testing.assert_allclose(ours.multiply_columns(), expected.T @ expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 900])
def test_positive_systems(size):
    random = np.random.default_rng(size)
    a, b = random.integers(0, size, (2, 4 * size))
    weight = random.uniform(0, 1, 4 * size)
    every = np.arange(size)
    entries = np.concatenate((weight, weight, -weight, -weight, np.full(size, 0.01)))
    at = np.concatenate((a, b, a, b, every)), np.concatenate((a, b, b, a, every))
    matrix, right = SparseRows.from_entries(entries, *at, (size, size)), random.normal(size=size)
    np.testing.assert_allclose(
        solve_positive(matrix, right), np.linalg.solve(matrix.to_dense(), right), rtol=1e-8
    )


@pytest.mark.parametrize("seed", range(40))
def test_least_squares_without_negative_coefficients(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 15))
    a = random.normal(size=(n + int(random.integers(1, 30)), n))
    b = random.normal(size=len(a))
    np.testing.assert_allclose(solve_nonnegative(a.T @ a, a.T @ b), nnls(a, b)[0], atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_smooth_minimum_is_that_of_scipy(seed):
    random = np.random.default_rng(seed)
    n, bounded = int(random.integers(1, 20)), bool(seed % 2)
    x = random.normal(size=(200, n)) * random.lognormal(0, 1, n)
    y = (random.random(200) < 1 / (1 + np.exp(-x @ random.normal(size=n)))).astype(float)
    l2 = 10 ** random.uniform(-3, 1)

    def objective(c):
        p = x @ c
        value = np.logaddexp(0, p).sum() - y @ p + l2 / 2 * c @ c
        return value, x.T @ (1 / (1 + np.exp(-p)) - y) + l2 * c

    ours = minimize_smooth(
        objective, np.zeros(n), nonnegative=bounded, value_tolerance=1e-14, slope_tolerance=1e-9
    )
    bounds = [(0, None)] * n if bounded else None
    options = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 15_000, "maxfun": 10**6}
    theirs = minimize(objective, np.zeros(n), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert ours.converged
    assert ours.value <= theirs.fun + 1e-9 * abs(theirs.fun)
    if bounded:
        assert ours.x.min() >= 0
