"""`df.podium` of pandas and polars."""

from __future__ import annotations

import importlib

import pytest

import podium
from podium.core.errors import InputError, ParameterError

pytest.importorskip("pyarrow", reason="dataframes need pyarrow")
COLUMNS = {
    "query": ["q", "q", "q", "q", "r", "r"],
    "expert": ["a", "a", "b", "b", "a", "b"],
    "item": ["x", "y", "y", "z", "x", "y"],
    "rank": [1, 2, 1, 2, 1, 1],
    "score": [0.5, 0.5, 9.0, 1.0, 0.2, 0.3],
}


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    module = pytest.importorskip(request.param)
    importlib.import_module(f"podium.integrations.{request.param}")
    return module


def read_rows(frame):
    return list(zip(*(frame[name].to_list() for name in ("query", "item", "rank", "score")), strict=True))


def flatten(consensus):
    return [(query, r.item, r.rank, r.score) for query in consensus for r in consensus[query]]


@pytest.mark.parametrize("method", ["rrf", "rrf(k=3)", "condorcet", "combsum(normalizer='minmax')"])
def test_a_frame_is_fused_into_a_frame_of_its_kind(library, method):
    frame = library.DataFrame(COLUMNS)
    fused = frame.podium.fuse(method, weights={"a": 1, "b": 2})
    assert type(fused) is type(frame)
    expected = podium.make(method, weights={"a": 1, "b": 2}).aggregate(podium.Preferences.from_frame(frame))
    assert read_rows(fused) == flatten(expected)


def test_ranks_come_from_their_column_or_from_the_scores(library):
    frame = library.DataFrame(COLUMNS)
    given = {row[:2]: row[3] for row in read_rows(frame.podium.fuse())}
    assert given["q", "y"] == pytest.approx(1 / 62 + 1 / 61)
    scored = {row[:2]: row[3] for row in read_rows(frame.podium.fuse(ranks="scores"))}
    assert scored["q", "y"] == pytest.approx(2 / 61)


def test_columns_are_named_and_results_cut(library, tmp_path):
    podium.save(podium.make("rrf(k=1)"), tmp_path / "best.podium")
    named = {"topic" if name == "query" else name: values for name, values in COLUMNS.items()}
    fused = library.DataFrame(named).podium.fuse(model=tmp_path / "best.podium", query="topic", top=1)
    assert [row[:2] for row in read_rows(fused)] == [("q", "y"), ("r", "x")]


def test_a_lazy_frame_is_collected():
    polars = pytest.importorskip("polars")
    importlib.import_module("podium.integrations.polars")
    frame = polars.DataFrame(COLUMNS)
    assert frame.lazy().podium.fuse().equals(frame.podium.fuse())


def test_votes_are_fused_too(library):
    votes = library.DataFrame(
        {"model_a": ["x", "x", "y"], "model_b": ["y", "z", "z"], "winner": ["model_a"] * 3}
    )
    assert [row[1] for row in read_rows(votes.podium.fuse("bradley_terry"))] == ["x", "y", "z"]


def test_mistakes_are_named(library):
    frame = library.DataFrame(COLUMNS)
    with pytest.raises(ParameterError, match="ranks is 'score'; accepted: given, scores"):
        frame.podium.fuse(ranks="score")
    with pytest.raises(InputError, match="there is no column 'topic'"):
        frame.podium.fuse(query="topic")
