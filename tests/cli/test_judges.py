"""podium judges, as a user runs it."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.testing.panels import simulate_panel

FAST = ("-r", "majority", "-r", "dawid_skene")


def run(*words):
    return CliRunner().invoke(program, ["judges", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("panel")
    simulate_panel("shared bias", questions=240, gold=120, seed=1).write_files(path)
    return path


def test_the_table_and_the_summary(folder):
    done = run(
        folder / "votes.csv", "--gold", folder / "gold.csv", "--features", folder / "lengths.csv", *FAST
    )
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.split("\t") == [
        "judge", "flags", "questions", "gold", "agreement", "95%", "split", "shown first", "larger length",
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("judge ") and "\t240\t" in line]) == 8
    assert "8 judges, 240 questions, 120 gold answers" in done.stderr
    assert "8 judges are worth" in done.stderr
    assert "vote for the item with larger length more often than the gold" in done.stderr
    assert "best judge (judge" in done.stdout


def test_json_has_everything(folder):
    done = run(folder / "votes.csv", "--gold", folder / "gold.csv", "--json", *FAST)
    document = json.loads(done.stdout)
    assert {"effective", "shared", "choice", "rule", "means", "shift", "rows", "lines"} <= document.keys()
    assert document["effective"]["from_gold"] is True
    assert len(document["rule"]["shares"]) == 4
    assert len(document["rows"]) == 8
    assert document["rows"][0]["biases"][0]["toward"] == "shown first"


def test_without_gold_it_says_that_a_shared_bias_cannot_be_seen(folder):
    done = run(folder / "votes.csv")
    assert done.exit_code == 0, done.output
    assert "no gold: a bias that most judges share looks like the truth and cannot be seen" in done.stderr
    assert "at most" in done.stderr
    assert "agreement" not in done.stdout


def test_answers_and_chart_are_written_and_not_overwritten(folder, tmp_path):
    answers = tmp_path / "answers.csv"
    words = (folder / "votes.csv", "--gold", folder / "gold.csv", *FAST, "--error", "0.4", "-o", answers)
    assert run(*words).exit_code == 0
    with answers.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 240
    assert {row["answer"] for row in rows} <= {"x", "y", ""}
    assert any(row["bounded_answer"] for row in rows)
    again = run(*words)
    assert again.exit_code == 2
    assert "give --overwrite" in again.stderr


def test_bad_input_gets_one_line(folder, tmp_path):
    gold = tmp_path / "gold.csv"
    gold.write_text("query,item_a,item_b,winner\nelsewhere,x,y,x\n")
    done = run(folder / "votes.csv", "--gold", gold)
    assert done.exit_code == 2
    assert "the gold answers none of the 240 questions" in done.stderr
    some = tmp_path / "some.csv"
    some.write_text((folder / "gold.csv").read_text() + "q0,x,nothing,x\n")
    done = run(folder / "votes.csv", "--gold", some, *FAST)
    assert done.exit_code == 0
    assert "the gold names 1 question that no judge was asked about, such as x of q0" in done.stderr
    done = run(folder / "votes.csv", "-r", "mean")
    assert done.exit_code == 2
    assert "there is no rule 'mean'" in done.stderr


def test_the_chart(folder, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    chart = tmp_path / "judges.svg"
    done = run(folder / "votes.csv", "--gold", folder / "gold.csv", *FAST, "--plot", chart)
    assert done.exit_code == 0, done.output
    text = chart.read_text()
    assert "best judge (judge" in text
    assert "agreement with the gold" in text
    without = run(folder / "votes.csv", "--plot", tmp_path / "no-gold.svg")
    assert without.exit_code == 2
    assert "there is no gold" in without.stderr
