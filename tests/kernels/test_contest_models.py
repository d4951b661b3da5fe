"""Models of contests: derivatives by finite differences, compiled terms against plain ones, the information matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from podium.kernels import contest_models, contest_scores, contest_solvers
from reference import contests as plain
from reference.contests import VARIANTS, made, sides, some


@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_derivatives_by_finite_differences(name, with_side):
    rows, how = some(), VARIANTS[name]
    side = sides(rows) if with_side else None
    met = made(rows, 6, side)
    model = contest_models.resolve_contest_model(
        how.get("model", "bradley_terry"), how["ties"], how["l2"], how.get("shape", 1.0)
    )
    problem = contest_scores.build_query_problem(met, 0, model, contest_scores.find_weak_components(met))
    random = np.random.default_rng(3)
    x = random.normal(size=problem.unknowns)
    if problem.widths:
        x[6] = 0.7
    dense = contest_solvers.DenseNewton(problem)

    def loss(y):
        return plain.loss(rows, y, 6, side=side, **how)

    at = dense.compute_derivatives(x)
    numeric = optimize.approx_fprime(x, loss, 1e-6)
    # the part of the gradient that shifts whole components is taken out of the votes' share
    np.testing.assert_allclose(at.gradient, numeric, rtol=2e-4, atol=2e-4)
    steps = np.eye(len(x)) * 1e-6
    matrix = np.array(
        [
            (dense.compute_derivatives(x + h).gradient - dense.compute_derivatives(x - h).gradient) / 2e-6
            for h in steps
        ]
    )
    np.testing.assert_allclose(contest_models.build_dense_hessian(problem, at), matrix, rtol=1e-5, atol=1e-6)
    assert dense.compute_value(x) + contest_models.compute_prior_value(problem, x) == pytest.approx(
        loss(x), rel=1e-12
    )


@pytest.mark.parametrize("kind", range(4))
def test_compiled_terms_equal_plain_ones_far_out(kind):
    from podium._core import contest_pairs as core

    d = np.concatenate((np.linspace(-700, 700, 141), np.linspace(-40, 40, 161), np.linspace(-6, -4, 41)))
    won, lost, tied = (np.full_like(d, v) for v in (2.0, 3.0, 0.0 if kind < 2 else 1.5))
    value, *slopes = contest_models.compute_terms(kind, d, 0.4, won, lost, tied)
    cuts, ends = np.array([0, 1]), (np.array([0], np.int32), np.array([1], np.int32))
    for n, here in enumerate(d.tolist()):
        # one pair of items whose scores differ by d, and the width of ties
        pairs = (*ends, won[n : n + 1], lost[n : n + 1], tied[n : n + 1], np.zeros(0))
        x, out = np.array([here, 0.0, 0.4]), np.zeros(1)
        core.compute_values(0, 1, cuts, pairs, 0, kind, False, x, 0.4, 0.0, out)
        assert out[0] == pytest.approx(value[n], rel=1e-12)
        bend, room, corner = np.zeros(1), np.zeros((1, 2, 4)), np.zeros((1, 5))
        core.compute_derivatives(0, 1, cuts, pairs, 0, kind, False, x, 2, bend, room, corner)
        sums = (room[0, 0, 1], bend[0], corner[0, 0], room[0, 0, 3], corner[0, 1])
        assert sums == pytest.approx([v[n] for v in slopes], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_information_is_the_matrix_of_second_derivatives(name, with_side):
    rows = some(6)
    met = made(rows, 6, sides(rows) if with_side else None)
    found = contest_scores.fit_contests(met, **VARIANTS[name])
    problem = contest_scores.build_query_problem(met, 0, found.model, found.component)
    more = [found.extra[n][0] for n in ("width", "advantage") if not np.isnan(found.extra[n][0])]
    at = contest_models.compute_derivatives(problem, np.concatenate((found.scores, more)))
    whole = contest_scores.compute_hessian(met, found, 0)
    np.testing.assert_allclose(whole.to_dense(), contest_models.build_dense_hessian(problem, at), atol=1e-12)
    votes_alone = contest_scores.compute_hessian(met, found, 0, prior=False).to_dense()
    np.testing.assert_allclose(
        votes_alone[:6, :6].sum(axis=1), 0, atol=1e-9
    )  # shifts do not change the votes
