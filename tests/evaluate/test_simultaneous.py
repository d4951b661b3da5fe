"""The best of many results against the others: no more false claims than promised, and no fewer true ones than Holm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium.core.errors import ParameterError
from podium.evaluate.significance import holm, randomization
from podium.evaluate.simultaneous_tests import compute_leads, estimate_choice_value


def drawn(rng, results=20, queries=40, *, ahead=0.0, alike=0.8):
    """Results by name that share most of what makes a query hard; the first is `ahead` of the others."""
    hard = rng.random(queries)
    noise = 0.15 * rng.standard_normal((results, queries))
    table = hard + math.sqrt(1 - alike) * noise + math.sqrt(alike) * 0.15 * rng.standard_normal(queries)
    table[0] += ahead
    return {f"m{i}": row for i, row in enumerate(table)}


def best(values):
    return max(values, key=lambda n: values[n].mean())


def test_false_claims_on_noise_stay_within_the_level():
    """Nominal 5 %: that the best of 20 equal results is above any other one. Uncorrected it is claimed in most."""
    rng = np.random.default_rng(1)
    wrong = naive = 0
    for n in range(300):
        values = drawn(rng)
        first = best(values)
        wrong += any(lead.p < 0.05 for lead in compute_leads(first, values, rounds=400, seed=n))
        d = [values[first] - values[n] for n in values if n != first]
        naive += any(randomization(x, rounds=400, seed=n) < 0.05 for x in d)
    assert wrong / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    assert naive / 300 > 0.5


def test_a_real_lead_is_found_where_holm_over_all_pairs_cannot():
    rng = np.random.default_rng(2)
    found = by_holm = 0
    for n in range(20):
        values = drawn(rng, 36, 60, ahead=0.08)
        found += all(lead.p < 0.05 for lead in compute_leads("m0", values, rounds=2000, seed=n))
        names = list(values)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        p = holm([randomization(values[a] - values[b], rounds=2000, seed=n) for a, b in pairs])
        by_holm += all(p[pairs.index(("m0", b))] < 0.05 for b in names[1:])
    assert found >= 16
    assert by_holm == 0


def test_copies_of_results_cost_nothing():
    """With the same results again under other names, the family is no larger."""
    values = drawn(np.random.default_rng(3), 5)
    twice = values | {f"{n} again": v + 0.0 for n, v in values.items()}
    once = {lead.over: lead.p for lead in compute_leads("m0", values)}
    again = {lead.over: lead.p for lead in compute_leads("m0", twice)}
    assert again["m0 again"] == 1.0
    assert all(again[n] == once[n] for n in once)


@pytest.mark.parametrize("seed", range(5))
def test_two_results_are_tested_as_fisher_does(seed):
    rng = np.random.default_rng(seed)
    values = {"a": rng.random(12) + 0.15, "b": rng.random(12)}
    [lead] = compute_leads("a", values, rounds=40_000)
    exact = randomization(values["a"] - values["b"])  # all 4,096 patterns of signs
    assert lead.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000) + 1e-4)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_intervals_say_what_p_says(level):
    rng = np.random.default_rng(4)
    outcomes = set()
    for n in range(30):
        values = drawn(rng, 6, 25, ahead=0.1)
        for lead in compute_leads("m0", values, level=level, rounds=1000, seed=n):
            outcomes.add(lead.p < 1 - level)
            assert (lead.low > 0 or lead.high < 0) == (lead.p < 1 - level)
            assert lead.low <= lead.difference <= lead.high
    assert outcomes == {True, False}


def test_intervals_hold_all_true_differences_at_once():
    rng = np.random.default_rng(5)
    true = np.array([0.0, 0.02, 0.05, 0.05, 0.1, 0.3])
    missed = 0
    for n in range(300):
        table = rng.random(40) + 0.15 * rng.standard_normal((6, 40)) - true[:, None]
        values = {f"m{i}": row for i, row in enumerate(table)}
        found = {lead.over: lead for lead in compute_leads(best(values), values, rounds=400, seed=n)}
        top = int(best(values)[1:])
        missed += any(
            not lead.low <= true[int(name[1:])] - true[top] <= lead.high for name, lead in found.items()
        )
    assert missed / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_choosing_the_best_of_equals_gains_nothing():
    """The best of 20 equal results looks better than it is; what is expected of the choice does not."""
    rng = np.random.default_rng(6)
    shown, expected = [], []
    for _ in range(200):
        values = {f"m{i}": row for i, row in enumerate(rng.standard_normal((20, 30)))}
        shown.append(values[best(values)].mean())
        expected.append(estimate_choice_value(values))
    assert np.mean(shown) > 0.2
    assert np.mean(expected) == pytest.approx(0.0, abs=4 * np.std(expected) / math.sqrt(200))


def test_one_query_and_one_result():
    [lead] = compute_leads("a", {"a": np.array([1.0]), "b": np.array([0.0])})
    assert (lead.difference, math.isnan(lead.p), math.isnan(lead.low)) == (1.0, True, True)
    assert compute_leads("a", {"a": np.array([1.0, 2.0])}) == ()
    assert math.isnan(estimate_choice_value({"a": np.array([1.0])}))
    with pytest.raises(ParameterError, match="there is no result 'x'"):
        compute_leads("x", {"a": np.array([1.0])})


def test_undefined_queries_are_left_out():
    rng = np.random.default_rng(7)
    values = drawn(rng, 3, 20, ahead=0.1)
    more = {n: np.append(v, math.nan) for n, v in values.items()}
    assert compute_leads("m0", more) == compute_leads("m0", values)
