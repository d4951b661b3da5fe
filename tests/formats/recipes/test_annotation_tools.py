"""Label Studio, Argilla, Prodigy, doccano: options, and what is dropped."""

from __future__ import annotations

import json

import pytest

from podium import Preferences
from podium.core.errors import InputError
from recipe_reading import FILES, list_votes, read_records, read_text


def task(data, *results, **more):
    annotation = {"completed_by": {"id": 3, "email": "a@b.org"}, "was_cancelled": False, "ground_truth": False,
                  "result": list(results), **more}  # fmt: skip
    return {"id": 7, "data": data, "annotations": [annotation]}


def pairwise(side, name="pw"):
    return {"from_name": name, "to_name": "left,right", "type": "pairwise", "value": {"selected": side}}


def test_label_studio_keys_are_options():
    data = {"prompt": "p", "topic": "t", "one": "x", "other": "y"}
    with pytest.raises(
        InputError,
        match=r"f\.jsonl:1: cannot tell which fields are the two items among data\.prompt.* items=",
    ):
        read_records(None, [task(data, pairwise("left"))])
    options = {"items": "data.one,data.other", "query": "data.prompt"}
    content = read_records(None, [task(data, pairwise("right"))], **options)
    assert list_votes(content) == [("p", "y", "x", False, 1.0, -1)]
    assert content.preferences.experts.tolist() == ["a@b.org"]
    assert read_records(
        None, [task(data, pairwise("left"))], **options | {"query": "none"}
    ).preferences.queries.tolist() == ["all"]
    assert read_records(
        None, [task(data, pairwise("left"))], **options, expert="id"
    ).preferences.experts.tolist() == [7]
    with pytest.raises(InputError, match=r"f\.jsonl:1: the item \(data\.none\) is missing"):
        read_records(None, [task(data, pairwise("left"))], items="data.none,data.other")


def test_label_studio_ground_truth_can_be_kept():
    record = task({"a": "x", "b": "y"}, pairwise("left"), ground_truth=True)
    with pytest.raises(InputError, match="dropped: 1 ground-truth annotation"):
        read_records(None, [record])
    assert len(list_votes(read_records(None, [record], ground_truth="keep"))) == 1


def test_label_studio_buckets_and_questions():
    ranker = {
        "from_name": "r",
        "to_name": "l",
        "type": "ranker",
        "value": {"ranker": {"good": ["d2"], "bad": ["d1", "d3"]}},
    }
    record = task({"query": "q"}, ranker)
    with pytest.raises(InputError, match=r"the ranker has the buckets good, bad; .*buckets='good,bad'"):
        read_records(None, [record])
    p = read_records(None, [record], buckets="good,bad").preferences
    assert p == Preferences.from_lists({"q": {"a@b.org": ["d2", "d1", "d3"]}})
    two = [
        {"from_name": n, "to_name": "t", "type": "rating", "value": {"rating": k}}
        for n, k in (("fluent", 3), ("true", 5))
    ]
    with pytest.raises(
        InputError, match=r"several controls have results: fluent, true; .*question='fluent' or 'true'"
    ):
        read_records(None, [task({"text": "x"}, *two)])
    content = read_records(None, [task({"text": "x"}, *two)], question="true")
    assert content.preferences.lists.score.tolist() == [5.0]
    assert "dropped: 1 result of another kind" in content.summary


def test_label_studio_rates_several_objects_of_a_task():
    rated = [
        {"from_name": f"r{k}", "to_name": [k], "type": "rating", "value": {"rating": v}}
        for k, v in (("a", 3), ("b", 5))
    ]
    p = read_records(None, [task({"query": "q", "a": "x", "b": "y"}, *rated)]).preferences
    assert p == Preferences.from_lists({"q": {"a@b.org": {"x": 3, "y": 5}}})


def test_argilla_questions_are_chosen():
    def answer(value):
        return [{"value": value, "user_id": "u"}]

    record = {
        "id": "r",
        "fields": {"prompt": "p", "response_a": "A", "response_b": "B"},
        "suggestions": {},
        "responses": {"better": answer("response_b"), "why": answer("so")},
    }
    with pytest.raises(
        InputError, match=r"several questions have responses: better, why; .*question='better' or 'why'"
    ):
        read_records(None, [record])
    assert list_votes(read_records(None, [record], question="better")) == [("p", "B", "A", False, 1.0, -1)]
    with pytest.raises(InputError, match=r"f\.jsonl:1: the label 'so' is not one of two items"):
        read_records(None, [record], question="why")
    rating = {
        **record,
        "fields": {"prompt": "p", "answer": "A"},
        "responses": {"stars": [{"value": 4, "user_id": "u"}]},
    }
    assert read_records(None, [rating]).preferences == Preferences.from_lists({"p": {"u": {"A": 4}}})
    ranked = {
        **record,
        "responses": {
            "rank": [{"value": [{"value": "a", "rank": 1}, {"value": "b", "rank": 1}], "user_id": "u"}]
        },
    }
    assert read_records(None, [ranked]).preferences.lists.rank.tolist() == [1, 1]  # ties of older versions


def test_argilla_nested_and_flat_differ_by_the_discarded_response():
    nested, flat = (
        read_text(None, (FILES / f"argilla_{kind}.json").read_text(), "f.json") for kind in ("nested", "flat")
    )
    assert len(nested.preferences.lists) == len(flat.preferences.lists) + 1


def test_prodigy_items_and_tasks_without_preference():
    options = [{"id": 1, "text": "A", "model": "x"}, {"id": 2, "text": "B", "model": "y"}]
    record = {"text": "t", "options": options, "accept": [2], "answer": "accept", "_session_id": "s"}
    assert list_votes(read_records(None, [record], items="model")) == [("t", "y", "x", False, 1.0, -1)]
    both = {**record, "accept": [1, 2]}
    reject = {**record, "answer": "reject"}
    content = read_records(None, [record, both, reject])
    assert "dropped: 1 task without preference, 1 rejected task" in content.summary
    with pytest.raises(
        InputError, match=r"f\.jsonl:1: an option has no name; name the key of the items, items="
    ):
        read_records(None, [record], items="name")


def test_doccano_categories_need_numbers():
    records = [{"id": k, "text": "t", "label": [label]} for k, label in enumerate(("good", "bad"))]
    with pytest.raises(InputError, match=r"f\.jsonl:1: the label is 'good'; .*grades='bad=0,good=1'"):
        read_records(None, records)
    content = read_records(None, records, grades="bad=0,good=1")
    assert content.preferences == Preferences.from_lists({"all": {"f": {0: 1, 1: 0}}})
    with pytest.raises(InputError, match="several labels"):
        read_records(None, [{"id": 1, "text": "t", "label": ["1", "2"]}])


def test_lists_of_texts_are_not_taken_for_annotations():
    """Tables with lists are read as before."""
    p = read_text(None, json.dumps({"query": "q", "expert": "e", "items": ["a", "b"]}), "f.jsonl").preferences
    assert p == Preferences.from_lists({"q": {"e": ["a", "b"]}})
