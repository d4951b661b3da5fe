"""Isotonic regression in many queries, against the min-max formula, scipy and brute force."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from podium.kernels import dispatch
from podium.kernels.isotonic import BlockOrder, build_block_order, project_isotonic
from reference.isotonic import fit_falling

VALUES = st.lists(st.integers(-5, 5), min_size=1, max_size=9)


def in_order(n: int) -> BlockOrder:
    return build_block_order(-np.arange(n, dtype=float), np.array([0, n]))


@given(VALUES)
def test_the_min_max_formula(values):
    given_ = np.array(values, float)
    assert np.allclose(project_isotonic(given_, in_order(len(values))), fit_falling(given_))


@pytest.mark.parametrize("threads", [False, True])
def test_many_queries_equal_scipy_one_by_one(threads, monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0 if threads else 10**9)
    random = np.random.default_rng(0)
    starts = np.concatenate(([0], np.cumsum(random.integers(0, 40, 60))))
    values, scores = random.normal(size=starts[-1]), random.normal(size=starts[-1])
    order = build_block_order(scores, starts)
    found = project_isotonic(values, order)
    for a, b in pairwise(starts):
        rows = order.rows[a:b]
        assert (np.diff(scores[rows]) <= 0).all()
        if b > a:
            assert np.allclose(found[rows], isotonic_regression(values[rows], increasing=False).x)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-4, 4)), min_size=1, max_size=4))
def test_a_free_block_in_the_order_of_its_values_is_the_nearest_of_all(pairs):
    scores, values = (np.array(column, float) for column in zip(*pairs, strict=True))
    n = len(scores)
    found = project_isotonic(values, build_block_order(scores, np.array([0, n]), values))
    best = min(
        float(np.sum((fit_falling(values[list(rows)]) - values[list(rows)]) ** 2))
        for rows in permutations(range(n))
        if (np.diff(scores[list(rows)]) <= 0).all()
    )
    assert np.isclose(np.sum((found - values) ** 2), best)


def test_targets_of_blocks_keep_their_margin():
    random = np.random.default_rng(1)
    values = random.normal(size=50)
    found = project_isotonic(values, in_order(50), margin=0.1)
    assert (np.diff(found) <= -0.1 + 1e-12).all()
    feasible = np.sort(random.normal(size=50) * 3)[::-1] - 0.1 * np.arange(50)
    assert np.sum((found - values) ** 2) <= np.sum((feasible - values) ** 2)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([np.nan, 0.0, 1.0, 2.0])), min_size=1, max_size=12)
)
def test_known_grades_are_kept(pairs):
    scores, grades = (np.array(column, float) for column in zip(*pairs, strict=True))
    order = build_block_order(scores, np.array([0, len(scores)]), grades=grades)
    assert sorted(order.rows) == list(range(len(scores)))
    seen = grades[order.rows]
    known = ~np.isnan(seen)
    assert (np.diff(seen[known]) <= 0).all()
    for block in np.unique(order.block):
        assert len(set(seen[(order.block == block) & known])) <= 1
