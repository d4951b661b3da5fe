"""Voting rules on whole ballots: their definitions, textbook elections, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, fuse, make
from podium.core.errors import ParameterError
from podium.data.preferences import Form
from podium.methods.base import LIST_FORMS
from podium.testing import strategies
from reference import elections as plain
from reference.pairs import voices

few = settings(max_examples=25, deadline=None)
WEIGHTS = st.lists(st.sampled_from([0, 1, 2, 3]), min_size=12, max_size=12)
POINTS = st.sampled_from(["plurality", "veto", "k_approval", "dowdall", "borda", [5, 3, 3, 1], [1.5]])


def weigh(preferences, weights):
    by_expert = dict(zip(preferences.experts, weights, strict=False))
    return by_expert if any(by_expert.values()) else dict.fromkeys(by_expert, 1)


def read_ballots(preferences, query, by_expert):
    """Items and ballots; rankings are read without the items below them."""
    one = preferences.select([query])
    items, lists = one.index.items.tolist(), one.lists
    ballots = []
    for n in range(len(lists)):
        rows = range(int(lists.starts[n]), int(lists.starts[n + 1]))
        weight = by_expert[one.experts[int(lists.expert[n])]]
        if weight:
            ballots.append((weight, {items[lists.item[r]]: int(lists.rank[r]) for r in rows}))
    return items, ballots


@few
@given(
    preferences=strategies.preferences(LIST_FORMS),
    weights=WEIGHTS,
    points=POINTS,
    missing=st.sampled_from(["share", "last", "ignore"]),
)
def test_scoring_equals_its_definition(preferences, weights, points, missing):
    by_expert = weigh(preferences, weights)
    method = make("scoring", points=points, k=2, missing=missing, weights=by_expert)
    consensus = method.aggregate(preferences)
    for query in preferences.queries:
        items, ballots = read_ballots(preferences, query, by_expert)
        expected = plain.scoring(items, ballots, points, 2, missing)
        listed = {i for _, ranks in ballots for i in ranks}
        for place in consensus[query]:
            if place.item in listed:  # the others come last, whatever their points
                assert place.score == pytest.approx(float(expected[place.item]), abs=1e-12)


@few
@given(preferences=strategies.preferences(LIST_FORMS), weights=WEIGHTS)
def test_irv_equals_its_definition(preferences, weights):
    by_expert = weigh(preferences, weights)
    consensus = make("irv", weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        items, ballots = read_ballots(preferences, query, by_expert)
        expected = plain.irv(items, ballots)
        listed = {i for _, ranks in ballots for i in ranks}
        scores = {place.item: place.score for place in consensus[query]}
        for i in items:
            for j in listed:
                if i in listed:
                    assert (scores[i] > scores[j]) == (expected[i] > expected[j])
                else:
                    assert scores[i] < scores[j]


@few
@given(preferences=strategies.preferences(frozenset({Form.RATING})), weights=WEIGHTS)
@pytest.mark.parametrize("missing", ["ignore", "worst"])
def test_majority_judgment_equals_its_definition(preferences, weights, missing):
    by_expert = weigh(preferences, weights)
    consensus = make("majority_judgment", missing=missing, weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        one = preferences.select([query])
        items, lists = one.index.items.tolist(), one.lists
        grades = {i: [] for i in items}
        for row in range(lists.rows):
            expert = one.experts[int(lists.expert[lists.list_of_row[row]])]
            grades[items[lists.item[row]]] += [float(lists.score[row])] * by_expert[expert]
        given = [g for i in items for g in grades[i]]
        rated = [i for i in items if grades[i]]  # the others come last
        if missing == "worst" and given:
            voters = sum(by_expert[one.experts[int(e)]] for e in lists.expert)
            grades = {i: g + [min(given)] * (voters - len(g)) for i, g in grades.items()}
        expected = plain.majority_judgment(items, grades)
        scores = {place.item: place.score for place in consensus[query]}
        for i in rated:
            for j in rated:
                assert (scores[i] > scores[j]) == (expected[i] > expected[j])


# 42 % of the voters live in Memphis, 26 % in Nashville, 15 % in Chattanooga, 17 % in Knoxville (Tennessee example)
TENNESSEE = {"m": (42, "MNCK"), "n": (26, "NCKM"), "c": (15, "CKNM"), "k": (17, "KCNM")}


def elect(spec):
    lists = {f"{name}{v}": list(order) for name, (n, order) in TENNESSEE.items() for v in range(n)}
    return "".join(make(spec).aggregate(Preferences.from_lists({"q": lists})).ranking("q"))


@pytest.mark.parametrize(
    ("spec", "order"),
    [
        ("irv", "KMNC"),  # Chattanooga goes first, then Nashville
        ("scoring(points=plurality)", "MNKC"),
        ("scoring(points=borda)", "NCMK"),  # 194, 173, 126, 107
        ("minimax", "NCKM"),
        ("split_cycle", "NCKM"),
    ],
)
def test_tennessee(spec, order):
    assert elect(spec) == order


def test_scoring_by_borda_is_borda():
    lists = [["a", "b", "c", "d"], ["b", "d"], ["d", "a", "b"]]
    for missing in ("share", "last", "ignore"):
        ours = fuse(lists, method=f"scoring(points=borda, missing={missing})")
        assert ours.scores == fuse(lists, method=f"borda(missing={missing})").scores


@pytest.mark.parametrize("points", ["first", [], [1, 2], [-1], [1, "x"], [float("nan")], None, [True]])
def test_bad_points_are_refused(points):
    with pytest.raises(ParameterError, match=r"scoring: points is .*accepted: plurality, veto"):
        make("scoring", points=points)


def test_a_majority_of_first_places_wins_every_runoff():
    random = np.random.default_rng(0)
    for _ in range(50):
        size = int(random.integers(2, 7))
        others = [random.permutation(size).tolist() for _ in range(4)]
        favorite = [[0, *(random.permutation(size - 1) + 1).tolist()] for _ in range(5)]
        assert fuse([*others, *favorite], method="irv").ranking[0] == 0


def test_voices_are_read_alike():
    p = Preferences.from_lists({"q": {"a": ["x", "y"], "b": ["y"]}})
    assert read_ballots(p, "q", {"a": 1, "b": 1}) == voices(p, "q", {"a": 1, "b": 1})
