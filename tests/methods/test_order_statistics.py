"""Tests on normalized ranks against their definitions in exact arithmetic and against uniform samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, make
from podium.kernels import order_statistics
from podium.methods.base import LIST_FORMS
from podium.testing import strategies
from reference import order_statistics as plain

few = settings(max_examples=40, deadline=None)
missing_rules = st.sampled_from(["last", "ignore"])
populations = st.sampled_from([0, 3, 50])


@pytest.mark.parametrize("name", ["rra", "stuart"])
@few
@given(preferences=strategies.preferences(LIST_FORMS), missing=missing_rules, population=populations)
def test_chances_equal_their_definition(name, preferences, missing, population):
    consensus = make(name, missing=missing, population=population).aggregate(preferences)
    for query in preferences.queries:
        ranks = plain.normalized_ranks(preferences, query, missing, population)
        exact = {i: getattr(plain, name)(r) for i, r in ranks.items()}
        here = preferences.index.slots(query)
        if name == "rra":
            p_values = [min(float(exact[i]), 1.0) for i in preferences.index.items[here]]
            assert consensus.p_values[here] == pytest.approx(p_values)
        for place in consensus[query]:
            assert place.score == pytest.approx(-np.log10(float(exact[place.item])), abs=1e-12)


@few
@given(preferences=strategies.preferences(LIST_FORMS), missing=missing_rules, population=populations)
def test_geometric_mean_equals_its_definition(preferences, missing, population):
    consensus = make("geometric_mean", missing=missing, population=population).aggregate(preferences)
    for query in preferences.queries:
        ranks = plain.normalized_ranks(preferences, query, missing, population)
        for place in consensus[query]:
            values = np.array([float(r) for r in ranks[place.item]])
            assert place.score == pytest.approx(-(np.prod(values) ** (1 / len(values))))


def test_p_values_hold_for_experts_who_guess():
    """At most 5 % of the items have a p-value below 0.05 if all lists are random; Stuart's statistic is none."""
    random = np.random.default_rng(0)
    lists = {q: {e: random.permutation(200).tolist() for e in range(6)} for q in range(10)}
    preferences = Preferences.from_lists(lists)
    assert 0.01 < (make("rra").aggregate(preferences).p_values < 0.05).mean() <= 0.05
    stuart = make("stuart").aggregate(preferences)
    assert stuart.p_values is None
    assert (10.0**-stuart.scores < 0.05).mean() == pytest.approx(0.38, abs=0.01)


def test_many_experts_neither_underflow_nor_cancel():
    ranks = np.full((1, 400), 1e-3)
    assert order_statistics.compute_joint_log_chance(ranks) == pytest.approx([400 * np.log(1e-3)])
    assert order_statistics.compute_smallest_log_chance(ranks) == pytest.approx([400 * np.log(1e-3)])
    spread = np.arange(1, 61)[None] / 61
    exact = float(plain.stuart([plain.Fraction(k, 61) for k in range(1, 61)]))
    assert np.exp(order_statistics.compute_joint_log_chance(spread)) == pytest.approx([exact])


def test_the_p_values_stay_with_their_items():
    p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["b", "a"]}, "r": {1: ["x", "y"], 2: ["y"]}})
    consensus = make("rra").aggregate(p)
    top = consensus.top(1)
    assert len(top.p_values) == len(top.scores) == 2
    pytest.importorskip("pandas")
    frame = consensus.to_frame("pandas")
    by_item = dict(zip(p.index.items, consensus.p_values, strict=True))
    assert dict(zip(frame["item"], frame["p_value"], strict=True)) == by_item
    assert "p_value" not in make("rrf").aggregate(p).to_frame("pandas")


def test_experts_are_explained_by_leaving_them_out():
    p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["a", "c", "b"], 3: ["c", "b", "a"]}})
    parts = make("rra").explain(p, "q", "a")
    assert parts[1] > 0 > parts[3]
