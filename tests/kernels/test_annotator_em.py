"""Annotators' quality: kernels against definitions, finite differences and scipy, in one thread and in several."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import optimize

from podium.data.preferences import Form, Preferences
from podium.kernels import annotator_em, dispatch, noisy_contests
from podium.kernels.elo import compute_elo
from podium.methods.crowd.crowd_model import collect_crowd_votes
from podium.methods.majority import collect_votes
from podium.testing import crowds
from podium.testing.samples import sample_rows
from reference import annotators as plain


@pytest.fixture(params=["one thread", "threads"])
def path(request, monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 10**12 if request.param == "one thread" else 0)
    return request.param


def some_rows(seed=0, slots=7, groups=4, count=40):
    random = np.random.default_rng(seed)
    first = random.integers(0, slots - 1, count)
    second = np.array([random.integers(f + 1, slots) for f in first])
    won, lost = random.integers(0, 3, (2, count)).astype(float)
    return first.astype(np.int32), second.astype(np.int32), random.integers(0, groups, count), won, lost


def crowd_of(seed, **how):
    quality = crowds.annotators(good=4, random=2, malicious=1)
    return crowds.simulate(quality, items=6, judgements=12, seed=seed, **how).preferences


def coins_of(crowd, sided=False):
    said, groups = crowd.votes, len(crowd.expert)
    first, second = said.group, said.group
    if sided:
        first, second = said.group + groups * said.side, said.group + groups * np.array([0, 2, 1])[said.side]
    n = groups * (3 if sided else 1)
    weight = np.tile(1.0 + np.arange(groups) % 2, 3 if sided else 1)
    return annotator_em.AccuracyModel(first, second, weight, np.full(n, 3.0), np.full(n, 1.0))


# -- counting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("seed", range(3))
def test_judgements_are_what_everybody_said(form, seed):
    preferences = sample_rows(form, seed).to_preferences()
    crowd = collect_crowd_votes("test", preferences, np.ones(len(preferences.experts)), pooled=True)
    said, index, found = crowd.votes, preferences.index, Counter()
    for r, p in enumerate(said.pair):
        i, j = int(said.first[p]), int(said.second[p])
        who, query = (
            preferences.experts[int(crowd.expert[said.group[r]])],
            index.queries[int(index.query_of_slot[i])],
        )
        found[who, query, index.items[i], index.items[j]] += said.won[r]
        found[who, query, index.items[j], index.items[i]] += said.lost[r]
    assert +found == +plain.said(preferences)
    assert len(set(zip(said.pair.tolist(), said.group.tolist(), strict=True))) == len(said.pair)
    assert all(
        index.query_of_slot[said.first[said.pair_starts[q] : said.pair_starts[q + 1]]].tolist() == [q] * n
        for q, n in enumerate(np.diff(said.pair_starts))
    )


def test_sides_are_told_from_the_first_slot():
    p = Preferences.from_comparisons(
        [0] * 4, ["e"] * 4, ["a", "b", "a", "a"], ["b", "a", "b", "c"], side=[1, 1, -1, 0]
    )
    said = collect_crowd_votes("test", p, np.ones(1), pooled=True, sides=True).votes
    rows = zip(said.pair.tolist(), said.side.tolist(), said.won.tolist(), said.lost.tolist(), strict=True)
    assert sorted(rows) == [(0, 1, 1.0, 0.0), (0, 2, 1.0, 1.0), (1, 0, 1.0, 0.0)]


# -- noisy contests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
def test_noisy_derivatives(path, known):
    rows, slots, groups = some_rows(), 7, 0 if known else 4
    right, wrong = np.full(groups, 2.5), np.full(groups, 1.5)
    given = noisy_contests.build_noisy_contests(rows, slots, 0.3, right, wrong)
    x = np.random.default_rng(1).normal(size=slots + groups)
    at = noisy_contests.compute_derivatives(given, x)

    def value(y):
        return plain.noisy_loss(list(zip(*rows, strict=True)), y, slots, 0.3, right, wrong)

    assert at.value == pytest.approx(value(x), rel=1e-12)
    np.testing.assert_allclose(at.gradient, optimize.approx_fprime(x, value, 1e-7), atol=1e-4)
    v, step = np.random.default_rng(2).normal(size=len(x)), 1e-6
    sides = (noisy_contests.compute_derivatives(given, x + s * v).gradient for s in (step, -step))
    up, down = sides
    np.testing.assert_allclose(
        noisy_contests.multiply_hessian(given, at, v), (up - down) / (2 * step), atol=1e-6
    )


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_noisy_fit_is_what_scipy_finds(path, seed, known):
    rows, slots, groups = some_rows(seed), 7, 0 if known else 4
    right, wrong = np.full(groups, 4.0), np.full(groups, 1.0)
    given = noisy_contests.build_noisy_contests(rows, slots, 0.5, right, wrong)
    start = np.concatenate((np.zeros(slots), np.full(groups, 1.0)))
    found = noisy_contests.fit_noisy_contests(given, start, 1e-10, 200)
    other = optimize.minimize(
        lambda y: plain.noisy_loss(list(zip(*rows, strict=True)), y, slots, 0.5, right, wrong),
        np.concatenate((found.scores, found.odds)) + 0.1,
        method="BFGS",
        options={"gtol": 1e-7},
    )
    assert found.converged
    assert found.value <= other.fun + 1e-9
    np.testing.assert_allclose(np.concatenate((found.scores, found.odds)), other.x, atol=1e-4)


def test_noisy_fit_descends_and_says_when_it_is_not_done(path):
    given = noisy_contests.build_noisy_contests(some_rows(3), 7, 0.5, np.full(4, 4.0), np.full(4, 1.0))
    start = np.concatenate((np.full(7, 5.0) * [1, -1, 1, -1, 1, -1, 1], np.ones(4)))
    ends = [noisy_contests.fit_noisy_contests(given, start, 1e-10, n) for n in range(1, 40)]
    assert (np.diff([e.value for e in ends]) <= 1e-9).all()
    assert not ends[0].converged
    assert ends[-1].converged
    assert ends[-1].error <= 1e-10


def test_far_apart_scores_do_not_overflow(path):
    given = noisy_contests.build_noisy_contests(some_rows(), 7, 0.5, np.full(4, 4.0), np.full(4, 1.0))
    x = np.array([900.0, -900, 0, 3, -2, 500, 1, 800, -800, 0, 1])
    with np.errstate(all="ignore"):
        assert np.isfinite(noisy_contests.compute_derivatives(given, x).value)
        found = noisy_contests.fit_noisy_contests(given, x, 1e-9, 500)
    assert found.converged


# -- truths of pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_truths_are_a_maximum_of_the_plain_likelihood(path, seed, sided):
    p = crowd_of(seed)
    if sided:
        v, side = p.comparisons, np.random.default_rng(seed).integers(-1, 2, len(p.comparisons))
        names = (p.index.items[int(i)] for c in (v.winner, v.loser) for i in c)
        names = np.array(list(names)).reshape(2, -1)
        p = Preferences.from_comparisons([0] * len(v), v.expert.tolist(), *names.tolist(), side=side)
    crowd = collect_crowd_votes("test", p, np.ones(len(p.experts)), pooled=True, sides=sided)
    coins = coins_of(crowd, sided)
    truth, quality, found = annotator_em.estimate_pair_truths(crowd.votes, coins, 1e-11, 10_000)
    value, posterior = plain.pair_likelihood(crowd.votes, coins, found.x)
    assert found.converged
    assert found.objective == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(truth, posterior, atol=1e-9)
    np.testing.assert_allclose(quality, 1 / (1 + np.exp(-found.x)))
    for c in range(len(found.x)):
        for step in (1e-3, -1e-3):
            moved = found.x.copy()
            moved[c] += step
            assert plain.pair_likelihood(crowd.votes, coins, moved)[0] < value


def test_objectives_never_fall(path):
    p = crowd_of(3)
    crowd = collect_crowd_votes("test", p, np.ones(len(p.experts)), pooled=True)
    coins = coins_of(crowd)
    values = [
        annotator_em.estimate_pair_truths(crowd.votes, coins, 1e-13, n)[2].objective for n in range(1, 60)
    ]
    assert (np.diff(values) >= -1e-9).all()
    given = ratings_of(1)
    values = [annotator_em.estimate_confusions(given, 1e-13, n)[3].objective for n in range(1, 60)]
    assert (np.diff(values) >= -1e-9).all()


def test_settle_finds_fixed_points_and_says_when_not():
    shrink = np.array([0.999, 0.9, -0.5, 0.2])
    goal = np.array([1.0, -2.0, 3.0, 4.0])

    def step(x):
        return goal + shrink * (x - goal), -float(((x - goal) ** 2).sum())

    found = annotator_em.find_fixed_point(step, np.zeros(4), 1e-12, 200)
    np.testing.assert_allclose(found.x, goal, atol=1e-8)
    assert found.converged
    assert found.steps < 50  # plain steps would take 27,000
    assert not annotator_em.find_fixed_point(step, np.zeros(4), 1e-12, 3).converged


# -- classes -------------------------------------------------------------------------------------------------------


def ratings_of(seed, items=8, groups=4, levels=3):
    random = np.random.default_rng(seed)
    item = np.tile(np.arange(items), groups)[random.permutation(items * groups)[:25]]
    prior = np.full((groups, levels, levels), 0.5) + 2 * np.eye(levels)
    group, level = random.integers(0, groups, len(item)), random.integers(0, levels, len(item))
    return annotator_em.Ratings(items + 1, item, group, level, 1.0 + np.arange(groups) % 2, prior)


@pytest.mark.parametrize("seed", range(3))
def test_confusions_are_a_maximum_of_the_plain_likelihood(path, seed):
    given = ratings_of(seed)
    truth, table, share, found = annotator_em.estimate_confusions(given, 1e-11, 100_000)
    value, posterior = plain.class_likelihood(given, table, share)
    assert found.converged
    assert found.objective == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(truth, posterior, atol=1e-9)
    np.testing.assert_allclose(table.sum(axis=2), 1)
    random = np.random.default_rng(0)
    for _ in range(30):
        near = table * np.exp(1e-3 * random.normal(size=table.shape))
        near /= near.sum(axis=2, keepdims=True)
        other = share * np.exp(1e-3 * random.normal(size=share.shape))
        assert plain.class_likelihood(given, near, other / other.sum())[0] < value


# -- Elo -----------------------------------------------------------------------------------------------------------


def test_elo_is_the_plain_loop(path):
    p = crowd_of(0)
    said = collect_crowd_votes("test", p, np.ones(len(p.experts)), pooled=True, merged=True).votes
    pairs = list(zip(said.first, said.second, said.won, said.lost, strict=True))
    expected = plain.compute_expected_elo(pairs, int(said.starts[-1]), 32.0, 0.006, annotator_em.PARTS)
    np.testing.assert_allclose(
        annotator_em.compute_expected_elo(said, said.won, said.lost, 32.0, 0.006), expected, rtol=1e-10
    )


def test_elo_is_the_mean_over_random_orders(monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    p = crowd_of(1)
    votes, unit = collect_votes(p, np.ones(len(p.experts)))
    rate = np.log(10) / 400
    said = collect_crowd_votes("test", p, np.ones(len(p.experts)), pooled=True, merged=True).votes
    for k in (4.0, 16.0):
        mean = compute_elo(votes, k * unit, rate, rounds=3000, seed=0)
        # what is left out is of second order in k
        allowed = 0.002 * k * np.abs(mean).max()
        np.testing.assert_allclose(
            annotator_em.compute_expected_elo(said, said.won, said.lost, k, rate), mean, atol=allowed
        )


def test_elo_stays_calm_where_items_meet_very_often(path):
    p = Preferences.from_comparisons([0, 0], ["e", "e"], ["a", "b"], ["b", "a"], weight=[30_000.0, 10_000.0])
    said = collect_crowd_votes("test", p, np.ones(1), pooled=True, merged=True).votes
    ratings = annotator_em.compute_expected_elo(said, said.won, said.lost, 32.0, float(np.log(10) / 400))
    assert ratings[0] - ratings[1] == pytest.approx(400 * np.log10(3), rel=1e-6)
