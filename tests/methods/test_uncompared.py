"""Items that no contest or choice tells anything about, against an independent solver of the written objective."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from podium import Preferences, make

ITEMS = ["a", "b", "c", "d", "tied", "tied too"]


def _optimum(objective, size):
    return minimize(objective, np.zeros(size), method="BFGS", options={"gtol": 1e-9}).x


def _votes(seed):
    """Votes among four items; two more items only tie, with each other and with one of the four."""
    random = np.random.default_rng(seed)
    pairs = [random.choice(4, 2, replace=False).tolist() for _ in range(random.integers(2, 9))]
    return [(i, j, False) for i, j in pairs] + [(4, pairs[0][0], True), (4, 5, True)]


def _preferences(votes, candidates=()):
    winner, loser, tie = zip(*votes, strict=True)
    made = Preferences.from_comparisons(
        ["q"] * len(votes), ["j"] * len(votes), [ITEMS[i] for i in winner], [ITEMS[j] for j in loser], tie=tie
    )
    if not candidates:
        return made
    listed = Preferences.from_rows(
        [], [], [], rank=[], candidates=(["q"] * len(candidates), list(candidates))
    )
    return Preferences.concat([made, listed])


def _contests(votes, law, prior):
    """Minus the log likelihood of the votes that are no ties, and the prior."""

    def objective(s):
        return sum(-law(s[i] - s[j]) for i, j, tie in votes if not tie) + prior(s)

    return objective


RULES = {
    "bradley_terry(ties='ignore', l2=0.1)": (lambda d: -np.logaddexp(0, -d), lambda s: 0.05 * s @ s),
    "bradley_terry(ties='ignore', prior='gamma', shape=1.5)": (
        lambda d: -np.logaddexp(0, -d),
        lambda s: 0.5 * (np.exp(s) - s).sum(),
    ),
    "thurstone(ties='ignore', l2=0.1)": (norm.logcdf, lambda s: 0.05 * s @ s),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spec", RULES)
def test_an_item_that_only_tied_is_where_the_prior_puts_it(spec, seed):
    votes = _votes(seed)
    expected = _optimum(_contests(votes, *RULES[spec]), len(ITEMS))
    found = make(spec).aggregate(_preferences(votes)).to_dict()["q"]
    for i, item in enumerate(ITEMS):
        if item in found:
            assert found[item] == pytest.approx(expected[i], abs=1e-5)
    assert found["tied"] == pytest.approx(0, abs=1e-9)
    assert found["tied too"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("spec", [*RULES, "bradley_terry", "plackett_luce", "plackett_luce(shape=1.2)"])
def test_an_item_that_nobody_compared_changes_nothing_and_comes_last(spec):
    votes = _votes(3)
    alone = make(spec).aggregate(_preferences(votes)).to_dict()["q"]
    found = make(spec).aggregate(_preferences(votes, ["nobody", "no one"])).to_dict()["q"]
    assert list(found)[-2:] == ["no one", "nobody"]
    for item, score in alone.items():
        assert found[item] == pytest.approx(score, abs=1e-7)
    for item in ("nobody", "no one"):
        assert found[item] == pytest.approx(min(alone.values()) - 1, abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [1.2, 2.0])
def test_plackett_luce_is_the_optimum_over_the_items_that_somebody_places(shape, seed):
    random = np.random.default_rng(seed)
    lists = [random.permutation(4)[: random.integers(2, 5)].tolist() for _ in range(4)]
    placed = sorted({i for chosen in lists for i in chosen})
    where = {i: k for k, i in enumerate(placed)}

    def objective(s):
        value = s.mean() ** 2 - (shape - 1) * (s - np.logaddexp.reduce(s)).sum()
        for chosen in lists:
            at = [where[i] for i in chosen]
            value -= sum(s[at[k]] - np.logaddexp.reduce(s[at[k:]]) for k in range(len(at) - 1))
        return value

    expected = _optimum(objective, len(placed))
    rows = [(e, ITEMS[i], r) for e, chosen in enumerate(lists) for r, i in enumerate(chosen, 1)]
    expert, item, rank = zip(*rows, strict=True)
    given = Preferences.from_rows(
        ["q"] * len(rows), expert, item, rank=rank, candidates=(["q"] * 2, ["nobody", "no one"])
    )
    found = make("plackett_luce", shape=shape).aggregate(given).to_dict()["q"]
    for i, k in where.items():
        assert found[ITEMS[i]] == pytest.approx(expected[k], abs=1e-5)
    assert found["nobody"] == pytest.approx(expected.min() - 1, abs=1e-5)
