"""Queries where the majority of the experts is wrong, against a plain count of pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Labels, Preferences
from podium.core.errors import InputError
from podium.evaluate import count_majority_errors, select_by_majority


def problem(seed, unlisted="unknown"):
    """Partial lists of five experts over six items; some items have no grade, one query has no labels."""
    random = np.random.default_rng(seed)
    lists = {
        f"q{q}": {e: [f"i{i}" for i in random.permutation(6)[: random.integers(1, 7)]] for e in range(5)}
        for q in range(8)
    }
    grades = {
        f"q{q}": {f"i{i}": int(random.integers(0, 3)) for i in range(6) if random.random() < 0.8}
        for q in range(7)
    }
    return lists, Preferences.from_lists(lists, unlisted=unlisted), grades


def count_plainly(lists, grades, below):
    right, wrong = 0, 0
    for good, bad in itertools.permutations(grades, 2):
        if grades[good] <= grades[bad]:
            continue
        margin = 0
        for one in lists.values():
            place = [one.index(i) if i in one else None for i in (good, bad)]
            if None not in place:
                margin += 1 if place[0] < place[1] else -1
            elif below and place != [None, None]:
                margin += 1 if place[1] is None else -1
        right, wrong = right + (margin > 0), wrong + (margin < 0)
    return right, wrong


@pytest.mark.parametrize("unlisted", ["unknown", "below"])
@pytest.mark.parametrize("seed", range(5))
def test_counts_by_their_definition(seed, unlisted):
    lists, preferences, grades = problem(seed, unlisted)
    listed = {q: {i for one in lists[q].values() for i in one} for q in lists}
    labels = Labels.from_dict(grades)
    counts = count_majority_errors(preferences, labels)
    for number, query in enumerate(labels.index.queries):
        known = {i: g for i, g in grades[query].items() if i in listed[query]}
        plain = count_plainly(lists[query], known, unlisted == "below")
        assert (counts.right[number], counts.wrong[number]) == plain


def test_queries_are_selected_by_the_counts():
    _, preferences, grades = problem(3)
    labels = Labels.from_dict(grades | {"elsewhere": {"x": 1, "y": 0}})
    right, wrong = count_majority_errors(preferences, labels)
    for outcome, chosen in (("majority-wrong", wrong > right), ("majority-right", right > wrong)):
        selected = select_by_majority(preferences, labels, outcome)
        names = [q for q, mine in zip(labels.index.queries, chosen, strict=True) if mine]
        assert selected.index.queries.tolist() == names != []
        assert all(selected.grade(q, i) == g for q in names for i, g in grades[q].items())


def test_votes_count_as_well():
    votes = Preferences.from_comparisons(["q"] * 3, [1, 2, 3], ["a", "a", "b"], ["b", "b", "a"])
    assert [c.tolist() for c in count_majority_errors(votes, Labels.from_dict({"q": {"a": 0, "b": 1}}))] == [
        [0],
        [1],
    ]


def test_no_such_query_is_an_error():
    p = Preferences.from_lists({"q": {1: ["a", "b"]}})
    with pytest.raises(
        InputError, match="the majority of the experts is wrong on none of the 1 judged queries"
    ):
        select_by_majority(p, Labels.from_dict({"q": {"a": 1, "b": 0}}))
