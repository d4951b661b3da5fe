"""podium leaderboard --ask, and contextual boards beside other options, as a user runs them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from podium.cli import program


def run(*words):
    return CliRunner().invoke(program, ["leaderboard", *map(str, words)])


@pytest.fixture
def votes(tmp_path):
    random = np.random.default_rng(5)
    lines = ["judge,query,model_a,model_b,winner,length_a,length_b,topic"]
    for k in range(900):
        a, b = random.permutation(4)[:2]
        one, two = random.integers(20, 900, 2)
        logit = (b - a) * 0.3 + 1.5 * (one - two) / (one + two)
        won = "model_a" if random.random() < 1 / (1 + np.exp(-logit)) else "model_b"
        lines.append(f"j{k % 3},q{k % 2},m{a},m{b},{won},{one},{two},{('code', 'chat')[k % 7 == 0]}")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_plan_from_no_votes_is_filled_in_and_read_back(tmp_path):
    items, plan = tmp_path / "items.txt", tmp_path / "pairs.csv"
    items.write_text("ann\nbob\n\ncat\ndan\n")
    done = run("--items", items, "--ask", 6, "-o", plan)
    assert done.exit_code == 0, done.stderr
    assert "6 comparisons; fill in the column winner" in done.stderr
    rows = list(csv.DictReader(plan.read_text().splitlines()))
    assert len({frozenset((r["item_a"], r["item_b"])) for r in rows}) == 6
    unanswered = run(plan)
    assert unanswered.exit_code == 2
    assert "pairs.csv:2: the winner of" in unanswered.stderr
    for row in rows:
        row["winner"] = min(row["item_a"], row["item_b"])
    with plan.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    board = run(plan, "--json")
    assert json.loads(board.stdout)["rows"][0]["item"] == "ann"
    again = run(plan, "--items", items, "--ask", 2, "--json")
    assert json.loads(again.stdout)["votes"] == 6
    assert "exists" in run("--items", items, "--ask", 6, "-o", plan).stderr


def test_suggestions_in_a_pipe_and_from_a_saved_board(votes, tmp_path):
    done = run(votes, "--ask", 3, "--seed", 2)
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["first", "second", "first wins", "nats", "votes"]
    assert len(rows) == 3
    assert "is expected to agree with the true one at tau 0." in done.stderr
    assert run(votes, "--ask", 3, "--seed", 2).stdout == done.stdout
    saved = tmp_path / "board.podium"
    run(votes, "--save", saved)
    assert run("--load", saved, "--ask", 3, "--seed", 2).stdout == done.stdout
    assert run(votes, "--ask", 3, "--without", "j1").exit_code == 0


def test_suggestions_with_judges_slices_and_lines(votes, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("judge,cost\nj0,1\nj1,2.5\n")
    lines = tmp_path / "pairs.jsonl"
    done = run(votes, "--budget", 6, "--cost", costs, "--slice", "topic", "-o", lines, "--json")
    document = json.loads(done.stdout)
    assert document["cost"] <= 6
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {row["judge"] for row in rows} <= {"j0", "j1"}
    assert {row["topic"] for row in rows} <= {"code", "chat"}
    assert len(rows) == len(document["rows"])
    half = json.loads(run(votes, "--budget", 2, "--cost", 0.5, "--json").stdout)
    assert len(half["rows"]) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--ask", 3, "--cost", "bad.csv"),
            "bad.csv:2: 'j0,cheap' is not a judge and a number; write judge,cost",
        ),
        (("--ask", 3, "--cost", "twice.csv"), "twice.csv:3: 'j0' occurs twice"),
        (("--ask", 3, "--cost", "head.csv"), "the first line is not judge,cost"),
        (("--ask", 3, "--cost", "none.csv"), "none.csv: there is no such file"),
        (("--ask", 3, "-o", "x.txt"), "comparisons are written as .csv, .tsv or .jsonl"),
        (("--ask", 3, "--top", 9), "top is 9; accepted: 1 to 3"),
        (("--budget", 0.5), "the budget of 0.5 pays for no comparison; one costs 1"),
        (("-o", "x.csv"), "-o is for planned comparisons; give --ask N"),
        (("--ask", 3, "--anytime"), "--anytime does not work with --ask and --budget"),
        (("--ask", 3, "--slice", "length"), "has a value for each side of a vote"),
    ],
)
def test_refusals(votes, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("judge,cost\nj0,cheap\n")
    (tmp_path / "twice.csv").write_text("judge,cost\nj0,1\nj0,2\n")
    (tmp_path / "head.csv").write_text("j0,1\n")
    done = run(votes, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_nothing_to_plan_from():
    done = run("--ask", 3)
    assert done.exit_code == 2
    assert "need votes, or --items FILE" in done.stderr


# -- contextual boards beside other options ------------------------------------------------------------------------


def assert_same_rows(rows, others):
    """Equal up to rounding, which depends on the order of the sums."""
    assert len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):
        for name, value in row.items():
            assert value == (
                pytest.approx(other[name], rel=1e-9) if isinstance(value, float) else other[name]
            ) or (name == "sentence")


def test_control_without_a_judge_equals_the_board_of_the_other_votes(votes, tmp_path):
    fewer = tmp_path / "fewer.csv"
    lines = votes.read_text().splitlines()
    fewer.write_text("\n".join(line for line in lines if not line.startswith("j1,")) + "\n")
    words = ("--control", "length", "--slice", "topic", "--json")
    document, other = (
        json.loads(done.stdout) for done in (run(votes, *words, "--without", "j1"), run(fewer, *words))
    )
    for part in ("rows", "plain", "effects"):
        assert_same_rows(document[part], other[part])
    assert_same_rows(document["slices"]["rows"], other["slices"]["rows"])
    assert "there is no expert 'nobody'" in run(votes, *words, "--without", "nobody").stderr


def test_control_by_query_equals_the_boards_of_the_queries(votes, tmp_path):
    boards = json.loads(run(votes, "--control", "length", "--by", "query", "--json").stdout)["boards"]
    assert [board["query"] for board in boards] == ["q0", "q1"]
    lines = votes.read_text().splitlines()
    for board in boards:
        part = tmp_path / f"{board['query']}.csv"
        part.write_text("\n".join([lines[0], *(x for x in lines if f",{board['query']}," in x)]) + "\n")
        alone = json.loads(run(part, "--control", "length", "--json").stdout)
        assert_same_rows(board["rows"], alone["rows"])
        assert_same_rows(board["effects"], alone["effects"])
    done = run(votes, "--control", "length", "--by", "query")
    assert "q1: twice the length = +" in done.stderr


def test_control_with_next_proposes_from_the_adjusted_scores(votes):
    words = ("--control", "length", "--level", 0.9999999)
    document = json.loads(run(votes, *words, "--next", 2, "--json").stdout)
    scores = {row["item"]: row["score"] for row in document["rows"]}
    assert len(document["next"]) == 2
    for proposal in document["next"]:
        gap = (scores[proposal["first"]] - scores[proposal["second"]]) / 400
        assert proposal["chance"] == pytest.approx(1 / (1 + 10**-gap), abs=1e-6)
    done = run(votes, *words, "--next", 2)
    assert "compare next\tagainst" in done.stdout
    assert "continue: the votes do not separate" in done.stdout


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--anytime",), "its claims rest on direct votes"),
        (("--load", "votes.csv"), "a saved board holds counts"),
    ],
)
def test_what_does_not_work_beside_control_says_why(votes, monkeypatch, option, reason):
    monkeypatch.chdir(votes.parent)
    done = run(votes, "--control", "length", *option)
    assert done.exit_code == 2
    assert reason in done.stderr
