"""Optimal footrule: all rankings are tried, and Kemeny is near."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, make
from podium.methods.base import LIST_FORMS
from podium.testing import strategies

few = settings(max_examples=30, deadline=None)
WEIGHTS = st.lists(st.sampled_from([0, 1, 2, 0.5]), min_size=12, max_size=12)


def read_places(preferences, query, weights, missing):
    """Weight and place by item of every list of positive weight."""
    one = preferences.select([query])
    items, lists = one.index.items.tolist(), one.lists
    answers = []
    for n in range(len(lists)):
        rows = range(int(lists.starts[n]), int(lists.starts[n + 1]))
        rank = {items[lists.item[r]]: int(lists.rank[r]) for r in rows}
        tied = {i: [j for j in rank if rank[j] == rank[i]] for i in rank}
        place = {i: sum(rank[j] < rank[i] for j in rank) + (len(tied[i]) + 1) / 2 for i in rank}
        if missing != "ignore":
            other = len(items) if missing == "last" else (len(rank) + 1 + len(items)) / 2
            place = {i: place.get(i, other) for i in items}
        answers.append((weights[one.experts[int(lists.expert[n])]], place, set(rank)))
    return [(w, place, ranked) for w, place, ranked in answers if w > 0]


def measure(order, answers):
    return sum(w * abs(place[i] - p) for w, place, _ in answers for p, i in enumerate(order, 1) if i in place)


@few
@given(
    preferences=strategies.preferences(LIST_FORMS),
    weights=WEIGHTS,
    missing=st.sampled_from(["share", "last", "ignore"]),
)
def test_no_ranking_is_nearer(preferences, weights, missing):
    by_expert = dict(zip(preferences.experts, weights, strict=False))
    by_expert = by_expert if any(by_expert.values()) else dict.fromkeys(by_expert, 1)
    consensus = make("footrule", missing=missing, weights=by_expert).aggregate(preferences)
    best = 0.0
    for query in preferences.queries:
        answers = read_places(preferences, query, by_expert, missing)
        listed = {i for *_, ranked in answers for i in ranked}
        if len(listed) > 7:
            return
        best += min(measure(order, answers) for order in itertools.permutations(listed))
        ranking = [i for i in consensus.ranking(query) if i in listed]
        assert set(consensus.ranking(query)[: len(listed)]) == listed
        if not any(place.tied for place in consensus[query]):
            alone = make("footrule", missing=missing, weights=by_expert).aggregate(
                preferences.select([query])
            )
            assert measure(ranking, answers) == pytest.approx(alone.diagnostics.objective)
    assert consensus.diagnostics.objective == pytest.approx(best)


def test_exchangeable_items_are_tied():
    p = Preferences.from_lists({"q": {1: ["x", "y", "z"], 2: ["z", "y", "x"]}})
    consensus = make("footrule").aggregate(p)
    assert consensus.tied.all()
    assert consensus.diagnostics.objective == 4.0


def test_disagreements_are_at_most_twice_those_of_kemeny():
    random = np.random.default_rng(0)
    for _ in range(20):
        lists = {e: random.permutation(7).tolist() for e in range(5)}
        p = Preferences.from_lists({"q": lists})
        order = make("footrule").aggregate(p).ranking("q")
        above = {frozenset(pair): pair for pair in itertools.combinations(order, 2)}
        wrong = sum(
            above[frozenset(pair)] != pair for o in lists.values() for pair in itertools.combinations(o, 2)
        )
        assert wrong <= 2 * make("kemeny").aggregate(p).diagnostics.objective
