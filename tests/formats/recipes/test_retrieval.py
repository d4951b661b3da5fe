"""Runs and judgements of retrieval toolkits survive round trips; responses of search engines keep their order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Labels, Preferences, formats
from podium.core.errors import InputError, PodiumWarning
from podium.formats.base import Content
from podium.storage.files import Source
from recipe_reading import read_text, write_and_read

# ids without anything that `str.split` takes for whitespace
WORD_CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Z", "Cc"))
WORD = st.text(WORD_CHARACTERS, min_size=1, max_size=5)
UNQUOTED = WORD.filter(lambda word: '"' not in word)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
SCORES = st.floats(allow_nan=False, allow_infinity=False)


def list_grades(labels):
    return sorted(map(repr, labels.to_frame().to_pylist()))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXT, st.dictionaries(TEXT, SCORES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_ranx_runs(run):
    p = Preferences.from_lists({q: {"f": items} for q, items in run.items()}, unlisted="below")
    assert write_and_read("ranx", Content(p), "f.json").preferences == p
    assert json.loads(b"".join(formats.RanxRun().write(Content(p)))) == run


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXT, st.dictionaries(TEXT, st.integers(0, 9), min_size=1, max_size=4), min_size=1))
def test_ranx_qrels(qrels):
    labels = Labels.from_dict(qrels)
    again = write_and_read("ranx-qrels", Content(labels=labels), "f.json").labels
    assert again is not None
    assert list_grades(again) == list_grades(labels)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        UNQUOTED, st.dictionaries(UNQUOTED, st.integers(0, 9), min_size=1, max_size=4), min_size=1
    )
)
def test_beir_qrels(qrels):
    labels = Labels.from_dict(qrels)
    again = write_and_read("beir", Content(labels=labels), "test.tsv").labels
    assert again is not None
    assert list_grades(again) == list_grades(labels)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(WORD, st.lists(WORD, min_size=1, max_size=4, unique=True), min_size=1, max_size=3))
def test_ms_marco_runs(run):
    p = Preferences.from_lists({q: {"f": items} for q, items in run.items()}, unlisted="below")
    assert write_and_read("msmarco", Content(p), "f.tsv").preferences == p


def test_a_run_has_one_expert():
    p = Preferences.from_lists({"q": {"e": ["a"], "f": ["b"]}})
    for name in ("ranx", "msmarco"):
        with pytest.raises(InputError, match="a run stores one expert, not 2; write a file per expert"):
            list(
                formats.RanxRun().write(Content(p)) if name == "ranx" else formats.MsMarco().write(Content(p))
            )


def test_beir_ids_have_no_quotes():
    with pytest.raises(InputError, match="an id contains a quotation mark; rename it, or write qrels"):
        list(formats.Beir().write(Content(labels=Labels.from_dict({"q": {'"': 1}}))))


def test_ranx_and_trec_say_the_same():
    run = read_text(None, json.dumps({"q": {"a": 2.5, "b": 1.0}}), "bm25.json").preferences
    assert run == read_text(None, "q Q0 a 1 2.5 bm25\nq Q0 b 2 1.0 bm25\n").preferences


def test_whole_numbers_are_grades_unless_a_run_is_asked_for():
    text = json.dumps({"q": {"a": 2, "b": 1}})
    assert read_text(None, text, "f.json").labels is not None
    assert read_text("ranx", text, "f.json").preferences.lists.rows == 2


def test_responses_of_search_engines():
    hits = {"hits": {"hits": [{"_id": "b", "_score": 1.0}, {"_id": "a", "_score": 1.0}]}}
    one = read_text(None, json.dumps(hits, indent=1), "bm25.json").preferences
    assert one == Preferences.from_lists(
        {"1": {"bm25": ["b", "a"]}}, unlisted="below"
    )  # equal scores keep their order
    lines = "\n".join(json.dumps({"id": q, **hits}) for q in ("x", "y"))
    named = formats.read([Source("bm25.json", lines.encode())], query="id").preferences
    assert named.queries.tolist() == ["x", "y"]
    with pytest.warns(PodiumWarning, match="responses do not name their queries, which are numbered from 1"):
        assert len(formats.read([Source("bm25.json", lines.encode())]).preferences) == 2
    with pytest.raises(InputError, match=r"bm25\.json: a hit has no _id"):
        read_text(None, json.dumps({"hits": {"hits": [{"_score": 1}]}}, indent=1), "bm25.json")


def test_ms_marco_lines_with_other_columns_are_refused():
    with pytest.raises(InputError, match=r"f\.tsv:2: .* is not a line of an MS MARCO run"):
        read_text("msmarco", "1\t2\t1\n1\t3\t0\n", "f.tsv")
