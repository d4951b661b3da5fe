"""Any dataframe in and out."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from podium import Labels, Preferences, make
from podium.errors import InputError, ParameterError
from podium.testing import strategies

MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "lazy": lambda d: pl.DataFrame(d).lazy(),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_lists_from_every_dataframe(maker):
    frame = maker(
        {"topic": [2, 2, 1], "run": ["b", "b", "a"], "doc": ["x", "y", "x"], "score": [0.5, 0.7, 0.1]}
    )
    p = Preferences.from_frame(frame, query="topic", expert="run", item="doc")
    assert p == Preferences.from_lists({2: {"b": {"x": 0.5, "y": 0.7}}, 1: {"a": {"x": 0.1}}})


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_votes_from_every_dataframe(maker):
    frame = maker({"judge": ["j", "k"], "a": ["x", "y"], "b": ["y", "z"], "same": [True, False]})
    p = Preferences.from_frame(frame, query=None, expert="judge", winner="a", loser="b", tie="same")
    assert len(p.comparisons) == 2
    assert p.comparisons.tie.tolist() == [True, False]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@settings(deadline=None, max_examples=30)
@given(p=strategies.rankings())
def test_lists_survive_a_round_trip(backend, p):
    assert Preferences.from_frame(p.to_frame(backend)) == p


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@settings(deadline=None, max_examples=30)
@given(labels=strategies.labels())
def test_labels_survive_a_round_trip(backend, labels):
    assert Labels.from_frame(labels.to_frame(backend)) == labels


def test_categories_and_chunks():
    frame = pd.DataFrame(
        {"query": ["q", "q"], "expert": ["e", "e"], "item": ["b", "a"], "rank": [1, 2]}
    ).astype({"item": "category"})
    assert Preferences.from_frame(frame) == Preferences.from_lists({"q": {"e": ["b", "a"]}})
    table = pa.concat_tables(
        [p.to_frame() for p in (Preferences.from_lists({q: {"e": ["b", q]}}) for q in "xyz")]
    )
    assert len(Preferences.from_frame(table)) == 3


def test_the_result_as_a_dataframe():
    p = Preferences.from_lists({"q": {"a": ["x", "y"], "b": ["y", "z"]}})
    frame = make("rrf").aggregate(p).to_frame("pandas", top=2)
    assert frame["item"].tolist() == ["y", "x"]
    assert frame["rank"].tolist() == [1, 2]
    assert frame["tied"].tolist() == [False, False]


def test_what_is_wrong_is_said():
    frame = pd.DataFrame({"query": ["q"], "expert": ["e"], "item": [None], "rank": [1]})
    with pytest.raises(InputError, match="row 1: the item id is missing"):
        Preferences.from_frame(frame)
    with pytest.raises(InputError, match="no column 'items'; did you mean item"):
        Preferences.from_frame(frame, item="items")
    with pytest.raises(InputError, match="cannot read a list as a dataframe"):
        Preferences.from_frame([1, 2])
    with pytest.raises(ParameterError, match="backend is 'spark'"):
        Preferences.from_lists({"q": {"a": ["x"]}}).to_frame("spark")
    empty = pd.DataFrame({"query": [], "expert": [], "item": [], "rank": []})
    assert len(Preferences.from_frame(empty)) == 0
