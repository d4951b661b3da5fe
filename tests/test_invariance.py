"""What must not change an answer: what the process did before, and how the work is divided."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from podium import Preferences, make
from podium.core import registry
from podium.data.preferences import Form
from podium.testing import checks, invariance
from podium.testing.samples import PreferenceRows, sample_crowd_rows

# votes that cancel in sum and not in floating point; found by permuting and renaming
EVEN = [
    ("q", "w0", "a", "b", False, 1.0),
    ("q", "w1", "b", "a", False, 1.0),
    ("r", "w0", "b", "a", False, 1.0),
    ("r", "w1", "b", "a", False, 1.0),
    ("r", "w2", "b", "a", False, 1.0),
]


@pytest.mark.parametrize(
    "spec", ["crowd_bt", "crowdagg", "dawid_skene", "em_elo(start=0)", "bradley_terry", "elo"]
)
def test_items_whose_votes_cancel_are_tied(spec):
    votes = PreferenceRows(
        Form.COMPARISON, votes=tuple(v for v in EVEN if spec != "elo" or v[0] == "r")
    ).to_preferences()
    found = make(spec).aggregate(votes)
    assert found.ranking("r") == ["b", "a"]
    if spec != "elo":  # of two votes the later one counts for more
        assert [place.tied for place in found["q"]] == [True, True]


@pytest.mark.parametrize(
    ("name", "check", "form", "seed"),
    [
        ("crowdagg", "threads_do_not_matter", Form.TOP_K, 1),
        ("crowdagg", "renaming_experts", Form.TOP_K, 8),
        ("crowdagg", "renaming_experts", Form.RANKING, 24),
        ("crowdagg", "weight_zero", Form.RANKING, 2),
        ("crowd_bt", "renaming_experts", Form.TOP_K, 29),
        ("dawid_skene", "weight_zero", Form.RATING, 1),
    ],
)
def test_cases_that_failed_once(name, check, form, seed):
    with checks.use_samples(sample_crowd_rows(form, seed)):
        checks.run(registry.aggregators.get(name), check)


def test_a_level_that_only_an_expert_of_weight_zero_uses_is_absent():
    rows = [
        ("q", e, i, r)
        for e, given in (("a", "2210"), ("b", "2100"))
        for i, r in zip("wxyz", given, strict=True)
    ]
    query, expert, item, score = zip(*rows, ("q", "c", "w", "9"), strict=True)
    both = Preferences.from_rows(query, expert, item, score=np.array(score, float))
    weighted = make("dawid_skene", weights={"a": 1, "b": 1, "c": 0}).aggregate(both)
    checks.assert_close(weighted, make("dawid_skene").aggregate(both.without_expert("c")))


def test_votes_of_an_expert_of_weight_zero_do_not_turn_ratings_into_pairs():
    rated = Preferences.from_lists({"q": {"a": {"x": 2, "y": 1, "z": 0}, "b": {"x": 2, "y": 2}}})
    mixed = Preferences.concat([rated, Preferences.from_comparisons(["q"], ["c"], ["z"], ["x"])])
    weighted = make("dawid_skene", weights={"a": 1, "b": 1, "c": 0}).aggregate(mixed)
    checks.assert_close(weighted, make("dawid_skene").aggregate(rated))


def test_the_command_names_what_fails(capsys, monkeypatch):
    assert (
        invariance.main(["rrf", "dawid_skene", "--cases", "1", "--checks", "row_order", "renaming_items"])
        == 0
    )
    assert "4 checks of 2 methods" in capsys.readouterr().out
    broken = dataclasses.replace(checks.CHECKS["row_order"], function=_fail)
    monkeypatch.setitem(checks.CHECKS, "row_order", broken)
    assert invariance.main(["rrf", "--cases", "1", "--checks", "row_order"]) == 1
    assert "rrf row_order: AssertionError: on purpose" in capsys.readouterr().out


def _fail(cls):
    raise AssertionError("on purpose")
