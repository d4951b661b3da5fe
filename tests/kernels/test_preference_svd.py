"""Pairwise matrices as operators against their definition and against numpy's decomposition of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

from podium.kernels import dispatch, preference_svd
from podium.kernels.preference_matrices import MatrixOperator
from podium.kernels.preference_svd import PreferenceMatrices
from reference import strengths as plain

TRANSFORMS = ["binary", "rank", "log"]
NEAR = 1e-9  # relative distance below which two singular values count as one


@pytest.fixture(params=["one thread", "threads"])
def path(request, monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0 if request.param == "threads" else 10**12)


def problem(random, *, lists=2, votes=2, size=9, ties=True):
    """One matrix: (items, lists of item -> rank, votes); ranks have gaps, and ties if asked for."""
    items = list(range(random.integers(2, size + 1)))
    chosen = []
    for _ in range(random.integers(0, lists + 1)):
        length = random.integers(1, len(items) + 1)
        ranks = random.integers(1, 12, length) if ties else random.permutation(30)[:length] + 1
        chosen.append(dict(zip(random.permutation(items)[:length].tolist(), ranks.tolist(), strict=True)))
    pairs = [random.permutation(items)[:2].tolist() for _ in range(random.integers(0, votes + 1))]
    return items, chosen, [(w, o, float(random.integers(1, 4))) for w, o in pairs]


def packed(problems, transform, below=False) -> PreferenceMatrices:
    """Problems as one table, each with its own query; the queries are numbered backwards."""
    count = len(problems)
    sizes = [len(items) for items, _, _ in problems][::-1]
    slots = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    lists, rows, values, votes = [0], [], [], []
    list_starts, vote_starts = [0], [0]
    for g, (_, ballots, pairs) in enumerate(problems):
        base = slots[count - 1 - g]
        for ranks in ballots:
            order = sorted(ranks, key=ranks.get)
            rows += [base + i for i in order]
            values += [
                ranks[i] if transform == "binary" else plain.place(ranks[i], ranks.values(), transform)
                for i in order
            ]
            lists.append(len(rows))
        votes += [(base + w, base + o, s) for w, o, s in pairs]
        list_starts.append(len(lists) - 1)
        vote_starts.append(len(votes))
    winner, loser, strength = (np.array([v[k] for v in votes]) for k in range(3))
    return PreferenceMatrices(
        slots=slots,
        query=np.arange(count)[::-1].copy(),
        list_starts=np.array(list_starts),
        starts=np.array(lists),
        item=np.array(rows, np.int32),
        value=np.array(values, np.float64),
        binary=transform == "binary",
        below=below,
        vote_starts=np.array(vote_starts),
        winner=winner.astype(np.int32),
        loser=loser.astype(np.int32),
        strength=strength.astype(np.float64),
    )


def many(seed, count=60, **how):
    random = np.random.default_rng(seed)
    return [problem(random, **how) for _ in range(count)]


def one_list(ranks) -> list:
    return [(list(range(len(ranks))), [dict(enumerate(ranks))], [])]


def check_leading(y, u, v, sigma):
    """Unit, non-negative, and what the whole decomposition says; for equal singular values, nearest to all ones."""
    left, values, _ = np.linalg.svd(y)
    if values[0] == 0:
        assert sigma == 0
        assert not u.any()
        assert not v.any()
        return
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(v) == pytest.approx(1, abs=1e-12)
    assert min(u.min(), v.min()) >= 0
    assert sigma == pytest.approx(values[0], rel=1e-12)
    same = values >= values[0] * (1 - NEAR)
    if same.sum() < len(same) and values[~same][0] > values[0] * (1 - 1e-5):
        return  # too near for anybody to tell apart
    expected = left[:, same] @ left[:, same].sum(0)
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(v, y.T @ expected / values[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_matrices_sums_and_vectors(path, transform, below):
    problems = many(0) + many(1, lists=1, votes=0) + many(2, count=20, lists=6, votes=9, size=25)
    m = packed(problems, transform, below)
    row, column = preference_svd.sum_rows_and_columns(m)
    found = preference_svd.compute_leading_vectors(m)
    assert found.converged
    assert len(row) == m.starts_out[-1] == sum(len(p[0]) for p in problems)
    for g, (items, ballots, votes) in enumerate(problems):
        y = np.array(plain.matrix(items, ballots, votes, transform, below))
        mine = slice(m.starts_out[g], m.starts_out[g + 1])
        np.testing.assert_allclose(preference_svd.build_dense_matrix(m, g), y, rtol=0, atol=1e-14)
        for got, expected in zip((row, column), plain.sum_rows_and_columns(y.tolist()), strict=True):
            np.testing.assert_allclose(got[mine], expected, rtol=1e-12, atol=1e-13)
        check_leading(y, found.u[mine], found.v[mine], found.sigma[g])


def test_example_of_the_paper():
    """Volkovs, Larochelle & Zemel, CIKM 2012: ranks 7, missing, 5 and 15."""
    m = packed([([0, 1, 2, 3], [{0: 7, 2: 5, 3: 15}], [])], "log")
    y = np.zeros((4, 4))
    y[0, 3], y[2, 0], y[2, 3] = 0.28, 0.12, 0.41
    np.testing.assert_array_equal(preference_svd.build_dense_matrix(m, 0).round(2), y)


@pytest.mark.parametrize("size", [2, 3, 10, 300, 3000])
def test_strict_ranking_has_sines(path, size):
    found = preference_svd.compute_leading_vectors(packed(one_list(range(1, size + 1)), "binary"))
    u, v, sigma = plain.binary_leading(size)
    np.testing.assert_allclose(found.u, u, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.v, v, rtol=0, atol=1e-12)
    assert found.sigma[0] == pytest.approx(sigma, rel=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_rank_one_lists_and_nothing(path, transform):
    """All tied, one item, rank 1 only, and no lists at all: zero matrices."""
    problems = [([0, 1, 2], [dict.fromkeys(range(3), 4)], []), ([0], [{0: 1}], []), ([0, 1], [{1: 1}], [])]
    problems += [([0, 1], [], [])]
    m = packed(problems, transform)
    found = preference_svd.compute_leading_vectors(m)
    assert found.converged
    for part in (*preference_svd.sum_rows_and_columns(m), found.u, found.v, found.sigma):
        assert not part.any()
    u, v, sigma = preference_svd.compute_singular_vectors(m, 3)
    assert u.shape == v.shape == (8, 3)
    assert not u.any()
    assert not v.any()
    assert not sigma.any()


def test_no_matrices(path):
    m = packed([], "log")
    assert len(preference_svd.sum_rows_and_columns(m)[0]) == 0
    assert preference_svd.compute_leading_vectors(m).converged
    assert preference_svd.compute_singular_vectors(m, 2)[2].shape == (0, 2)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_threads_change_nothing(monkeypatch, transform, below):
    problems = many(3, count=200) + many(4, count=100, lists=1, votes=0, size=30, ties=False)
    m = packed(problems, transform, below)
    results = []
    for thread_work in (0, 10**12):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        results.append(
            (*preference_svd.sum_rows_and_columns(m), *preference_svd.compute_leading_vectors(m)[:3])
        )
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    m = packed(many(5, count=150) + many(6, count=150, lists=1, votes=0), "log")
    results = []
    for threads in ("1", "3", "7"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        results.append(
            (*preference_svd.sum_rows_and_columns(m), *preference_svd.compute_leading_vectors(m)[:4])
        )
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_small_gaps_converge(path):
    """One item on top, one at the bottom and n tied between them: the first two singular values are n^-1/2 apart."""
    problems = [p for n in (20, 100, 400) for p in one_list([1, *([2] * n), n + 2])]
    problems += [([0, 1, 2, 3, 4], [], [(0, 1, 1.0), (2, 3, 1.0 + gap)]) for gap in (0.1, 1e-2, 1e-4)]
    m = packed(problems, "binary")
    found = preference_svd.compute_leading_vectors(m)
    assert found.converged
    assert found.iterations.max() < 100
    for g in range(len(problems)):
        mine = slice(m.starts_out[g], m.starts_out[g + 1])
        check_leading(preference_svd.build_dense_matrix(m, g), found.u[mine], found.v[mine], found.sigma[g])


def test_equal_singular_values_do_not_go_by_name(path):
    """Two pairs that nothing tells apart get equal vectors."""
    found = preference_svd.compute_leading_vectors(
        packed([([0, 1, 2, 3], [], [(0, 1, 2.0), (2, 3, 2.0)])], "binary")
    )
    np.testing.assert_allclose(found.u, np.array([1, 0, 1, 0]) / np.sqrt(2), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.v, np.array([0, 1, 0, 1]) / np.sqrt(2), rtol=0, atol=1e-15)


def test_a_limit_that_is_reached_is_reported(path):
    problems = [([0, 1, 2, 3, 4], [], [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0001), (3, 4, 1.0)])] * 2
    m = packed(problems, "binary")
    assert not preference_svd.compute_leading_vectors(m, 1e-13, 1).converged
    assert preference_svd.compute_leading_vectors(m).converged


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_operator_is_linear(transform):
    """Products with vectors of any sign, as the conjugate directions need them."""
    problems = many(7, lists=4)
    for below in (False, True):
        m = packed(problems, transform, below)
        a, x = MatrixOperator(m), np.random.default_rng(0).normal(size=m.starts_out[-1])
        for g in range(len(problems)):
            mine, y = slice(m.starts_out[g], m.starts_out[g + 1]), preference_svd.build_dense_matrix(m, g)
            np.testing.assert_allclose(a.multiply(x)[mine], y @ x[mine], atol=1e-12)
            np.testing.assert_allclose(a.multiply_transposed(x)[mine], y.T @ x[mine], atol=1e-12)


@pytest.mark.parametrize("limit", [300, 3])
def test_low_rank(monkeypatch, limit):
    """As numpy's decomposition, by the dense batch and by products only."""
    monkeypatch.setattr(preference_svd, "DENSE", limit)
    problems = many(8, count=40, lists=3, size=14)
    m = packed(problems, "log")
    u, v, sigma = preference_svd.compute_singular_vectors(m, 3)
    for g in range(len(problems)):
        mine, y = slice(m.starts_out[g], m.starts_out[g + 1]), preference_svd.build_dense_matrix(m, g)
        left, values, right = np.linalg.svd(y)
        kept = min(3, len(values))
        np.testing.assert_allclose(sigma[g, :kept], values[:kept], atol=1e-8)
        best = (left[:, :kept] * values[:kept]) @ right[:kept]
        if len(values) < 4 or values[2] - values[3] > 1e-3:
            np.testing.assert_allclose((u[mine] * sigma[g]) @ v[mine].T, best, atol=1e-7)
        for k in range(3):
            signs = [part[mine, k].sum() for part in (u, v)]
            assert signs[0] > 0 or abs(signs[0]) < 1e-8
            assert np.linalg.norm(u[mine, k]) == pytest.approx(float(sigma[g, k] > 0), abs=1e-9)


def test_low_rank_of_one_is_leading():
    m = packed(many(9), "rank")
    found = preference_svd.compute_leading_vectors(m)
    for part, expected in zip(preference_svd.compute_singular_vectors(m, 1), found[:3], strict=True):
        np.testing.assert_array_equal(part[:, 0], expected)


def test_select():
    problems = many(10, count=12)
    m = packed(problems, "log", below=True)
    which = np.array([7, 2, 9])
    part = preference_svd.select_matrices(m, which)
    for at, g in enumerate(which):
        np.testing.assert_array_equal(
            preference_svd.build_dense_matrix(part, at), preference_svd.build_dense_matrix(m, g)
        )
