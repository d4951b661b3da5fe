"""Contests solved: derivatives and answers, against plain definitions, scipy's solvers and published estimates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

from podium.core.errors import ParameterError
from podium.kernels import contest_scores, contest_solvers, dispatch
from reference import contests as plain
from reference.contests import VARIANTS, made, sides, some

BASEBALL = {  # American League 1987, wins over each other team; Agresti, Categorical Data Analysis, table 10.10
    "Milwaukee": (0, 7, 9, 7, 7, 9, 11),
    "Detroit": (6, 0, 7, 5, 11, 9, 9),
    "Toronto": (4, 6, 0, 7, 7, 8, 12),
    "New York": (6, 8, 6, 0, 6, 7, 10),
    "Boston": (6, 2, 6, 7, 0, 7, 12),
    "Cleveland": (4, 4, 5, 6, 6, 0, 6),
    "Baltimore": (2, 4, 1, 3, 1, 7, 0),
}


@pytest.fixture(params=["one thread", "threads", "pairs"])
def path(request, monkeypatch):
    """Dense Hessians in one thread and in several, and conjugate gradients."""
    monkeypatch.setattr(dispatch, "THREAD_WORK", 10**12 if request.param == "one thread" else 0)
    if request.param == "pairs":
        monkeypatch.setattr(contest_scores, "SMALL_QUERY", 0)
    return request.param


def test_extreme_scores_do_not_overflow(path):
    rows = [(0, 1, 1e6, 0.0, 0.0), (1, 2, 0.0, 1e6, 1.0), (2, 3, 3.0, 1.0, 0.0)]
    start = np.array([800.0, -800.0, 600.0, 0.0])
    for how in VARIANTS.values():
        found = contest_scores.fit_contests(made(rows, 4), start=start, **how)
        again = contest_scores.fit_contests(made(rows, 4), **how)
        assert found.converged.all()
        np.testing.assert_allclose(found.scores, again.scores, atol=1e-7)


# -- solutions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_solution_has_no_slope(path, name, with_side):
    rows, how = some(1), VARIANTS[name]
    side = sides(rows) if with_side else None
    found = contest_scores.fit_contests(made(rows, 6, side), **how)
    assert found.converged.all()
    more = [found.extra[n][0] for n in ("width", "advantage") if not np.isnan(found.extra[n][0])]
    x = np.concatenate((found.scores, more))

    def loss(y):
        return plain.loss(rows, y, 6, side=side, **how)

    slope = optimize.approx_fprime(x, loss, 1e-5), optimize.approx_fprime(x, loss, -1e-5)
    np.testing.assert_allclose((slope[0] + slope[1]) / 2, 0, atol=1e-7)  # convex: no slope, no better place
    assert found.objective[0] == pytest.approx(loss(x), rel=1e-10)
    assert found.gradient[0] < 1e-6


def logistic(rows, size, l2, side=None):
    """Ridge logistic regression on the design matrix of single votes, by scipy."""
    design = np.zeros((len(rows), size + (side is not None)))
    for n, (i, j, *_) in enumerate(rows):
        design[n, i], design[n, j] = 1.0, -1.0
    if side is not None:
        design[:, -1] = side
    won, lost = (np.array([r[c] for r in rows]) for c in (2, 3))
    ridge = np.full(design.shape[1], l2)
    ridge[size:] = 1e-6

    def value(x):
        d = design @ x
        p = 1 / (1 + np.exp(-d))
        f = won @ np.logaddexp(0, -d) + lost @ np.logaddexp(0, d) + ridge @ x**2 / 2
        return f, design.T @ ((won + lost) * p - won) + ridge * x

    best = optimize.minimize(
        value,
        np.zeros(len(ridge)),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10**4},
    )
    return best.x


@pytest.mark.parametrize("size", [3, 40, 200])
@pytest.mark.parametrize("with_side", [False, True])
def test_equals_logistic_regression(path, size, with_side):
    rows = some(2, size, ties=False)
    side = sides(rows, 1) if with_side else None
    found = contest_scores.fit_contests(made(rows, size, side), l2=0.3)
    expected = logistic(rows, size, 0.3, side)
    np.testing.assert_allclose(found.scores, expected[:size], atol=1e-6)
    if with_side:
        assert found.extra["advantage"][0] == pytest.approx(expected[-1], abs=1e-6)


def baseball():
    wins = np.array(list(BASEBALL.values()), np.float64)
    rows = [(i, j, wins[i, j], wins[j, i], 0.0) for i, j in itertools.combinations(range(7), 2)]
    return made(rows, 7)


def test_published_estimates_and_errors(path):
    met = baseball()
    found = contest_scores.fit_contests(met, l2=0.0)
    assert (found.scores - found.scores[-1]).round(3).tolist() == [
        1.581,
        1.436,
        1.294,
        1.248,
        1.108,
        0.684,
        0.0,
    ]
    information = contest_scores.compute_hessian(met, found, 0, prior=False).to_dense()
    errors = np.sqrt(np.diag(np.linalg.inv(information[:-1, :-1])))
    assert errors.round(3).tolist() == [0.343, 0.340, 0.337, 0.336, 0.334, 0.332]


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_two_items_fit_their_frequencies(path, ties):
    found = contest_scores.fit_contests(made([(0, 1, 50.0, 20.0, 30.0)], 2), ties=ties, l2=1e-9)
    chances = plain.chances("bradley_terry", ties, *found.scores, found.extra["width"][0])
    assert chances == pytest.approx((0.5, 0.2, 0.3), abs=1e-6)


def test_models_of_ties_without_ties_are_the_plain_one(path):
    met = made(some(4, ties=False), 6)
    expected = contest_scores.fit_contests(met, ties="ignore").scores
    for ties in ("half", "davidson", "rao_kupper"):
        found = contest_scores.fit_contests(met, ties=ties)
        np.testing.assert_allclose(found.scores, expected, atol=1e-12)
        assert np.isnan(found.extra["width"][0])


def test_without_a_prior_there_may_be_no_answer(path):
    """No error and no hang, but a plain word that it did not converge; what has an answer has one."""
    found = contest_scores.fit_contests(made([(0, 1, 2.0, 0.0, 0.0), (2, 3, 1.0, 1.0, 0.0)], 5), l2=0.0)
    assert not found.converged[0]
    assert found.scores[0] > 10
    fine = contest_scores.fit_contests(made([(0, 1, 2.0, 1.0, 0.0), (2, 3, 1.0, 1.0, 0.0)], 5), l2=0.0)
    assert fine.converged[0]
    np.testing.assert_allclose(fine.scores, [np.log(2) / 2, -np.log(2) / 2, 0, 0, 0], atol=1e-9)


def test_only_ties(path):
    for how in VARIANTS.values():
        found = contest_scores.fit_contests(made([(0, 1, 0.0, 0.0, 5.0)], 2), **how)
        assert found.converged.all()
        np.testing.assert_allclose(found.scores, 0.0, atol=1e-9)


# -- where the votes leave something open --------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("times", [1.0, 1e6, 1e12])
def test_separable_stays_finite_and_in_order(path, l2, times):
    """a > b > c only: the middle one is at 0, the ends mirror each other and satisfy their own equation."""
    found = contest_scores.fit_contests(made([(0, 1, times, 0.0, 0.0), (1, 2, times, 0.0, 0.0)], 3), l2=l2)
    a, b, c = found.scores
    assert found.converged.all()
    assert b == pytest.approx(0.0, abs=1e-6)
    assert a == pytest.approx(-c, abs=1e-6)
    assert times / (1 + np.exp(a - b)) == pytest.approx(l2 * a, rel=1e-6)


def test_components_and_strangers_have_mean_zero(path):
    rows = [(0, 1, 3.0, 1.0, 0.0), (2, 3, 1.0, 4.0, 0.0), (2, 4, 2.0, 2.0, 0.0)]
    found = contest_scores.fit_contests(made(rows, 6), l2=1e-4)
    assert found.component.tolist() == [0, 0, 2, 2, 2, 5]
    np.testing.assert_allclose(
        [found.scores[:2].sum(), found.scores[2:5].sum(), found.scores[5]], 0, atol=1e-12
    )
    alone = contest_scores.fit_contests(made([(0, 1, 3.0, 1.0, 0.0)], 2), l2=1e-4)
    np.testing.assert_allclose(found.scores[:2], alone.scores, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_votes_and_prior_scaled_alike_give_the_same(path, scale):
    rows = some(5)
    scaled = [(i, j, *(scale * c for c in counts)) for i, j, *counts in rows]
    a = contest_scores.fit_contests(made(rows, 6), l2=1e-3, ties="half")
    b = contest_scores.fit_contests(made(scaled, 6), l2=1e-3 * scale, ties="half")
    assert b.converged.all()
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-8)


def test_a_long_chain(path):
    """Items that hang together by one vote each way: hard for conjugate gradients, not for the answer."""
    size = 600
    rows = [(i, i + 1, 2.0, 1.0, 0.0) for i in range(size - 1)]
    found = contest_scores.fit_contests(made(rows, size), l2=1e-9)
    assert found.converged.all()
    np.testing.assert_allclose(np.diff(found.scores), -np.log(2), atol=2e-3)


@pytest.mark.parametrize("l2", [1e-9, 1e-3])
def test_two_crowds_with_one_contest_between_them(monkeypatch, l2):
    """The one contest weighs next to nothing in the gradient, and decides how far the two are apart."""
    half = some(11, 40)
    rows = sorted([*half, *((i + 40, j + 40, *c) for i, j, *c in half), (3, 47, 1.0, 0.0, 0.0)])
    found = []
    for thread_work in (10**12, 0):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        monkeypatch.setattr(contest_scores, "SMALL_QUERY", 0)
        found.append(contest_scores.fit_contests(made(rows, 80), l2=l2))
        assert found[-1].converged[0]
    np.testing.assert_allclose(found[1].scores, found[0].scores, atol=1e-7)


def test_weights_of_very_different_size(monkeypatch):
    random = np.random.default_rng(0)
    for seed in range(8):
        rows = [
            (i, j, *(np.array(c) * 10.0 ** random.integers(-6, 10) * (random.random(3) < 0.7)))
            for i, j, *c in some(seed, 8)
        ]
        rows = [r for r in rows if sum(r[2:]) > 0]
        for how in ({"ties": "half"}, {"ties": "ignore"}, {"model": "thurstone"}, {"shape": 1.5}):
            found = []
            for thread_work, limit in ((10**12, 128), (0, 128), (0, 0)):
                monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
                monkeypatch.setattr(contest_scores, "SMALL_QUERY", limit)
                found.append(contest_scores.fit_contests(made(rows, 8), **how))
            assert all(f.converged[0] for f in found)
            np.testing.assert_allclose([f.scores for f in found[1:]], [found[0].scores] * 2, atol=1e-5)


def test_order_of_slots_does_not_matter(path):
    random = np.random.default_rng(0)
    rows, size = some(7, 30), 30
    to = random.permutation(size)
    moved = sorted(
        (to[i], to[j], w, o, t) if to[i] < to[j] else (to[j], to[i], o, w, t) for i, j, w, o, t in rows
    )
    for how in VARIANTS.values():
        a, b = (
            contest_scores.fit_contests(made(rows, size), **how),
            contest_scores.fit_contests(made(moved, size), **how),
        )
        np.testing.assert_allclose(a.scores, b.scores[to], atol=1e-9)


# -- how it stops --------------------------------------------------------------------------------------------------


def test_the_default_stop_is_the_limit(path):
    for how in VARIANTS.values():
        for rows, size in ((some(8, 12), 12), (some(9, 150), 150)):
            a = contest_scores.fit_contests(made(rows, size), **how)
            b = contest_scores.fit_contests(made(rows, size), tolerance=1e-13, **how)
            np.testing.assert_allclose(a.scores, b.scores, atol=1e-8)


def test_too_few_steps_are_reported(path):
    found = contest_scores.fit_contests(made(some(1), 6), max_iterations=1)
    assert not found.converged[0]
    assert found.iterations[0] == 1
    assert found.gradient[0] > 1e-6


def test_a_good_start_saves_steps(path):
    met = made(some(1), 6)
    cold = contest_scores.fit_contests(met)
    assert contest_scores.fit_contests(met, start=cold.scores).iterations[0] < cold.iterations[0]


def test_many_queries_at_once_equal_one_at_a_time(path, monkeypatch):
    parts = [made(some(s, 3 + s % 5), 3 + s % 5) for s in range(12)]
    slots = np.cumsum([0, *(p.starts[-1] for p in parts)])
    joined = contest_scores.Contests(
        slots,
        np.cumsum([0, *(len(p.first) for p in parts)]),
        *(
            np.concatenate([p[c] + b for p, b in zip(parts, slots, strict=False)]).astype(np.int32)
            for c in (2, 3)
        ),
        *(np.concatenate([p[c] for p in parts]) for c in (4, 5, 6)),
    )
    for how in VARIANTS.values():
        alone = [contest_scores.fit_contests(p, **how) for p in parts]
        for threads in ("1", "2"):
            monkeypatch.setenv("PODIUM_THREADS", threads)
            found = contest_scores.fit_contests(joined, **how)
            assert found.scores.tobytes() == np.concatenate([a.scores for a in alone]).tobytes()
            assert found.gradient.tolist() == [a.gradient[0] for a in alone]


@pytest.mark.parametrize("name", VARIANTS)
def test_chunks_on_any_number_of_threads(monkeypatch, name):
    met, how = made(some(3, 20), 20, sides(some(3, 20))), VARIANTS[name]
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    monkeypatch.setattr(contest_scores, "SMALL_QUERY", 0)
    whole = contest_scores.fit_contests(met, **how)
    monkeypatch.setattr(contest_solvers, "CHUNK", 0)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        found.append(contest_scores.fit_contests(met, **how))
    assert len({f.scores.tobytes() for f in found}) == 1
    np.testing.assert_allclose(found[0].scores, whole.scores, atol=1e-9)
    np.testing.assert_allclose(found[0].objective, whole.objective, rtol=1e-12)


def test_unknown_names():
    with pytest.raises(ParameterError, match="thurstone does not support ties='davidson'"):
        contest_scores.fit_contests(baseball(), model="thurstone", ties="davidson")


def test_no_contests(path):
    empty = contest_scores.Contests(
        np.array([0, 2, 2]), np.zeros(3, np.int64), *[np.zeros(0, np.int32)] * 2, *[np.zeros(0)] * 3
    )
    found = contest_scores.fit_contests(empty)
    assert found.scores.tolist() == [0, 0]
    assert found.converged.all()
