"""Rank laws against all outcomes, against each other, and their expectations."""

from __future__ import annotations

import numpy as np
import pytest

from podium.kernels import dispatch, poisson_binomial
from podium.kernels.poisson_binomial import OpponentTable, PowerSum
from reference import rank_laws as plain


@pytest.fixture(params=["one thread", "threads"])
def path(request, monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 10**12 if request.param == "one thread" else 0)


def made(rng, size, rows):
    """Contests of random rows of one group in a query of that size, and their win probabilities for a tilt of 1."""
    lengths = rng.integers(0, 6, rows)
    last = np.cumsum(lengths)
    value, own = rng.integers(0, 4, last[-1]).astype(float), rng.integers(0, 4, rows).astype(float)
    many = rng.integers(1, 4, last[-1])
    first = last - lengths
    met = [int(many[a:b].sum()) for a, b in zip(first, last, strict=True)]
    unjudged_items = np.array([(size - 1 - m) // 2 for m in met])
    unjudged_edge = np.where(rng.random(rows) < 0.5, rng.uniform(-0.5, 0.5, rows), 0.0)
    unjudged_edge[unjudged_items == 0] = 0.0
    slope, step = np.array([0.1]), 0.05
    win, uneven = [], []
    for k in range(rows):
        at = slice(first[k], last[k])
        d = np.repeat(own[k] - value[at], many[at])
        edge = slope[0] * d + step * np.sign(d)
        edge = np.concatenate((edge, np.full(unjudged_items[k], unjudged_edge[k])))
        win.append(np.concatenate((0.5 + edge, np.full(size - 1 - len(edge), 0.5))))
        uneven.append(int((edge != 0).sum()))
    zero = np.zeros(rows, np.int64)
    sizes = np.full(rows, size - 1)
    contests = OpponentTable(
        zero,
        own,
        first,
        last,
        value,
        many,
        slope,
        step,
        unjudged_edge,
        unjudged_items,
        sizes,
        np.array(uneven),
    )
    return contests, win


# -- whole laws ----------------------------------------------------------------------------------------------------


def test_laws_are_those_of_all_outcomes(path):
    rng = np.random.default_rng(0)
    for contests in range(9):
        win = rng.random((4, contests))
        win[0], win[1, : contests // 2] = 0.5, 1.0
        expected = [plain.law(row) for row in win.tolist()]
        for way in (
            poisson_binomial.compute_rank_distributions,
            poisson_binomial.convolve_directly,
            lambda w: poisson_binomial.convolve_by_fft(w, leaf=2),
        ):
            np.testing.assert_allclose(way(win), expected, atol=1e-15)


@pytest.mark.parametrize("contests", [1, 2, 3, 63, 64, 65, 200, 1025])
def test_tree_equals_direct(path, contests):
    win = np.random.default_rng(contests).random((3, contests))
    np.testing.assert_allclose(
        poisson_binomial.convolve_by_fft(win, leaf=16), poisson_binomial.convolve_directly(win), atol=1e-15
    )


def test_threads_give_the_same_bits(monkeypatch):
    win = np.random.default_rng(1).random((5, 300))
    found = []
    for thread_work in (10**12, 0):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        found.append(poisson_binomial.convolve_directly(win))
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0][0], plain.convolved(win[0].tolist()), rtol=1e-12)


@pytest.mark.parametrize(
    "way",
    [
        poisson_binomial.compute_rank_distributions,
        poisson_binomial.convolve_directly,
        poisson_binomial.convolve_by_fft,
    ],
)
def test_five_thousand_items(way):
    rng = np.random.default_rng(2)
    win = np.stack([rng.random(4_999), np.full(4_999, 0.5), rng.beta(0.1, 0.1, 4_999), np.ones(4_999)])
    law = way(win)
    assert law.min() >= 0
    np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-12)
    ranks = np.arange(5_000)
    np.testing.assert_allclose(law @ ranks, (1 - win).sum(axis=1), rtol=1e-10, atol=1e-9)
    spread = law @ ranks**2 - (law @ ranks) ** 2
    np.testing.assert_allclose(spread, (win * (1 - win)).sum(axis=1), rtol=1e-6, atol=1e-6)


# -- expected discounts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
@pytest.mark.parametrize("tilt", [1.0, 0.3, 0.0, -0.8])
def test_excess_is_that_of_the_whole_law(path, measure, tilt):
    size = 60
    contests, win = made(np.random.default_rng(3), size, 30)
    discount = plain.discounts(measure, size)
    even = plain.expected([0.5] * (size - 1), discount)
    want = [plain.expected((0.5 + tilt * (w - 0.5)).tolist(), discount) - even for w in win]
    table = poisson_binomial.compute_discount_drops(contests, -np.diff(discount))
    found = poisson_binomial.compute_excess_discount(contests, np.array([tilt]), table)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-14)
    powers = poisson_binomial.approximate_log_discount(size)
    if measure == "rbp":
        powers = PowerSum(-np.log([0.95]), np.array([0.05]))
    np.testing.assert_allclose(
        poisson_binomial.compute_power_excess(contests, np.array([tilt]), powers), want, rtol=1e-9, atol=1e-12
    )


def test_excess_gives_the_same_bits(monkeypatch):
    contests, _ = made(np.random.default_rng(4), 50, 200)
    table = poisson_binomial.compute_discount_drops(contests, np.random.default_rng(5).random(49))
    found = []
    for thread_work in (10**12, 0):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        found.append(poisson_binomial.compute_excess_discount(contests, np.array([0.7]), table))
    assert found[0].tobytes() == found[1].tobytes()


def test_small_excess_does_not_cancel(path):
    """One contest of 5,000 that is nearly even: the sum of rounding errors of a law would be larger than that."""
    size, edge = 5_000, 1e-8
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    contests = OpponentTable(
        zero,
        np.ones(1),
        zero,
        one,
        np.zeros(1),
        one,
        np.array([edge]),
        0.0,
        np.zeros(1),
        zero,
        one * (size - 1),
        one,
    )
    drop = -np.diff(plain.discounts("ndcg", size))
    law = poisson_binomial.convolve_directly(np.full((1, size - 2), 0.5))[0]
    want = edge * float(law @ drop)
    found = poisson_binomial.compute_excess_discount(
        contests, np.ones(1), poisson_binomial.compute_discount_drops(contests, drop)
    )
    np.testing.assert_allclose(found, want, rtol=1e-9)
    np.testing.assert_allclose(
        poisson_binomial.compute_power_excess(
            contests, np.ones(1), poisson_binomial.approximate_log_discount(size)
        ),
        want,
        rtol=1e-9,
    )


@pytest.mark.parametrize("size", [2, 10, 300, 5_000, 100_000])
def test_logarithm_as_a_sum_of_powers(size):
    powers = poisson_binomial.approximate_log_discount(size)
    assert (powers.rate > 0).all()
    assert (powers.weight > 0).all()
    ranks = np.unique(np.concatenate((np.arange(min(size, 50)), np.geomspace(1, size, 100).astype(int))))
    want = np.log1p(1 / (ranks + 2)) * np.log(2) / np.log(ranks + 2) / np.log(ranks + 3)
    found = (np.exp(-powers.rate * ranks[:, None]) * -np.expm1(-powers.rate)) @ powers.weight
    np.testing.assert_allclose(found, want, rtol=3e-10)


def test_sure_contests(path):
    """All contests won, or all lost, also where powers under- or overflow on the way."""
    for size in (3, 3_000):
        many = np.array([size - 1])
        one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
        discount = plain.discounts("ndcg", size)
        law = poisson_binomial.compute_rank_distributions(np.full((1, size - 1), 0.5))[0]
        for sign, rank in ((1.0, 0), (-1.0, size - 1)):
            own = np.array([sign])
            contests = OpponentTable(
                zero, own, zero, one, np.zeros(1), many, np.zeros(1), 0.5, np.zeros(1), zero, many, many
            )
            want = discount[rank] - float(law @ discount)
            found = poisson_binomial.compute_power_excess(
                contests, np.ones(1), poisson_binomial.approximate_log_discount(size)
            )
            np.testing.assert_allclose(found, want, rtol=1e-8)
            table = poisson_binomial.compute_discount_drops(contests, -np.diff(discount))
            np.testing.assert_allclose(
                poisson_binomial.compute_excess_discount(contests, np.ones(1), table), want, rtol=1e-9
            )
