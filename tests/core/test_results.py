"""The base of results: a small result gets its table, lookup, document and notebook view from its declaration."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from podium.core.errors import ParameterError
from podium.core.old_names import RenamedAttribute
from podium.core.results import Result, build_grid, show_field
from podium.core.tables import Grid


@dataclass(frozen=True)
class Score:
    name: str
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result[Score]):
    rows: tuple[Score, ...]
    matrix: np.ndarray
    notes: tuple[str, ...] = ()

    key, shown = "name", 2
    facts = ("rows", "matrix", "notes", "count")
    total = RenamedAttribute("sum")

    def headline(self):
        return f"{len(self)} scores"

    def sum(self):
        return math.fsum(row.value for row in self.rows)

    def grid(self):
        return build_grid(
            [("name", show_field("name")), ("value", show_field("value", "{:.1f}".format))], self.rows
        )

    def blocks(self):
        return "All <scores>", self.notes, self.grid()

    def _compute_facts(self):
        return {"count": len(self)}


@pytest.fixture
def scores():
    rows = tuple(Score(name, value) for name, value in zip("abc", (1.0, math.nan, 2.5), strict=True))
    return Scores(rows, np.eye(2), ("one & two",))


def test_rows_are_found_by_their_key(scores):
    assert scores["c"] is scores.rows[2]
    assert list(scores) == list(scores.rows)
    with pytest.raises(ParameterError, match="there is no name 'd'"):
        scores["d"]


def test_document_has_the_declared_keys_in_order_and_is_strict_json(scores):
    document = scores.to_dict()
    assert list(document) == ["rows", "matrix", "notes", "count"]
    assert document["matrix"] == [[1.0, 0.0], [0.0, 1.0]]
    assert document["count"] == 3
    read = json.loads(scores.to_json())
    assert read["rows"][1] == {"name": "b", "value": None}


def test_text_is_the_headline_and_the_view_escapes_and_limits_its_blocks(scores):
    assert repr(scores) == str(scores) == "Scores(3 scores)"
    view = scores._repr_html_()
    assert "All &lt;scores&gt;" in view
    assert "<li>one &amp; two</li>" in view
    assert view.count("<tr>") == 1 + 2 + 1  # head, two rows, the number of the others
    assert "1 more" in view


def test_optional_columns_without_text_are_left_out():
    columns = [("same", str), ("same", lambda r: ""), ("note", lambda r: "")]
    assert build_grid(columns, [1], optional={"note"}) == Grid(("same", "same"), (("1", ""),))
    assert build_grid(columns, [], left=2, title="t") == Grid(("same", "same", "note"), (), 2, "t")


def test_results_without_a_chart_say_so(scores):
    with pytest.raises(ParameterError, match="no chart of Scores"):
        scores.chart()


def test_an_earlier_name_warns_with_the_new_one(scores):
    with pytest.warns(DeprecationWarning, match="Scores: total is now sum"):
        assert math.isnan(scores.total())


def test_public_results_share_the_base():
    from podium.analysis.annotators import Annotators
    from podium.analysis.experts import Diagnosis
    from podium.analysis.explain import Explanation
    from podium.analysis.leaderboard import Leaderboard
    from podium.evaluate import Comparison, CrossValidation, Curve, Evaluation, Tuning

    evaluated = (Comparison, CrossValidation, Curve, Evaluation, Tuning)
    for cls in (*evaluated, Annotators, Diagnosis, Explanation, Leaderboard):
        assert issubclass(cls, Result)
        assert "_repr_html_" not in vars(cls)


def test_earlier_names_of_public_results_warn():
    from podium import Labels, Preferences, compare, make

    p = Preferences.from_lists({q: {"x": ["a", "b"], "y": ["b", "a"], "z": ["b"]} for q in range(4)})
    results = {name: make(name).aggregate(p) for name in ("rrf", "isr")}
    comparison = compare(results, Labels.from_dict({q: {"b": 1} for q in range(4)}), "mrr")
    with pytest.warns(DeprecationWarning, match="Comparison: verdict is now conclusion"):
        assert comparison.verdict() == comparison.conclusion()
