"""Tables of crowdsourcing platforms, wide tables and results of harnesses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, formats
from podium.core.errors import InputError, PodiumWarning
from podium.formats.base import Content
from podium.storage.files import Source
from recipe_reading import list_votes, read_text

HEAD = "HITId,WorkerId,Input.query,Input.doc,Answer.relevance\n"
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=5)
SCORES = st.floats(allow_nan=False, allow_infinity=False)


def test_ratings_of_mechanical_turk():
    text = HEAD + "H,w1,q,d1,3\nH,w1,q,d2,1\nH,w2,q,d1,\n"
    content = read_text(None, text, "batch.csv")
    assert content.preferences == Preferences.from_lists({"q": {"w1": {"d1": 3, "d2": 1}}})
    assert "dropped: 1 empty answer" in content.summary
    named = read_text(None, HEAD + "H,w,q,d1,yes\nH,w,q,d2,no\n", "batch.csv", grades="yes=1,no=0")
    assert named.preferences.lists.score.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "H,w,q,d1,yes\n", r"batch\.csv:2: the answer is 'yes'; give numbers, or .*grades="),
        (
            "HITId,WorkerId,Input.x,Input.y,Answer.z\nH,w,a,b,1\n",
            r"batch\.csv:2: cannot tell which columns are items among Input\.x, Input\.y; .*items='Input\.x,Input\.y'",
        ),
        (
            "HITId,WorkerId,Input.doc,Answer.a,Answer.b\nH,w,d,1,2\n",
            r"batch\.csv:2: the columns of answers are Answer\.a, Answer\.b; choose one, answer=",
        ),
        (
            "HITId,WorkerId,Input.a,Input.b,Answer.z\nH,w,x,y,maybe\n",
            r"batch\.csv:2: the answer 'maybe' is neither of the two items",
        ),
    ],
)
def test_what_cannot_be_known_is_asked_for(text, words):
    with pytest.raises(InputError, match=words):
        read_text(None, text, "batch.csv")


def test_columns_are_options():
    text = "HITId,WorkerId,Input.x,Input.y,Answer.z,Answer.comment\nH,w,a,b,2,nice\n"
    content = read_text(None, text, "batch.csv", items="Input.x,Input.y", answer="Answer.z")
    assert list_votes(content) == [("all", "b", "a", False, 1.0, -1)]


def test_categories_of_crowd_kit_need_numbers():
    with pytest.raises(InputError, match=r"f\.csv:2: the label is 'cat'; .*grades="):
        read_text(None, "task,worker,label\nt,w,cat\n", "f.csv")


# -- wide tables -------------------------------------------------------------------------------------------


def test_wide_tables_say_what_they_take_for_experts():
    raw = b"item;e;f\na;2.5;1\nb;;3\n"
    with pytest.warns(
        PodiumWarning, match=r"a row is an item \(item\) and the columns e, f are experts; .*experts="
    ):
        content = formats.read([Source("f.csv", raw)])
    assert content.preferences == Preferences.from_lists({"all": {"e": {"a": 2.5}, "f": {"a": 1, "b": 3}}})
    one = formats.read([Source("f.csv", raw)], "wide", experts="e").preferences
    assert one.experts.tolist() == ["e"]


def test_ranks_are_not_taken_for_scores_in_silence():
    text = "item,e,f\na,1,2\nb,2,1\nc,3,3\n"
    with pytest.raises(InputError, match=r"ranks or scores\?; give values='ranks' or 'scores'"):
        read_text(None, text, "f.csv")
    by_rank = read_text(None, text, "f.csv", values="ranks").preferences
    assert by_rank == Preferences.from_lists({"all": {"e": ["a", "b", "c"], "f": ["b", "a", "c"]}})
    assert read_text(None, text, "f.csv", values="scores").preferences.lists.score is not None


def test_feature_tables_stay_feature_tables():
    text = "query,item,bm25,length\nq,a,2.5,10\nq,b,1.5,20\n"
    content = read_text(None, text, "f.csv", kind="features")
    assert content.features is not None
    assert content.features.names == ("bm25", "length")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        NAMES.filter(lambda n: n not in ("query", "item") and n == n.strip()),
        st.dictionaries(st.tuples(NAMES, NAMES), SCORES, min_size=1, max_size=3),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_wide_tables_survive_a_round_trip(cells):
    rows = [(q, e, i, v) for e, by_item in cells.items() for (q, i), v in by_item.items()]
    query, expert, item, score = zip(*rows, strict=True)
    p = Preferences.from_rows(query, expert, item, score=score)
    raw = b"".join(formats.WideTable().write(Content(p)))
    again = read_text("wide", raw.decode(), "f.csv", values="scores", query="query", items="item")
    assert again.preferences is not None
    assert sorted(again.preferences.to_frame().to_pylist(), key=repr) == sorted(
        p.to_frame().to_pylist(), key=repr
    )


# -- lm-eval -----------------------------------------------------------------------------------------------


def result(model, **tasks):
    return {"results": tasks, "configs": {}, "model_name": model}


def test_files_of_several_models_are_one_leaderboard(tmp_path):
    for model, value in (("x", 0.4), ("y", 0.7)):
        (tmp_path / f"{model}.json").write_text(
            json.dumps(result(model, arc={"acc,none": value, "acc_norm,none": 1 - value}), indent=1)
        )
    paths = [tmp_path / "x.json", tmp_path / "y.json"]
    p = formats.read(paths).preferences
    assert p == Preferences.from_lists({"all": {"arc": {"x": 0.4, "y": 0.7}}})
    norm = formats.read(paths, metric="acc_norm").preferences
    assert norm == Preferences.from_lists({"all": {"arc": {"x": 0.6, "y": 1 - 0.7}}})


def test_tasks_of_a_group_are_not_counted_twice():
    record = {
        **result("x", mmlu={"acc,none": 0.5}, mmlu_law={"acc,none": 0.4}),
        "group_subtasks": {"mmlu": ["mmlu_law"]},
    }
    content = read_text(None, json.dumps(record), "f.json")
    assert content.preferences.experts.tolist() == ["mmlu"]
    assert "dropped: 1 task of a group with a result" in content.summary
    record["results"] |= {"mmlu_art": {"acc,none": 0.4}, "empty": {}}
    record["group_subtasks"]["mmlu"].append("mmlu_art")
    several = read_text(None, json.dumps(record), "f.json").summary
    assert "dropped: 2 tasks of a group with a result, 1 task without a result" in several
    with pytest.raises(
        InputError, match=r"f\.json:1: the file does not name its model; name its key, items="
    ):
        read_text(None, json.dumps({**record, "model_name": ""}), "f.json")
