"""Sums over votes with covariates, against a dense design matrix; the fit, against its conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest

from podium.kernels.contextual_contests import (
    ContextualVotes,
    add_up_by_cluster,
    add_up_gradients,
    bootstrap_contextual,
    compute_logits,
    compute_products,
    fit_contextual,
)


def make_votes(seed, votes=60, items=4, covariates=3):
    random = np.random.default_rng(seed)
    first = random.integers(0, items, votes)
    second = (first + random.integers(1, items, votes)) % items
    outcome, weight = random.choice([0, 0.25, 0.5, 1], votes), random.uniform(0.1, 2, votes)
    x = random.normal(size=(votes, covariates))
    design = np.zeros((votes, items))
    design[np.arange(votes), first] = 1
    design[np.arange(votes), second] = -1
    return ContextualVotes(items, first, second, outcome, weight, x), np.hstack([design, x]), random


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("covariates", [0, 1, 3])
def test_sums_equal_those_of_the_dense_design(seed, covariates):
    votes, design, random = make_votes(seed, covariates=covariates)
    values, unknowns = random.normal(size=len(design)), random.normal(size=design.shape[1])
    cluster = random.integers(0, 5, len(design))
    np.testing.assert_allclose(compute_logits(votes, unknowns[:4], unknowns[4:]), design @ unknowns)
    np.testing.assert_allclose(add_up_gradients(votes, values), design.T @ values)
    np.testing.assert_allclose(
        compute_products(votes, values), design.T @ (design * values[:, None]), atol=1e-12
    )
    for squared in (False, True):
        rows = design**2 if squared else design
        expected = np.stack([(rows * values[:, None])[cluster == c].sum(axis=0) for c in range(5)])
        found = add_up_by_cluster(votes, values, cluster, 5, squared=squared)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_has_no_gradient(seed):
    votes, design, random = make_votes(seed)
    offset = random.normal(size=len(design))
    fit = fit_contextual(votes, l2=0.3, ridge=0.7, offset=offset)
    unknowns = np.concatenate([fit.scores, fit.effects])
    chance = 1 / (1 + np.exp(-(design @ unknowns + offset)))
    penalty = np.array([0.3] * 4 + [0.7] * 3)
    gradient = design.T @ (votes.weight * (votes.outcome - chance)) - penalty * unknowns
    assert fit.converged
    assert np.abs(gradient).max() < 1e-6
    np.testing.assert_allclose(fit.residuals, votes.outcome - chance, atol=1e-9)
    curved = design.T @ (design * (votes.weight * chance * (1 - chance))[:, None]) + np.diag(penalty)
    np.testing.assert_allclose(fit.hessian, curved, atol=1e-8)


def test_votes_that_separate_perfectly_still_converge():
    first, second = np.array([0, 0, 1] * 20), np.array([1, 2, 2] * 20)
    votes = ContextualVotes(3, first, second, np.ones(60), np.ones(60), np.zeros((60, 0)))
    fit = fit_contextual(votes, l2=1e-3, ridge=1e-3, start=np.array([-5.0, 0.0, 5.0]))
    assert fit.converged
    assert np.all(np.diff(fit.scores) < 0)


def test_bootstrap_rounds_are_fits_of_resamples():
    """The seventh round, drawn again and fitted with its own Hessian."""
    votes = make_votes(9, votes=400)[0]
    fit = fit_contextual(votes, l2=0.1, ridge=0.1)
    draws = bootstrap_contextual(votes, fit, 50, l2=0.1, ridge=0.1, seed=3, as_counts=False)
    source = np.random.SeedSequence(3).spawn(50)[7]
    weight = votes.weight * np.random.default_rng(source).poisson(1.0, 400)
    exact = fit_contextual(votes._replace(weight=weight), l2=0.1, ridge=0.1)
    np.testing.assert_allclose(draws[7], np.concatenate([exact.scores, exact.effects]), atol=2e-3)
