"""Agreement of lists with the consensus of the others, and weights tilted by it, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences
from podium.kernels.list_agreement import compute_consensus_correlations, tilt_weights


def sample(seed, queries=6, experts=4, items=9):
    random = np.random.default_rng(seed)
    lists = {
        q: {
            f"e{e}": random.permutation(items)[: random.integers(1, items)].tolist()
            for e in range(experts)
            if random.random() < 0.8
        }
        for q in range(queries)
    }
    return Preferences.from_lists(lists), random


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_correlations_by_definition(seed, share):
    p, random = sample(seed)
    lists, index = p.lists, p.index
    value, weight = random.random(lists.rows), random.random(len(lists)) * (random.random(len(lists)) < 0.9)
    found = compute_consensus_correlations(
        lists.list_of_row, lists.item, value, lists.query_of_list, index.query_of_slot, weight, share * weight
    )
    vectors = np.zeros((len(lists), len(index.items)))
    vectors[lists.list_of_row, lists.item] = value
    for one in range(len(lists)):
        query = lists.query_of_list[one]
        here, items = lists.query_of_list == query, index.query_of_slot == query
        others = (weight[here, None] * vectors[here]).sum(axis=0) - share * weight[one] * vectors[one]
        constant = max(np.ptp(others[items]), 0) < 1e-9 or np.ptp(vectors[one, items]) == 0
        expected = 0.0 if constant else np.corrcoef(vectors[one, items], others[items])[0, 1]
        assert found[one] == pytest.approx(expected, abs=1e-6)


def test_a_list_without_others_agrees_with_nobody():
    p = Preferences.from_lists(
        {1: {"a": ["x", "y"]}, 2: {"a": ["x"], "b": ["y"]}, 3: {"a": ["x", "y"], "b": ["x", "y"]}}
    )
    lists, one = p.lists, np.ones(len(p.lists))
    found = compute_consensus_correlations(
        lists.list_of_row,
        lists.item,
        1.0 / lists.rank,
        lists.query_of_list,
        p.index.query_of_slot,
        one,
        one,
    )
    assert found == pytest.approx([0, -1, -1, 1, 1])


@pytest.mark.parametrize("seed", range(10))
def test_tilted_weights_are_a_softmax_with_the_sum_of_before(seed):
    random = np.random.default_rng(seed)
    query = np.sort(random.integers(0, 5, 17))
    weight = random.random(17) * (random.random(17) < 0.8)
    exponent = random.normal(0, 300, 17)
    exponent[weight == 0] = 1e4  # lists that do not count must not overflow the others
    tilted = tilt_weights(weight, exponent, query, 6)
    for q in range(6):
        here = np.flatnonzero((query == q) & (weight > 0))
        assert tilted[query == q].sum() == pytest.approx(weight[query == q].sum())
        if len(here):
            logs = np.log(weight[here]) + exponent[here]
            share = np.exp(logs - logs.max())
            assert tilted[here] == pytest.approx(share / share.sum() * weight[here].sum(), abs=1e-12)
    assert (tilted[weight == 0] == 0).all()
    assert tilt_weights(weight, np.full(17, 3.0), query, 6) == pytest.approx(weight)


def test_no_lists():
    none, empty = np.zeros(0), np.zeros(0, np.int64)
    assert len(tilt_weights(none, none, empty, 0)) == 0
    assert len(compute_consensus_correlations(empty, empty, none, empty, empty, none, none)) == 0
