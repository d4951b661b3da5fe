"""podium annotators, as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from podium.cli import program


def run(*words, stdin=None):
    return CliRunner().invoke(program, ["annotators", *map(str, words)], input=stdin)


@pytest.fixture
def votes(tmp_path):
    """Six who are mostly right, one who never is, one who votes once; times for all, one of them very fast."""
    random = np.random.default_rng(0)
    lines = ["query,worker,doc_a,doc_b,answer,seconds"]
    for w in range(7):
        for _ in range(60):
            a, b = random.permutation(8)[:2]
            right = random.random() < (0.9 if w < 6 else 0.05)
            answer = "a" if (a > b) == right else "b"
            seconds = random.lognormal(3, 0.3) / (40 if w == 2 else 1)
            lines.append(f"q,w{w},{a},{b},{answer},{seconds:.3f}")
    lines.append("q,once,1,2,b,")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("query,item,grade\n" + "".join(f"q,{k},{k}\n" for k in range(8)))
    return path


def test_the_table_and_the_verdict(votes):
    done = run(votes, "-m", "copeland")
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.split("\t")[:5] == ["annotator", "verdict", "flags", "quality", "95%"]
    assert head.split("\t")[-4:] == ["peers", "repeats", "first", "seconds"]
    assert lines[0].startswith("w6\tmalicious\t")
    assert [line.split("\t")[1] for line in lines] == ["malicious", "too few", *["reliable"] * 6]
    assert "8 annotators: 6 reliable, 0 random, 1 malicious, 1 with too few judgements" in done.stderr
    # six who are right nine times of ten know all that a seventh could add
    assert (
        "malicious: 14.3% of the judgements, by w6; exclude them; reversing their answers shows no benefit"
        in done.stderr
    )
    assert "very fast: w2" in done.stderr
    assert "independent judges, by volume: 7.0" in done.stderr


def test_json_gold_flags_and_top(votes, gold):
    done = run(votes, "-m", "copeland", "--qrels", gold, "--json", "--flag", "malicious")
    document = json.loads(done.stdout)
    assert document["counts"]["malicious"] == 1
    [row] = document["rows"]
    assert row["annotator"] == "w6"
    assert row["accuracy"] < 0.15
    assert row["gold_pairs"] == 60
    top = json.loads(run(votes, "-m", "copeland", "--json", "--top", "2").stdout)
    assert [r["annotator"] for r in top["rows"]] == ["w6", "once"]
    assert top["rows"][1]["seconds"] is None


def test_ratings_with_gold_in_the_same_table():
    lines = ["topic,worker,doc,rating,gold"]
    for t in range(6):
        for w in range(4):
            lines += [f"{t},w{w},d{d},{int((d % 2 == 0) != (w == 3))},{int(d % 2 == 0)}" for d in range(6)]
    done = run("-", "-m", "copeland", "--json", stdin="\n".join(lines) + "\n")
    assert done.exit_code == 0, done.output
    rows = {r["annotator"]: r for r in json.loads(done.stdout)["rows"]}
    assert rows["w3"]["verdict"] == "malicious"
    assert (rows["w0"]["accuracy"], rows["w3"]["accuracy"]) == (1.0, 0.0)


def test_a_picture(votes, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    path = tmp_path / "crowd.svg"
    assert run(votes, "-m", "copeland", "--plot", path).exit_code == 0
    assert path.read_text().startswith("<svg")
    again = run(votes, "-m", "copeland", "--plot", path)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert "the name must end in" in run(votes, "--plot", tmp_path / "crowd.gif").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--flag", "evil"], "there is no flag 'evil'"),
        (["-m", "crowdag"], "no method is called 'crowdag'"),
        (["--level", "95"], "level is 95.0; accepted: numbers between 0 and 1"),
        (["--qrels", "nowhere.qrels"], "nowhere.qrels"),
    ],
)
def test_errors_in_words(votes, words, message):
    done = run(votes, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_labels_alone_are_no_judgements(gold):
    done = run(gold)
    assert done.exit_code == 2
    assert "contains labels but no lists or comparisons" in done.stderr
    assert run().exit_code == 2


def test_times_are_read_where_they_are_numbers(votes):
    from podium import formats

    seconds = formats.read(votes).seconds
    assert len(seconds["w0"]) == 60
    assert len(seconds["once"]) == 0
    assert formats.read([votes, votes]).seconds["w1"].shape == (120,)
    assert formats.read(votes, seconds="").seconds is None
