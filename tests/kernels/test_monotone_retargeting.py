"""The two sides of monotone retargeting: losses by their definitions, fits by finite differences, falling misfits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import rel_entr

from podium.kernels.isotonic import build_block_order
from podium.kernels.monotone_retargeting import (
    LOSSES,
    LinearPredictor,
    RetargetingSettings,
    alternate_fits,
    center_by_query,
    compute_largest_margin,
    compute_target,
    retarget_predictor,
    scale_to_unit,
)

STARTS = np.array([0, 12, 30])


def columns(seed: int, width: int = 3):
    random = np.random.default_rng(seed)
    return np.stack([center_by_query(c, STARTS) for c in random.normal(size=(width, STARTS[-1]))], axis=1)


def target(seed: int):
    return scale_to_unit(center_by_query(np.random.default_rng(seed).normal(size=STARTS[-1]), STARTS))


def test_misfits_by_their_definitions():
    z, u = target(1), columns(2, 1)[:, 0]
    best = float(z @ u) / float(u @ u)
    assert np.isclose(
        LinearPredictor(columns(0), STARTS, "squared", 0, 0).compute_misfit(z, u),
        np.sum((z - best * u) ** 2) / np.sum(z**2),
    )
    told, null = 0.0, 0.0
    for a, b in itertools.pairwise(STARTS):
        p, q = (np.exp(v[a:b]) / np.exp(v[a:b]).sum() for v in (z, u))
        told += (b - a) * rel_entr(p, q).sum()
        null += (b - a) * rel_entr(p, np.full(b - a, 1 / (b - a))).sum()
    assert np.isclose(LinearPredictor(columns(0), STARTS, "kl", 0, 0).compute_misfit(z, u), told / null)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("l1", "positive"), [(0.0, False), (0.0, True), (0.05, True), (0.05, False)])
def test_no_change_of_a_coefficient_improves_a_fit(loss, l1, positive):
    x, z, l2 = columns(3), target(4), 0.01
    side = LinearPredictor(x, STARTS, loss, l1, l2, positive=positive)
    rows = len(z)

    def objective(w):
        u = x @ w
        if loss == "squared":
            value = np.sum((z - u) ** 2)
        else:
            query = np.repeat([0, 1], np.diff(STARTS)) if loss == "kl" else np.zeros(rows, int)
            sums = np.bincount(query, weights=np.exp(z))
            m = np.exp(z) * (np.bincount(query) / sums)[query]
            f = np.exp(u) * (np.bincount(query) / np.bincount(query, weights=np.exp(u)))[query]
            value = np.sum(m * np.log(m / f) - m + f)
        shrink = l2 if loss == "squared" else l2 / 2
        return value + rows * (l1 * np.abs(w).sum() + shrink * w @ w)

    found = side.fit(z)
    for _ in range(40):  # the quasi-Newton fit is cut short on purpose: go on from where it stopped
        found = found if loss == "squared" else _polished(side, z, found)
    here = objective(found)
    for k in range(3):
        for step in (-1e-3, 1e-3):
            other = found.copy()
            other[k] += step
            if not positive or other[k] >= 0:
                assert objective(other) >= here - 1e-7


def _polished(side, z, found):
    used = np.concatenate((np.maximum(found, 0), np.maximum(-found, 0))) if side._split else found
    new = side._fit_exponential(z, used)
    return new[: len(found)] - new[len(found) :] if side._split else new


@pytest.mark.parametrize("loss", LOSSES)
def test_the_misfit_falls_with_every_step(loss):
    side, order = LinearPredictor(columns(5, 6), STARTS, loss, 0, 1e-3), build_block_order(target(6), STARTS)
    begin = side.fit(target(6))
    misfits = [
        retarget_predictor(side, order, begin, RetargetingSettings(loss, steps=steps, tolerance=0.0)).misfit
        for steps in range(1, 8)
    ]
    assert (np.diff(misfits) <= 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_no_step_raises_the_penalized_loss(loss):
    """Of 60 random sides and targets: regression from given coefficients ends below them."""
    l1, l2, rows = 0.02, 1e-6, STARTS[-1]

    def penalized(x, z, w):
        if loss == "squared":
            return np.sum((z - x @ w) ** 2) / rows + l1 * np.abs(w).sum() + l2 * w @ w
        total = 0.0
        for a, b in itertools.pairwise(STARTS) if loss == "kl" else [(0, rows)]:
            p, q = (np.exp(v[a:b]) / np.exp(v[a:b]).sum() for v in (z, x @ w))
            total += (b - a) / rows * rel_entr(p, q).sum()
        return total + l1 * np.abs(w).sum() + l2 / 2 * w @ w

    for seed in range(60):
        x, z = columns(seed, 5), target(100 + seed)
        side = LinearPredictor(x, STARTS, loss, l1, l2, positive=seed % 2 == 0)
        # near the optimum, where a method of few steps from elsewhere may end higher
        start = side.fit(z)
        for _ in range(20):
            start = side.fit(z, start)
        assert penalized(x, z, side.fit(z, start)) <= penalized(x, z, start) + 1e-12


@pytest.mark.parametrize("margin", [0.001, 0.03, 0.15])
def test_a_margin_holds_at_the_scale_of_the_target(margin):
    order = build_block_order(target(6), STARTS)
    for seed in range(10):
        result = compute_target(columns(seed, 1)[:, 0], order, margin)
        gaps = np.diff(result[order.rows])
        assert (gaps[np.arange(len(gaps)) != STARTS[1] - 1] <= -margin + 1e-9).all()
        assert np.sqrt(np.mean(result**2)) == pytest.approx(1.0)


def test_the_largest_margin_is_that_of_equal_steps():
    order = build_block_order(target(6), STARTS)
    most = compute_largest_margin(np.diff(STARTS))
    result = compute_target(columns(1, 1)[:, 0], order, most)
    assert np.diff(result[order.rows])[:10] == pytest.approx(-most)
    assert compute_largest_margin(np.array([2])) == pytest.approx(2.0)  # targets 1 and -1


@pytest.mark.parametrize("handover", [False, True])
def test_two_sides_that_can_agree_do(handover):
    x = columns(7, 4)
    truth = x @ np.array([1.0, -2.0, 0.5, 0.0])
    noise = columns(8, 2)
    lists = LinearPredictor(
        np.column_stack((np.tanh(truth), noise)), STARTS, "squared", 0.01, 1e-6, positive=True
    )
    features = LinearPredictor(x, STARTS, "squared", 0, 1e-6)
    found = alternate_fits(
        lists, features, np.array([1.0, 0.0, 0.0]), RetargetingSettings(steps=200), handover=handover
    )
    assert found.objective < 1e-3
    assert found.objective == min(found.history)
    assert np.argmax(found.lists.coefficients) == 0
