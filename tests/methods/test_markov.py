"""Markov chains against exact solutions of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import Preferences, make
from podium.methods.majority import collect_votes
from podium.testing import strategies
from reference import array_chains
from reference import chains as plain
from reference.pairs import voices

CHAINS = {"mc1": plain.mc1, "mc2": plain.mc2, "mc3": plain.mc3, "mc4": plain.mc4}
EXAMPLE = Preferences.from_lists({"q": {1: "abcd", 2: "bad", 3: "acbe"}})
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_known_values():
    def rounded(spec):
        return {i: round(s, 3) for i, s in make(spec).aggregate(EXAMPLE).to_dict()["q"].items()}

    assert rounded("mc1(teleport=0.15)") == {"a": 0.490, "b": 0.302, "c": 0.130, "d": 0.040, "e": 0.038}
    assert rounded("mc4(teleport=0.15)") == {"a": 0.625, "b": 0.142, "c": 0.142, "d": 0.045, "e": 0.045}


@pytest.mark.parametrize("name", CHAINS)
@few
@given(
    preferences=strategies.preferences(),
    weights=st.lists(st.sampled_from([0, 1, 2, 0.5]), min_size=12, max_size=12),
    teleport=st.sampled_from([0.15, 0.5, 0.01, 0.9]),
)
def test_equals_its_definition(name, preferences, weights, teleport):
    by_expert = dict(zip(preferences.experts, weights, strict=False))
    if not any(by_expert.values()):
        by_expert = dict.fromkeys(by_expert, 1)
    consensus = make(name, weights=by_expert, teleport=teleport).aggregate(preferences)
    assert consensus.diagnostics.converged
    for query in preferences.queries:
        items, said = voices(preferences, query, by_expert)
        expected = plain.stationary(CHAINS[name], items, said, teleport)
        found = consensus.to_dict()[query]
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", CHAINS)
def test_tied_lists_and_candidates(name):
    p = Preferences.from_rows(
        ["q"] * 5, [1, 1, 1, 2, 2], list("abcab"), rank=[1, 1, 2, 1, 1], candidates=(["q"], ["z"])
    )
    found = make(name).aggregate(p).to_dict()["q"]
    items, said = voices(p, "q", {1: 1, 2: 1})
    assert found == pytest.approx(plain.stationary(CHAINS[name], items, said, 0.15), rel=1e-9)
    assert list(found)[-1] == "z"
    assert found["a"] == found["b"]


@pytest.mark.parametrize("name", CHAINS)
def test_the_default_stop_is_the_limit(name):
    rng = np.random.default_rng(0)
    lists = {q: {e: rng.permutation(30)[:12].tolist() for e in range(5)} for q in range(4)}
    p = Preferences.from_lists(lists)
    method = make(name)
    walked = method.aggregate(p)
    votes, _ = collect_votes(p, np.ones(len(p.experts)))
    direct = array_chains.solve_chain(votes, getattr(method, "kind", None), method.teleport)
    np.testing.assert_allclose(walked.scores, direct, rtol=0, atol=1e-11)
    assert 0 < walked.diagnostics.iterations < 1_000
    cut = make(name, max_iterations=1, teleport=1e-6).aggregate(p)
    assert not cut.diagnostics.converged
    assert cut.diagnostics.notes == ("stopped after 1 steps",)


@pytest.mark.parametrize("name", CHAINS)
def test_cycles_are_visible_ties(name):
    p = Preferences.from_lists({"q": {1: "abc", 2: "bca", 3: "cab"}})
    consensus = make(name).aggregate(p)
    assert consensus.tied.all()
    assert consensus.scores == pytest.approx(1 / 3)


def test_a_comparison_is_a_list_of_two():
    votes = Preferences.from_comparisons(["q"] * 3, [1, 2, 3], list("aab"), list("bcc"))
    lists = Preferences.from_lists({"q": {1: "ab", 2: "ac", 3: "bc"}})
    for name in CHAINS:
        np.testing.assert_allclose(
            make(name).aggregate(votes).scores, make(name).aggregate(lists).scores, rtol=1e-12
        )
