"""podium leaderboard as a user runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.cli.output import print_table


def run(*words, stdin=None):
    return CliRunner().invoke(program, ["leaderboard", *map(str, words)], input=stdin)


@pytest.fixture
def arena(tmp_path):
    random = np.random.default_rng(0)
    lines = ["question,judge,model_a,model_b,winner"]
    for k in range(400):
        a, b = random.permutation(4)[:2]
        tie = ("tie", "tie (bothbad)")[k % 2]
        won = "model_a" if random.random() < 1 / (1 + np.exp((a - b) * 0.7)) else "model_b"
        lines.append(f"q{k % 60},j{k % 7},model-{a},model-{b},{tie if k % 9 == 0 else won}")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_table_in_a_pipe(arena):
    done = run(arena, "--top", 3)
    assert done.exit_code == 0
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["rank", "item", "score", "95% interval", "ranks", "votes", "wins", "ties", "top 3"]
    assert [r[1] for r in rows] == ["model-0", "model-1", "model-2"]
    low, high = map(float, rows[0][3].split(".."))
    assert low < float(rows[0][2]) < high


def test_json_holds_everything(arena):
    done = run(
        arena, "--json", "--next", 2, "--bootstrap", 50, "--over", "experts", "--seed", 4, "--level", 0.9
    )
    found = json.loads(done.stdout)
    assert (found["stop"], found["next"]) == (True, [])  # all four are separated at this level
    unsure = json.loads(run(arena, "--json", "--next", 2, "--level", 0.9999999999).stdout)
    assert (unsure["stop"], len(unsure["next"])) == (False, 2)
    assert found["settings"]["bootstrap"] == 50
    assert found["settings"]["level"] == 0.9
    assert len(found["rows"]) == 4
    assert found["rows"][0]["item"] == "model-0"
    names = {c["name"]: c["verdict"] for c in found["checks"]}
    assert names["connected"] == names["position"] == names["one judge"] == "ok"
    again = run(
        arena, "--json", "--next", 2, "--bootstrap", 50, "--over", "experts", "--seed", 4, "--level", 0.9
    )
    assert json.loads(again.stdout) == found


def votes_of_judges(path, shares, weight=1.0, votes=100):
    lines = ["judge,winner,loser,weight"]
    for judge, share in enumerate(shares):
        sides = ["a,b" if k < share * votes else "b,a" for k in range(votes)]
        lines += [f"j{judge},{side},{weight if k == 0 else 1}" for k, side in enumerate(sides)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_what_intervals_are_over_is_decided_and_written_beside_a_pipe(tmp_path):
    path = votes_of_judges(tmp_path / "votes.csv", (0.2, 0.5, 0.6, 0.9))
    done = run(path)
    assert "podium: intervals are over 4 experts (votes of one expert vary" in done.stderr
    assert "(--over votes treats votes as independent)" in done.stderr
    plain = run(path, "--over", "votes")
    assert "intervals are over" not in plain.stderr
    widths = []
    for words in ((), ("--over", "votes")):
        found = json.loads(run(path, "--json", *words).stdout)
        widths.append(found["rows"][0]["high"] - found["rows"][0]["low"])
        assert found["settings"]["over"] == (words[1] if words else "auto")
        assert found["scheme"]["over"] == ("votes" if words else "experts")
        assert found["scheme"]["dispersion"]["experts"] > 5
    assert widths[0] > 4 * widths[1]


def test_the_meaning_of_weights_is_decided_and_can_be_chosen(tmp_path):
    path = votes_of_judges(tmp_path / "votes.csv", (0.6,), weight=0.5)
    done = run(path)
    assert "a vote counts as one vote, whatever its weight (some are not whole numbers)" in done.stderr
    low, high = map(float, done.stdout.splitlines()[1].split("\t")[3].split(".."))
    # 100 votes: 0.196 in the log odds to either side of each score, on Elo's scale
    assert high - low == pytest.approx(2 * 0.2 * 173.7, rel=0.1)
    asked = run(path, "--vote-weights", "frequency", "--json")
    assert json.loads(asked.stdout)["scheme"]["vote_weights"] == "frequency"
    assert run(path, "--vote-weights", "counts").exit_code == 2


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_plots(arena, tmp_path, suffix):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    path = tmp_path / f"board.{suffix}"
    assert run(arena, "--plot", path).exit_code == 0
    content = path.read_bytes()
    assert content.startswith({"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix])
    if suffix == "svg":
        assert b"model-3" in content
    if suffix == "html":
        assert b"cdn" not in content[:2000]
    refused = run(arena, "--plot", path)
    assert refused.exit_code == 2
    assert "exists" in refused.stderr


def test_plots_need_an_extra(arena, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    done = run(arena, "--plot", tmp_path / "b.svg")
    assert done.exit_code == 2
    assert "pip install 'podium-rank[plots]'" in done.stderr
    done = run(arena, "--plot", tmp_path / "b.pdf")
    assert "must end in .svg, .png, .html" in done.stderr


def test_votes_can_be_added_later(arena, tmp_path):
    header, *rows = arena.read_text().splitlines()
    for name, part in (("one.csv", rows[:250]), ("two.csv", rows[250:])):
        (tmp_path / name).write_text("\n".join([header, *part]) + "\n")
    saved = tmp_path / "board.podium"
    assert run(tmp_path / "one.csv", "--save", saved, "--ties", "davidson").exit_code == 0
    added = json.loads(run(tmp_path / "two.csv", "--load", saved, "--json").stdout)
    whole = json.loads(run(arena, "--ties", "davidson", "--json").stdout)
    assert added["settings"] == whole["settings"]
    for a, b in zip(added["rows"], whole["rows"], strict=True):
        assert a["item"] == b["item"]
        assert a["score"] == pytest.approx(b["score"], abs=1e-6)
        assert a["low"] == pytest.approx(b["low"], abs=1e-3)
    alone = run("--load", saved, "--json")
    assert json.loads(alone.stdout)["votes"] == 250
    assert "exists" in run(arena, "--save", saved).stderr


def test_winner_and_loser_counts_jsonl_and_counts(tmp_path):
    (tmp_path / "c.csv").write_text("winner,loser,count\na,b,30\nb,a,20\nb,c,25\nc,b,25\n")
    assert run(tmp_path / "c.csv").stdout.splitlines()[1].split("\t")[5] == "50"
    rows = [
        {"model_a": "a", "model_b": "b", "winner": w} for w in ("model_a", "model_b", "tie", "tie (bothbad)")
    ]
    done = run("-", "-f", "jsonl", "--json", stdin="\n".join(map(json.dumps, rows)))
    assert {r["item"]: (r["wins"], r["ties"]) for r in json.loads(done.stdout)["rows"]} == {
        "a": (1, 2),
        "b": (1, 2),
    }
    counts = {"models": ["a", "b"], "X": [[0, 1]], "Y": [[30, 20, 5]]}
    (tmp_path / "k.json").write_text(json.dumps(counts))
    assert json.loads(run(tmp_path / "k.json", "--json").stdout)["votes"] == 55


def test_anchor_and_judges_left_out(arena):
    done = json.loads(run(arena, "--anchor", "model-2=1114", "--without", "j3", "--json").stdout)
    by_item = {r["item"]: r for r in done["rows"]}
    assert by_item["model-2"]["score"] == by_item["model-2"]["low"] == 1114
    assert done["votes"] < 400
    assert "give a number, or ITEM=NUMBER" in run(arena, "--anchor", "high").stderr
    assert "no expert 'j99' to exclude" in run(arena, "--without", "j99").stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,a,model_a", "v.csv:2: an item is compared with itself"),
        ("a,b,maybe", "v.csv:2: the winner of 'a' and 'b' is 'maybe'; accepted: the id of one of the two"),
        ("a,b,model_a", "there is 1 vote on 2 items"),
    ],
)
def test_bad_votes_are_refused_in_words(tmp_path, rows, message):
    (tmp_path / "v.csv").write_text(f"model_a,model_b,winner\n{rows}\n")
    done = run(tmp_path / "v.csv")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("weight", [0, -2])
def test_weights_are_positive(tmp_path, weight):
    (tmp_path / "v.csv").write_text(f"winner,loser,weight\na,b,1\nb,a,{weight}\n")
    done = run(tmp_path / "v.csv")
    assert done.exit_code == 2
    assert f"v.csv:3: the weight is {weight}" in done.stderr


def test_doubts_are_told_beside_a_pipe(tmp_path):
    (tmp_path / "v.csv").write_text("winner,loser\na,b\nb,a\nx,a\nc,d\nd,c\n")
    done = run(tmp_path / "v.csv")
    assert done.exit_code == 0
    assert done.stderr.count("2 groups were never compared") == 1
    assert "warning: connected: 2 groups were never compared" in done.stderr
    assert "warning: won and lost: never lost: x" in done.stderr
    assert "open" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
def test_it_fits_a_terminal_of_100_columns(arena):
    leader, follower = pty.openpty()
    here = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    words = [sys.executable, "-m", "podium", "leaderboard", str(arena), "--next", "2"]
    words += ["--top", "2", "--level", "0.9999999999"]
    with subprocess.Popen(words, stdout=follower, stderr=follower, env=here) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(leader)
    assert process.returncode == 0
    lines = shown.decode().splitlines()
    assert any("ok  connected: all items are linked" in line for line in lines)
    assert any("compare next" in line for line in lines)
    table = [line for line in lines if "model-" in line and ".." in line]
    assert len(table) == 2
    assert max(map(len, table)) <= 100


@pytest.mark.parametrize("count", ["1" + "0" * 400, "NaN", "-1", "1e999"])
def test_counts_beyond_all_numbers_are_bad_input(tmp_path, count):
    path = tmp_path / "counts.json"
    path.write_text(f'{{"models": ["a", "b"], "X": [[0, 1]], "Y": [[{count}, 1]]}}')
    done = run(path)
    assert done.exit_code == 2
    assert "pair 1: a count is" in done.stderr


def test_the_level_is_not_rounded(arena):
    assert "99.9% interval" in run(arena, "--level", 0.999).stdout


def test_counts_in_a_pipe_are_plain_numbers(tmp_path):
    """A program reads them; an item whose name looks like such a count keeps it."""
    path = tmp_path / "votes.csv"
    path.write_text('winner,loser,count\n"1,000",b,14514\nb,"1,000",2500\n')
    done = run(path)
    assert done.exit_code == 0, done.output
    _, first, _ = [line.split("\t") for line in done.stdout.splitlines()]
    assert first[1] == "1,000"
    assert first[5:] == ["17014", "14514", "0"]


def test_counts_on_a_terminal_are_grouped(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(["item", "votes"], [("a", "14,514")])
    assert "14,514" in capsys.readouterr().out


@pytest.fixture
def topics(tmp_path):
    rows = [f"{t},w{k % 3},{t}{a},{t}{b},{'left' if k % 4 else 'right'}"
            for t in "xyz" for a in range(3) for b in range(a) for k in range(8)]  # fmt: skip
    path = tmp_path / "topics.csv"
    path.write_text("\n".join(["topic,worker,left,right,answer", *rows, "thin,w0,p,q,left"]) + "\n")
    return path


def test_queries_with_items_of_their_own(topics):
    automatic = run(topics)
    assert "no item appears in two queries, so every query has its own leaderboard" in automatic.stderr
    assert automatic.stdout == run(topics, "--by", "query").stdout
    pooled = run(topics, "--anytime")  # of all votes
    assert "every query has its own" not in pooled.stderr
    done = run(topics, "--by", "query", "--next", 1)
    assert done.exit_code == 0, done.output
    head, *rows = [line.split("\t") for line in done.stdout.split("\n\n")[0].splitlines()]
    assert head[:3] == ["query", "rank", "item"]
    assert [(r[0], r[1]) for r in rows] == [(t, str(k)) for t in "xyz" for k in (1, 2, 3)]
    assert "no leaderboard for 1 of 4 queries: thin (there is 1 vote on 2 items" in done.stderr
    assert "never compared" not in done.stderr
    assert "enough votes: in 3 of 3 queries, such as x: fewer than 30 votes each" in done.stderr
    found = json.loads(run(topics, "--by", "query", "--json", "--without", "w1").stdout)["boards"]
    assert [(b["query"], len(b["rows"])) for b in found] == [("x", 3), ("y", 3), ("z", 3)]


@pytest.mark.parametrize("words", [["--save", "b.podium"], ["--plot", "b.svg"], ["--anchor", "x1=1000"]])
def test_what_belongs_to_one_board_is_refused_by_query(topics, words):
    done = run(topics, "--by", "query", *words)
    assert done.exit_code == 2
    assert "applies to a single leaderboard" in done.stderr


def test_a_run_with_too_many_documents_is_refused_at_once(tmp_path, monkeypatch):
    path = tmp_path / "bm25.run"
    path.write_text(
        "".join(f"{q} Q0 d{q}-{k} {k + 1} {100 - k} bm25\n" for q in range(51) for k in range(100))
    )
    monkeypatch.setattr("podium.analysis.leaderboard.tally.expand_lists", None)
    done = run(path)
    assert done.exit_code == 2
    assert "5,100 items are too many for one leaderboard" in done.stderr


@pytest.fixture
def styled(tmp_path):
    random = np.random.default_rng(5)
    lines = ["model_a,model_b,winner,length_a,length_b,topic,when"]
    for k in range(900):
        a, b = random.permutation(4)[:2]
        one, two = random.integers(20, 900, 2) * np.where(np.array([a, b]) == 3, 2, 1)
        logit = (b - a) * 0.3 + 1.5 * (one - two) / (one + two)
        won = "model_a" if random.random() < 1 / (1 + np.exp(-logit)) else "model_b"
        topic = "rare" if k < 10 else ("code", "chat")[k % 2]
        lines.append(f"m{a},m{b},{won},{one},{two},{topic},2026-0{1 + k // 450}-11")
    path = tmp_path / "styled.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_control_and_slice(styled):
    done = run(styled, "--control", "length,order", "--slice", "topic")
    assert done.exit_code == 0, done.stderr
    first, second = done.stdout.split("\n\n")
    header, *rows = [line.split("\t") for line in first.splitlines()]
    assert header[4:] == ["ranks", "plain rank", "plain score", "change", "votes"]
    assert [r[1] for r in rows] == ["m0", "m1", "m2", "m3"]
    assert float(rows[3][7]) < -20  # the last model is long-winded
    assert second.splitlines()[0].split("\t") == ["item", "all", "code", "chat", "rare"]
    assert "twice the length = +" in done.stderr
    assert "shown first = " in done.stderr
    assert "rare has 10 votes" in done.stderr


def test_control_as_json_and_by_month(styled):
    document = json.loads(run(styled, "--control", "length", "--slice", "when:month", "--json").stdout)
    assert document["effects"][0]["change"] == "twice the length"
    assert document["effects"][0]["low"] > 0
    assert list(document["slices"]["votes"]) == ["2026-01", "2026-02"]
    assert len(document["rows"]) == len(document["plain"]) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--control", "lenght"), "there is no column 'lenght'"),
        (("--control", ""), "--control names no covariate"),
        (("--control", "length", "--save", "x.podium"), "--save does not work with --control and --slice"),
        (("--pair-floor", "50", "--save", "x.podium"), "--save does not work with --pair-floor"),
        (("--control", "length", "--sides", "fit"), "sides is fit; control order instead"),
        (("--slice", "length"), "has a value for each side of a vote"),
    ],
)
def test_control_refusals(styled, words, message):
    done = run(styled, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_control_needs_a_table(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("q Q0 a 1 2.0 x\nq Q0 b 2 1.0 x\n")
    done = run(path, "--control", "length")
    assert done.exit_code == 2
    assert "attributes" in done.stderr


def test_pair_floor_without_covariates(styled):
    weighted = json.loads(run(styled, "--pair-floor", 50, "--json").stdout)
    assert weighted["votes"] == pytest.approx(900)
    assert weighted["scheme"]["vote_weights"] == "importance"


def test_anytime(arena, tmp_path):
    done = run(arena, "--anytime", "--over", "votes")
    assert done.exit_code == 0, done.stderr
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header[3:6] == ["ranks", "may lead", "e against"]
    assert (rows[0][1], rows[0][4], rows[3][4]) == ("model-0", "yes", "no")
    assert "model-0 and model-1 may be the best at 95%; about " in done.stderr
    document = json.loads(run(arena, "--anytime", "--json").stdout)
    assert document["leader"] is None
    assert document["contenders"] == ["model-0", "model-1"]
    assert 10 < document["votes_needed"]["model-1"] < 500
    sure = json.loads(run(arena, arena, arena, "--anytime", "--json").stdout)
    assert sure["conclusion"] == "model-0 is the best at 95%, at every look"
    saved = tmp_path / "board.podium"
    assert run(arena, "--anytime", "--save", saved).exit_code == 0
    again = json.loads(run("--load", saved, "--anytime", "--json").stdout)
    assert (again["contenders"], again["votes_needed"]) == (document["contenders"], document["votes_needed"])
    refused = run(arena, "--anytime", "--by", "query")
    assert refused.exit_code == 2
    assert "--by does not work with --anytime" in refused.stderr


def test_the_plain_board_holds_for_one_look(arena):
    assert "hold for one look" in json.loads(run(arena, "--json").stdout)["looks"]


@pytest.fixture
def rigged(tmp_path):
    """100 honest voters of 12 votes, and two accounts that vote for m3 within seconds."""
    random = np.random.default_rng(6)
    lines, clock = ["model_a,model_b,winner,voter,tstamp"], 1_770_000_000.0
    for k in range(102):
        for _ in range(12 if k < 100 else 30):
            a, b = random.permutation(8)[:2]
            if k >= 100:
                a, b = (3, b) if b != 3 else (3, a)
            logit = (b - a) * 0.4 if k < 100 else 50
            clock += 60 * np.exp(random.normal()) if k < 100 else 1
            won = "model_a" if random.random() < 1 / (1 + np.exp(-logit)) else "model_b"
            when = datetime.fromtimestamp(clock, UTC).isoformat()
            lines.append(f"m{a},m{b},{won},{'user' if k < 100 else 'bot'}-{k},{when}")
    path = tmp_path / "rigged.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_trust(rigged):
    done = run(rigged, "--trust", "--time", "tstamp")
    assert done.exit_code == 0, done.stderr
    named, influential, margins = done.stdout.split("\n\n")
    rows = [line.split("\t") for line in named.splitlines() if line.startswith("bot")]
    assert {row[0] for row in rows} == {"bot-100", "bot-101"}
    assert all("30 of 30 votes are on m3" in row[1] and "s between them" in row[1] for row in rows)
    assert "CHECK  one item: 2 of 102 voters named" in named
    assert influential.splitlines()[1].split("\t")[:2] == ["bot-101", "m3"] or "bot-100" in influential
    assert margins.splitlines()[0].split("\t")[3:] == ["votes added", "votes removed", "voters removed"]
    assert "improbable votes of 2 of 102 voters" in done.stderr
    assert "the lead of m0 is lost to" in done.stderr
    document = json.loads(run(rigged, "--trust", "--json", "--alarm", "0.05", "--top", 2).stdout)
    assert document["trust"]["alarm"] == 0.05
    assert len(document["trust"]["rows"]) == 2
    assert len(document["margin"]["rows"]) == 2
    assert document["robust"]["excluded_voters"] >= 2


def test_robust(rigged, tmp_path):
    done = run(rigged, "--robust", "--save", tmp_path / "board.podium")
    assert done.exit_code == 0, done.stderr
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header[5:8] == ["plain rank", "plain score", "change"]
    by_item = {row[1]: row for row in rows}
    assert float(by_item["m3"][7]) < -10
    assert "2 of 102 voters are left out" in done.stderr
    # a saved board keeps its voters
    again = json.loads(run("--load", tmp_path / "board.podium", "--robust", "--json").stdout)
    assert again["excluded_voters"] == 2
    assert [row["item"] for row in again["rows"]] == [row[1] for row in rows]


def test_trust_without_voters(rigged):
    done = run(rigged, "--trust", "-O", "expert=")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].split("\t")[3:] == ["votes added", "votes removed"]
    assert "voters are not checked: all votes come from one voter, 'rigged'; name the column" in done.stderr
    document = json.loads(run(rigged, "--trust", "--json", "-O", "expert=").stdout)
    assert document["trust"] is None
    assert document["missing"].startswith("all votes come from one voter")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trust", "--time", "stamp"), "there is no column 'stamp'"),
        (("--trust", "--time", "voter"), "the date in column 'voter' is 'user-0'"),
        (("--time", "tstamp"), "--time works with --trust or --robust"),
        (("--trust", "--robust"), "--robust does not work with --trust and --robust"),
        (("--trust", "--pair-floor", "50"), "--pair-floor does not work with --trust and --robust"),
        (("--trust", "--slice", "voter"), "--trust does not work with --control and --slice"),
        (("--trust", "-O", "expert=user"), "there is no column 'user'"),
        (("--robust", "--judges", "discounted"), "judges is discounted"),
        (("--robust", "-O", "expert="), "all votes come from one voter"),
    ],
)
def test_trust_refusals(rigged, words, message):
    done = run(rigged, *words)
    assert done.exit_code == 2
    assert message in done.stderr
