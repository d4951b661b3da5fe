"""Models of contests: derivatives by finite differences, compiled terms against plain ones, the information matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from podium.kernels import contest_models, contest_solvers, contests
from reference import contests as plain
from reference.contests import VARIANTS, made, sides, some


@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_derivatives_by_finite_differences(name, with_side):
    rows, how = some(), VARIANTS[name]
    side = sides(rows) if with_side else None
    met = made(rows, 6, side)
    model = contest_models.model_of(
        how.get("model", "bradley_terry"), how["ties"], how["l2"], how.get("shape", 1.0)
    )
    problem = contests.problem_of(met, 0, model, contests.weak(met))
    random = np.random.default_rng(3)
    x = random.normal(size=problem.unknowns)
    if problem.widths:
        x[6] = 0.7
    dense = contest_solvers.Dense(problem)

    def loss(y):
        return plain.loss(rows, y, 6, side=side, **how)

    at = dense.slope(x)
    numeric = optimize.approx_fprime(x, loss, 1e-6)
    # the part of the gradient that shifts whole components is taken out of the votes' share
    np.testing.assert_allclose(at.gradient, numeric, rtol=2e-4, atol=2e-4)
    steps = np.eye(len(x)) * 1e-6
    matrix = np.array([(dense.slope(x + h).gradient - dense.slope(x - h).gradient) / 2e-6 for h in steps])
    np.testing.assert_allclose(contest_models.second(problem, at), matrix, rtol=1e-5, atol=1e-6)
    assert dense.value(x) + contest_models.prior_value(problem, x) == pytest.approx(loss(x), rel=1e-12)


@pytest.mark.parametrize("kind", range(4))
def test_compiled_terms_equal_plain_ones_far_out(kind):
    from podium.kernels.compiled import contest_solvers as compiled

    d = np.concatenate((np.linspace(-700, 700, 141), np.linspace(-40, 40, 161), np.linspace(-6, -4, 41)))
    won, lost, tied = (np.full_like(d, v) for v in (2.0, 3.0, 0.0 if kind < 2 else 1.5))
    value, *slopes = contest_models.terms(kind, d, 0.4, won, lost, tied)
    for n, here in enumerate(d.tolist()):
        case = (kind, here, 0.4, won[n], lost[n], tied[n])
        assert compiled.pair_value(*case) == pytest.approx(value[n], rel=1e-12)
        assert compiled.term(*case) == pytest.approx([v[n] for v in slopes], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("with_side", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_information_is_the_matrix_of_second_derivatives(name, with_side):
    rows = some(6)
    met = made(rows, 6, sides(rows) if with_side else None)
    found = contests.solve(met, **VARIANTS[name])
    problem = contests.problem_of(met, 0, found.model, found.component)
    more = [found.extra[n][0] for n in ("width", "advantage") if not np.isnan(found.extra[n][0])]
    at = contest_models.slope(problem, np.concatenate((found.scores, more)))
    whole = contests.hessian(met, found, 0)
    np.testing.assert_allclose(whole.toarray(), contest_models.second(problem, at), atol=1e-12)
    votes_alone = contests.hessian(met, found, 0, prior=False).toarray()
    np.testing.assert_allclose(
        votes_alone[:6, :6].sum(axis=1), 0, atol=1e-9
    )  # shifts do not change the votes
