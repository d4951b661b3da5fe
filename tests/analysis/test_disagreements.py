"""Examples of disagreement, against a plain count over all votes and ratings."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from podium.analysis.annotators import find_disagreements
from podium.core.errors import ParameterError
from podium.data.preferences import Preferences


def make_votes(seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(120):
        a, b = rng.sample("abcd", 2)
        rows.append((rng.randrange(4), f"w{rng.randrange(6)}", a, b, rng.random() < 0.2))
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_votes_against_a_plain_count(seed):
    rows = make_votes(seed)
    query, who, won, lost, tie = zip(*rows, strict=True)
    votes = Preferences.from_comparisons(query, who, won, lost, tie=tie)
    answers = defaultdict(lambda: defaultdict(int))  # (query, pair) -> annotator -> sum of signs
    for q, w, a, b, t in rows:
        answers[q, min(a, b), max(a, b)][w] += 0 if t else (1 if a < b else -1)
    expected = set()
    for (q, low, high), by in answers.items():
        if "w0" not in by:
            continue
        sign = {w: (s > 0) - (s < 0) for w, s in by.items()}
        mine, others = sign.pop("w0"), list(sign.values())
        if mine:
            against, same = others.count(-mine), others.count(mine)
        else:
            against, same = max(others.count(1), others.count(-1)), others.count(0)
        if against > same:
            first, second = (low, high) if mine >= 0 else (high, low)
            expected.add((q, first, second, mine == 0, len(others), against))
    cases = find_disagreements(votes, "w0", 1000)
    assert {(c.query, c.item, c.other, c.tie, c.others, c.against) for c in cases} == expected
    assert [c.strength for c in cases] == sorted((c.strength for c in cases), reverse=True)


def test_ratings_against_the_mean_of_the_others():
    ratings = {"ann": {"x": 5, "y": 1}, "ben": {"x": 1, "y": 1}, "cid": {"x": 2, "y": 2}}
    [case] = find_disagreements(Preferences.from_lists({"q": ratings}), "ann")
    assert (case.item, case.own, case.mean, case.others, case.against) == ("x", 5, 1.5, 2, 2)
    assert find_disagreements(Preferences.from_lists({"q": {"ann": {"x": 1}}}), "ann") == []


def test_an_unknown_annotator_is_named():
    votes = Preferences.from_comparisons([1], ["ann"], ["a"], ["b"])
    with pytest.raises(ParameterError, match="no expert 'eve'"):
        find_disagreements(votes, "eve")
