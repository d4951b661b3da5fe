"""The input object of the verbs."""

from __future__ import annotations

import dataclasses
import json

import pytest
from click.testing import CliRunner

import podium
from podium import formats
from podium.cli import program
from podium.cli.input import Input, parse_assignments, resolve_id
from podium.core.errors import ParameterError
from podium.methods.base import make


def test_files_are_read_once_and_only_when_they_are_needed(files, monkeypatch):
    read, calls = formats.read, []
    monkeypatch.setattr(formats, "read", lambda *a, **k: calls.append(a) or read(*a, **k))
    source = Input((str(files / "bm25.run"),), qrels=str(files / "qrels.txt"))
    assert not calls
    assert source.preferences is source.preferences
    assert len(calls) == 1
    assert source.labels is source.optional_labels
    assert len(calls) == 2
    assert source.features_of(make("rrf")) is None
    assert len(calls) == 2


def test_labels_are_those_of_the_option_else_those_of_the_input(files):
    run = str(files / "bm25.run")
    assert Input((run,)).optional_labels is None
    with pytest.raises(ParameterError, match="give --qrels FILE"):
        _ = Input((run,)).labels
    with pytest.raises(ParameterError, match="contains no judgements"):
        _ = Input((run,), qrels=run).labels
    letor = files / "l.txt"
    letor.write_text("2 qid:1 1:1 2:2 #docid = a\n0 qid:1 1:2 2:1 #docid = b\n")
    own = Input((str(letor),))
    assert sorted(own.labels.grades) == [0, 2]
    other = dataclasses.replace(own, qrels=str(files / "qrels.txt"))
    assert list(other.labels.queries) == list(formats.read(files / "qrels.txt").labels.queries)


def test_votes_are_labels_in_pairs(files):
    votes = files / "votes.csv"
    votes.write_text("query,annotator,winner,loser\n1,e,a,b\n1,f,b,a\n1,g,a,b\n")
    labels = Input((str(files / "bm25.run"),), qrels=str(votes)).labels
    assert labels == podium.Labels.from_pairs({"1": [("a", "b", 2), ("b", "a")]})


def test_options_of_reading_are_collected():
    source = Input(("x",), options=("expert=file", "winner_codes=1=a,2=b"), unlisted="below")
    assert source.reading == {"expert": "file", "winner_codes": "1=a,2=b", "unlisted": "below"}
    with pytest.raises(ParameterError, match="with -f"):
        _ = Input(("x",), options=("format=csv",)).reading


@pytest.mark.parametrize(("given", "message"), [("a", "cannot be read"), ("=1", "cannot be read")])
def test_what_is_not_an_assignment_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        parse_assignments([given], "option")
    with pytest.raises(ParameterError, match="given twice"):
        parse_assignments(["a=1", "a=2"], "option")


def test_an_id_may_be_a_number():
    assert resolve_id("7", [7, "x"], "query") == 7
    assert resolve_id("7", [7, "7"], "query") == "7"
    with pytest.raises(ParameterError, match="there is no query 'y'; there are 7, x"):
        resolve_id("y", [7, "x"], "query")


def test_what_a_recipe_read_is_printed_beside_the_answer(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        '{"prompt": "p", "chosen": "a", "rejected": "b"}\n{"prompt": "q", "chosen": "c", "rejected": "d"}\n'
    )
    done = CliRunner().invoke(program, ["fuse", str(pairs), "-m", "majority", "--json"])
    assert done.exit_code == 0, done.output
    assert done.stderr == "trl: 2 queries, 4 items, 1 expert, 2 votes, 0 ties; every prompt is a query\n"
    assert "trl" not in done.stdout
    words = ["leaderboard", str(pairs), "-f", "trl", "-O", "query=none"]
    assert "all prompts are one query" in CliRunner().invoke(program, words).stderr


def test_arena_votes_survive_convert_and_back(tmp_path):
    """A vote that conversations surround is the same vote in every table format."""
    arena, lines = tmp_path / "arena.json", []
    for k, winner in enumerate(("model_a", "model_b", "tie", "tie (bothbad)")):
        talk = [{"role": "user", "content": "hi, " * 50}]
        lines.append({"question_id": str(k), "model_a": "x", "model_b": f"y{k % 2}", "winner": winner, "judge": f"u{k}",
                      "conversation_a": talk, "conversation_b": talk, "turn": 1})  # fmt: skip
    arena.write_text(json.dumps(lines))
    expected = formats.read(arena).preferences
    for suffix in ("csv", "jsonl", "parquet"):
        done = CliRunner().invoke(program, ["convert", str(arena), "-o", str(tmp_path / f"out.{suffix}")])
        assert done.exit_code == 0, done.output
        assert formats.read(tmp_path / f"out.{suffix}").preferences == expected
