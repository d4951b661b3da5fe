"""The same estimates as choix and evalica, where these are installed."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences, make


def games(seed=0, items=12, votes=600):
    """Winners and losers such that everybody won and lost."""
    random = np.random.default_rng(seed)
    strength = random.normal(size=items)
    a = random.integers(0, items, votes)
    b = (a + random.integers(1, items, votes)) % items
    up = random.random(votes) < 1 / (1 + np.exp(strength[b] - strength[a]))
    return np.where(up, a, b), np.where(up, b, a)


def scores(spec, winner, loser):
    p = Preferences.from_comparisons(np.zeros_like(winner), np.zeros_like(winner), winner, loser)
    found = make(spec).aggregate(p).to_dict()[0]
    return np.array([found[i] for i in range(len(found))])


def centered(values):
    return values - values.mean()


def test_choix_maximum_likelihood():
    choix = pytest.importorskip("choix")
    winner, loser = games()
    expected = choix.mm_pairwise(12, list(zip(winner, loser, strict=True)), tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(scores("bradley_terry(l2=1e-9)", winner, loser), centered(expected), atol=1e-6)


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_choix_ridge(penalty):
    choix = pytest.importorskip("choix")
    winner, loser = games(1)
    data = list(zip(winner, loser, strict=True))
    expected = choix.opt_pairwise(12, data, alpha=penalty / 2, method="BFGS", tol=1e-9)  # it adds alpha |s|^2
    np.testing.assert_allclose(scores(f"bradley_terry(l2={penalty})", winner, loser), expected, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_choix_gamma_prior(alpha):
    choix = pytest.importorskip("choix")
    winner, loser = games(2)
    data = list(zip(winner, loser, strict=True))
    expected = choix.mm_pairwise(12, data, alpha=alpha, tol=1e-12, max_iter=100_000)
    got = scores(f"bradley_terry(prior=gamma, shape={1 + alpha})", winner, loser)
    np.testing.assert_allclose(centered(got), centered(expected), atol=1e-6)


def test_choix_rank_centrality():
    choix = pytest.importorskip("choix")
    winner, loser = games(3, items=6)
    expected = choix.rank_centrality(6, list(zip(winner, loser, strict=True)))
    got = scores("rank_centrality(smoothing=1e-9)", winner, loser)
    np.testing.assert_allclose(centered(np.log(got)), centered(expected), atol=1e-6)


def test_evalica_bradley_terry_and_elo():
    evalica = pytest.importorskip("evalica")
    winner, loser = games(4)
    outcome = [evalica.Winner.X] * len(winner)
    left, right = winner.tolist(), loser.tolist()
    found = evalica.bradley_terry(left, right, outcome, tolerance=1e-14, limit=100_000).scores
    expected = np.log(np.array([found[i] for i in range(12)]))
    np.testing.assert_allclose(scores("bradley_terry(l2=1e-9)", winner, loser), centered(expected), atol=1e-6)
    found = evalica.elo(left, right, outcome, initial=1500.0, base=10.0, scale=400.0, k=32.0).scores
    np.testing.assert_allclose(scores("elo", winner, loser), [found[i] for i in range(12)], atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_evalica_average_win_rate(seed):
    evalica = pytest.importorskip("evalica")
    if not hasattr(evalica, "average_win_rate"):
        pytest.skip("needs a later evalica")
    winner, loser = games(seed, items=9, votes=40)
    tie = np.random.default_rng(seed).random(40) < 0.2
    outcome = [evalica.Winner.Draw if t else evalica.Winner.X for t in tie]
    theirs = evalica.average_win_rate(winner.tolist(), loser.tolist(), outcome).scores.to_dict()
    nothing = np.zeros_like(winner)
    p = Preferences.from_comparisons(nothing, nothing, winner, loser, tie=tie)
    assert make("win_rate").aggregate(p).to_dict()[0] == pytest.approx(theirs)
