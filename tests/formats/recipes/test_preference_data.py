"""TRL data: every prompt is a query unless one query is asked for; strengths of HelpSteer; UltraFeedback's scores."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, formats
from podium.core.errors import InputError, PodiumWarning
from podium.formats.base import Content
from podium.storage.files import Source
from recipe_reading import list_votes, read_records, write_and_read

PAIRS = [{"prompt": "p1", "chosen": "a", "rejected": "b"}, {"prompt": "p2", "chosen": "c", "rejected": "d"}]
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


def test_prompts_are_queries_unless_pooled():
    assert read_records("trl", PAIRS).preferences.queries.tolist() == ["p1", "p2"]
    for none in ("none", ""):
        pooled = read_records("trl", PAIRS, query=none)
        assert pooled.preferences.queries.tolist() == ["all"]
        assert "all prompts are one query" in pooled.summary


def test_names_of_models_under_several_prompts_are_pointed_out():
    records = [{**pair, "chosen": "x", "rejected": "y"} for pair in PAIRS]
    raw = "\n".join(map(json.dumps, records)).encode()
    with pytest.warns(PodiumWarning, match=r"2 of 2 answers occur under several prompts.* query='none'"):
        formats.read([Source("f.jsonl", raw)])
    assert len(formats.read([Source("f.jsonl", raw)], query="none").preferences) == 1
    assert len(formats.read([Source("f.jsonl", raw)], query="prompt").preferences) == 2  # without a warning


def test_an_option_of_tables_reads_a_table():
    raw = "\n".join(map(json.dumps, PAIRS)).encode()
    content = formats.read([Source("f.jsonl", raw)], winner="chosen", loser="rejected", query="")
    assert content.preferences.queries.tolist() == ["all"]
    assert not content.summary


def test_conversations_share_their_prompt():
    prompt = [{"role": "user", "content": "2+2?"}]
    record = {"chosen": [*prompt, {"role": "assistant", "content": "4"}],
              "rejected": [*prompt, {"role": "assistant", "content": "5"}]}  # fmt: skip
    p = read_records(None, [record]).preferences
    assert p.queries.tolist() == [json.dumps(prompt)]
    other = {**record, "rejected": [{"role": "user", "content": "3+3?"}]}
    with pytest.raises(
        InputError, match=r"f\.jsonl:1: the two conversations begin differently; give query='none'"
    ):
        read_records("trl", [other])
    with pytest.raises(
        InputError, match=r"f\.jsonl:1: there is no prompt; name its key, query=, or give query='none'"
    ):
        read_records("trl", [{"chosen": "a", "rejected": "b"}])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TEXT, st.tuples(TEXT, TEXT).filter(lambda p: p[0] != p[1])), min_size=1, max_size=6)
)
def test_pairs_survive_a_round_trip(rows):
    query, pairs = zip(*rows, strict=True)
    p = Preferences.from_comparisons(query, ["f"] * len(rows), [a for a, _ in pairs], [b for _, b in pairs])
    assert write_and_read("trl", Content(p), "f.jsonl", query="prompt").preferences == p


def test_ties_and_weights_that_cannot_be_written_are_named():
    p = Preferences.from_comparisons(
        ["q"] * 2, ["e"] * 2, ["a", "a"], ["b", "c"], tie=[True, False], weight=[1, 2]
    )
    with pytest.warns(PodiumWarning, match="not written, because trl files cannot store them: ties, weights"):
        assert len(b"".join(formats.Trl().write(Content(p))).splitlines()) == 1


@pytest.mark.parametrize("strength", range(-3, 4))
def test_helpsteer_strengths_are_weights(strength):
    """HelpSteer2-Preference scales the loss of a pair by the magnitude of the preference."""
    record = {"prompt": "p", "response_1": "a", "response_2": "b", "preference_strength": strength}
    ((_, winner, _, tie, weight, _),) = list_votes(read_records(None, [record]))
    assert tie == (strength == 0)
    assert weight == max(abs(strength), 1)
    assert tie or winner == ("a" if strength < 0 else "b")


def test_ultrafeedback_scores_by_key():
    completions = [
        {"model": m, "overall_score": 5, "annotations": {"honesty": {"Rating": r}}} for m, r in ("x4", "y2")
    ]
    completions.append({"model": "z", "annotations": {"honesty": {"Rating": "N/A"}}})
    record = {"instruction": "i", "completions": completions}
    content = read_records("ultrafeedback", [record], score="annotations.honesty.Rating")
    assert content.preferences.lists.score.tolist() == [4.0, 2.0]
    assert "dropped: 1 completion without score" in content.summary
