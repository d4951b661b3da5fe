"""Gradients towards beliefs, by one thread and by several, against plain loops and finite differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.kernels import belief_lambdas, dispatch
from reference import array_beliefs
from reference import beliefs as plain


def drawn(seed, n, tied):
    random = np.random.default_rng(seed)
    s, t = random.normal(size=n), 2 * random.normal(size=n)
    if tied:
        s, t = np.round(s), np.round(t)
    return s, t


def both(monkeypatch, *arguments):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 10**12)
    small = belief_lambdas.compute_belief_lambdas(*arguments)
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    return small, belief_lambdas.compute_belief_lambdas(*arguments)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("cutoff", [1, 3, 10, 10**9])
def test_gradients_equal_the_plain_loops(monkeypatch, cutoff, tied):
    sizes = [0, 1, 2, 3, 7, 12]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    s, t = drawn(cutoff % 97, starts[-1], tied)
    for found in both(monkeypatch, s, t, starts, cutoff):
        for q, (a, b) in enumerate(pairwise(starts)):
            x, y = s[a:b].tolist(), t[a:b].tolist()
            weights = plain.pair_weights(x, y, cutoff)
            np.testing.assert_allclose(found.slope[a:b], plain.slope(x, y, cutoff), atol=1e-12)
            assert found.loss[q] == pytest.approx(plain.loss(x, y, weights), abs=1e-11)
            assert found.mass[q] == pytest.approx(sum(weights.values()), abs=1e-11)


def test_equal_beliefs_have_no_loss_however_far_the_scores_are_apart():
    scores, belief = drawn(3, 60, tied=False)[0] * 1e12, np.full(60, 0.7)
    found = belief_lambdas.compute_belief_lambdas(scores, belief, np.array([0, 60]), 10)
    assert found.loss.tolist() == found.mass.tolist() == [0.0]
    assert not found.slope.any()


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 9), cutoff=st.integers(1, 10), seed=st.integers(0, 10**6))
def test_changes_are_what_swaps_do(n, cutoff, seed):
    s, t = drawn(seed, n, tied=False)
    order = plain.ranking(s.tolist(), t.tolist())
    p = 1 / (1 + np.exp(t[order][None, :] - t[order][:, None]))
    found = array_beliefs.compute_swap_changes(p, cutoff)
    for a in range(n):
        for b in range(a + 1, n):
            assert found[a, b] == pytest.approx(
                plain.swap_change(order, t.tolist(), cutoff, order[a], order[b]), abs=1e-12
            )


def test_the_slope_is_the_gradient_of_the_loss_with_the_weights_held():
    s, t = drawn(5, 9, tied=False)
    weights = plain.pair_weights(s.tolist(), t.tolist(), 4)
    found = belief_lambdas.compute_belief_lambdas(s, t, np.array([0, 9]), 4).slope
    for i in range(9):
        step = np.eye(9)[i] * 1e-6
        up, down = (plain.loss((s + sign * step).tolist(), t.tolist(), weights) for sign in (1, -1))
        assert found[i] == pytest.approx((down - up) / 2e-6, abs=1e-8)


def test_the_believed_order_is_the_best_one():
    from itertools import permutations

    t = [0.3, -1.2, 2.0, 0.9, -0.1]
    best = max(permutations(range(5)), key=lambda order: plain.quality(order, t, 3))
    assert list(best)[:3] == sorted(range(5), key=lambda i: -t[i])[:3]


def test_nothing_pulls_where_the_scores_are_the_beliefs_and_steep_scores_stay_finite(monkeypatch):
    _, t = drawn(3, 20, tied=False)
    starts = np.array([0, 20])
    assert np.abs(belief_lambdas.compute_belief_lambdas(t, t, starts, 10).slope).max() < 1e-12
    for found in both(monkeypatch, 1e5 * t, -1e5 * t, starts, 10):
        assert np.isfinite(found.slope).all()
        assert np.isfinite(found.loss).all()


def test_threads_do_not_matter(monkeypatch):
    sizes = np.random.default_rng(0).integers(1, 60, 300)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    s, t = drawn(1, starts[-1], tied=True)
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    found = []
    for threads in ("1", "4"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        found.append(belief_lambdas.compute_belief_lambdas(s, t, starts, 10))
    for one, four in zip(*found, strict=True):
        assert np.array_equal(one, four)
