"""Agreement between rankings: against scipy, brute force over pairs, and values worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from podium.core.errors import InputError, ParameterError
from podium.kernels import ranking_measures
from podium.metrics import agreement as ag

vectors = st.integers(2, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-4, 4), min_size=n, max_size=n).map(np.array)] * 2)
)


def brute_tau_a(x, y):
    pairs = list(itertools.combinations(range(len(x)), 2))
    return sum(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in pairs) / len(pairs)


def brute_tau_ap(x, y):
    """The mean over all orders of the tied items of x."""

    def of(order):
        shares = [np.mean([np.sign(y[j] - y[i]) for j in order[:at]]) for at, i in enumerate(order) if at]
        return np.mean(shares)

    orders = [
        o
        for o in itertools.permutations(range(len(x)))
        if all(x[a] >= x[b] for a, b in itertools.pairwise(o))
    ]
    return np.mean([of(o) for o in orders])


@settings(deadline=None)
@given(vectors)
def test_against_scipy(pair):
    x, y = pair
    assert ag.kendall_tau(x, y, variant="a") == pytest.approx(brute_tau_a(x, y), abs=1e-12)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert ag.kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
        assert ag.spearman_rho(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    else:
        assert np.isnan(ag.kendall_tau(x, y))
        assert np.isnan(ag.spearman_rho(x, y))
    ranks = [stats.rankdata(-v) for v in (x, y)]
    assert ag.footrule(x, y) == pytest.approx(
        1 - np.abs(ranks[0] - ranks[1]).sum() / (len(x) ** 2 // 2), abs=1e-12
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n).map(np.array)] * 2)
    )
)
def test_tau_ap_is_the_mean_over_tie_orders(pair):
    assert ag.tau_ap(*pair) == pytest.approx(brute_tau_ap(*pair), abs=1e-12)


def test_tau_ap_weighs_the_top_more():
    # n = 3: swapping the first two costs 2/2 of the first term; swapping the last two half of the second
    assert ag.tau_ap([3, 2, 1], [2, 3, 1]) == pytest.approx((-1 + 1) / 2)
    assert ag.tau_ap([3, 2, 1], [3, 1, 2]) == pytest.approx((1 + 0) / 2)
    assert ag.tau_ap([3, 2, 1], [3, 2, 1]) == 1.0
    assert ag.tau_ap([3, 2, 1], [1, 2, 3]) == -1.0


def test_counts_of_earlier_rows():
    rng = np.random.default_rng(1)
    starts = np.array([0, 0, 1, 40, 40, 100])
    value = rng.integers(0, 9, 100)
    smaller, larger = ranking_measures.count_earlier(starts, value)
    for a, b in itertools.pairwise(starts):
        for row in range(a, b):
            assert smaller[row] == (value[a:row] < value[row]).sum()
            assert larger[row] == (value[a:row] > value[row]).sum()


def test_large_inputs_against_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 900, 20_000), rng.normal(size=20_000)
    y += x / 500
    assert ag.kendall_tau(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def brute_rbo(a, b, p, depth=4000):
    """Extrapolated overlap of equally long lists: agreement stays at its last value below the end."""
    shared = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, len(a) + 1)]
    shared += [shared[-1]] * depth
    return (1 - p) * sum(s * p**d for d, s in enumerate(shared))


@given(st.permutations(range(7)), st.permutations(range(9)), st.sampled_from([0.5, 0.9, 0.98]))
def test_rbo_of_equally_long_lists(a, b, p):
    b = b[:7]
    assert ag.rbo(a, b, p) == pytest.approx(brute_rbo(a, b, p), abs=1e-9)
    assert ag.rbo(b, a, p) == pytest.approx(ag.rbo(a, b, p))


def test_rbo_of_uneven_lists():
    # by equation 32 for S = a, L = ab: X_1 = 1, X_2 = 1 and the extrapolated agreement stays 1
    assert ag.rbo("a", "ab", 0.8) == pytest.approx(1.0)
    # S = a, L = ba: X_1 = 0, X_2 = 1; (1-p)/p * (1/2) p^2 + (1 - 0) / 2 * p^2
    p = 0.8
    assert ag.rbo("a", "ba", p) == pytest.approx((1 - p) / p * 0.5 * p**2 + 0.5 * p**2)
    assert ag.rbo("abc", "def") == 0.0
    assert ag.rbo("", "") == 1.0
    assert ag.rbo("", "a") == 0.0


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="one score per item"):
        ag.kendall_tau([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="finite"):
        ag.spearman_rho([1, np.nan], [1, 2])
    with pytest.raises(ParameterError, match="accepted: a, b"):
        ag.kendall_tau([1], [1], variant="c")
    with pytest.raises(ParameterError):
        ag.rbo("a", "a", 1.0)
    with pytest.raises(InputError, match="twice"):
        ag.rbo("aa", "a")
    assert np.isnan(ag.kendall_tau([], []))
    assert np.isnan(ag.tau_ap([1.0], [2.0]))
    assert np.isnan(ag.footrule([1.0], [2.0]))


def test_as_metrics_on_labels():
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.evaluate import evaluate
    from podium.evaluate.result_rankings import expert_rankings

    rng = np.random.default_rng(5)
    run = {q: {i: float(rng.integers(0, 6)) for i in range(12)} for q in range(8)}
    grades = {q: {i: int(rng.integers(0, 4)) for i in rng.permutation(15)[:9].tolist()} for q in range(8)}
    grades[8] = {1: 1}
    consensus = expert_rankings(Preferences.from_lists({q: {"e": s} for q, s in run.items()}), "e")
    found = evaluate(
        consensus, Labels.from_dict(grades), ["tau_a", "tau", "rho", "footrule", "tau_ap"], queries="all"
    )
    for q in range(8):
        both = [i for i in run[q] if i in grades[q]]
        x, y = np.array([run[q][i] for i in both]), np.array([grades[q][i] for i in both])
        assert found["tau_b"][q] == pytest.approx(stats.kendalltau(x, y).statistic)
        assert found["rho"][q] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert found["tau_a"][q] == pytest.approx(brute_tau_a(x, y))
        assert found["tau_ap"][q] == pytest.approx(ag.tau_ap(x, y))
        assert found["footrule"][q] == pytest.approx(ag.footrule(x, y))
    assert found.queries[8] == 8
    assert (found.values[:, 8] == 0).all()
