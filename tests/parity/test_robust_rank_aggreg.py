"""The same p-values and means as RobustRankAggreg, whose outputs are stored with its version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium import Preferences, make

STORED = json.loads((Path(__file__).parent / "peer_outputs" / "robust_rank_aggreg.json").read_text())["cases"]


@pytest.mark.parametrize("case", range(len(STORED)))
@pytest.mark.parametrize("name", ["rra", "stuart", "geometric_mean"])
def test_values_are_those_of_r(case, name):
    stored = STORED[case]
    preferences = Preferences.from_lists({"q": dict(enumerate(stored["lists"]))})
    method = make(name, population=stored["population"], missing=stored["missing"])
    consensus = method.aggregate(preferences)
    values = {
        "rra": consensus.p_values,
        "stuart": 10.0**-consensus.scores,
        "geometric_mean": -consensus.scores,
    }[name]
    assert dict(zip(preferences.index.items, values, strict=True)) == pytest.approx(stored[name], rel=1e-12)


def test_the_first_case_has_the_published_values():
    rounded = {item: round(p, 9) for item, p in STORED[0]["rra"].items()}
    assert rounded | {"e": None} == {
        "a": 0.010923987,
        "b": 0.001365498,
        "c": 0.110605371,
        "d": 0.010923987,
        "e": None,
    }
