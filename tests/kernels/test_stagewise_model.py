"""Stagewise rankings against the definition of the coset distance, in one thread and in several."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from podium.kernels import dispatch, stagewise_model
from reference import stagewise as plain

quick = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = pytest.mark.parametrize("kind", stagewise_model.DISTANCES)


@pytest.fixture(params=["one thread", "threads"])
def path(request, monkeypatch):
    if request.param == "threads":
        monkeypatch.setattr(dispatch, "THREAD_WORK", 0)


@st.composite
def queries(draw, most=5):
    """Places with ties (as shared places make them) and a theta for every expert."""
    items, experts = draw(st.integers(1, most)), draw(st.integers(1, 3))
    values = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=items, max_size=items), min_size=experts, max_size=experts
        )
    )
    theta = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.5, -0.5]), min_size=experts, max_size=experts))
    return np.array([rankdata(v) for v in values]).T, np.array(theta)


@KINDS
@quick
@given(queries(), st.data())
def test_distances_are_coset_distances_up_to_a_constant(kind, query, data):
    places, _ = query
    n = len(places)
    order = data.draw(st.permutations(range(n)))
    top = order[: data.draw(st.integers(0, n - 1))]
    left = [x for x in range(n) if x not in top]
    found = stagewise_model.compute_coset_distances(places[left], len(top), kind)
    for k in range(places.shape[1]):
        column = places[:, k].tolist()
        exact = [plain.coset_distance([*top, x], column, kind) for x in left]
        assert np.ptp(found[:, k] - exact) < 1e-9


@KINDS
def test_stage_probabilities_make_a_distribution_over_rankings(kind):
    """All rankings of three items: probabilities from `distances` sum to one and are those of the definition."""
    places, theta = np.array([[1.0, 2.5], [2.0, 1.0], [3.0, 2.5]]), np.array([0.7, 0.3])
    total = 0.0
    for order in itertools.permutations(range(3)):
        logp = 0.0
        for i in range(3):
            cost = stagewise_model.compute_coset_distances(places[list(order[i:])], i, kind) @ theta
            share = np.exp(-cost) / np.exp(-cost).sum()
            assert share.sum() == pytest.approx(1.0)
            logp += math.log(share[0])
        assert logp == pytest.approx(plain.log_probability(list(order), places.tolist(), theta, kind))
        total += math.exp(logp)
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["kendall", "footrule"])
@quick
@given(st.lists(queries(), min_size=1, max_size=3))
def test_stage_scores_equal_the_twin(path, kind, several):
    theta = several[0][1]
    tables = [p for p, t in several if len(t) == len(theta)]
    starts = np.concatenate(([0], np.cumsum([len(p) for p in tables])))
    found = stagewise_model.compute_stage_scores(np.concatenate(tables), starts, theta, kind)
    expected = [s for p in tables for s in plain.compute_stage_scores(p.tolist(), theta.tolist(), kind)]
    assert found.tolist() == expected


@quick
@given(queries())
def test_spearman_is_the_order_of_weighted_places(query):
    places, theta = query
    found = stagewise_model.compute_stage_scores(places, np.array([0, len(places)]), theta, "spearman")
    expected = np.array(plain.compute_stage_scores(places.tolist(), theta.tolist(), "spearman"))
    for x, y in itertools.permutations(range(len(places)), 2):
        if expected[x] > expected[y]:
            assert found[x] > found[y] - 1e-9
    assert not (np.diff(found[np.argsort(-expected, kind="stable")]) > 1e-9).any()


@pytest.mark.parametrize("kind", ["kendall", "footrule"])
def test_both_paths_agree_on_long_lists(kind, monkeypatch):
    random = np.random.default_rng(3)
    sizes = [0, 1, 60, 33]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.concatenate(
        [rankdata(random.integers(0, 25, (n, 4)), axis=0) if n else np.zeros((0, 4)) for n in sizes]
    )
    theta = random.random(4)
    found = []
    for thread_work in (10**12, 0):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        found.append(stagewise_model.compute_stage_scores(places, starts, theta, kind))
    assert found[0].tolist() == found[1].tolist()
    inside = np.flatnonzero(starts[:-1] < starts[1:])
    assert [float(found[0][a:b].sum()) for a, b in itertools.pairwise(starts[inside[0] :])] == [0.0, 0.0, 0.0]
