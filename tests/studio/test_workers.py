"""Annotators: pages with disagreements, exclusion in all views, cleaned exports; leaderboard and judges views."""

from __future__ import annotations

import json
import random
import re
import time

import pytest

from podium import formats
from podium.analysis.judges import assess_panel
from podium.analysis.leaderboard import (
    anytime_leaderboard,
    assess_tampering,
    contextual_leaderboard,
    leaderboard,
)
from podium.core.errors import capture_warnings
from podium.testing.panels import simulate_panel
from serving import serving

GOOD = ("ax", "bx", "cx", "dx")  # better items first


def make_votes():
    rng, lines = random.Random(3), ["query,judge,item_a,item_b,winner"]
    for query in range(30):
        for judge in range(8):
            a, b = rng.sample(GOOD, 2)
            right = rng.random() < 0.9 if judge != 6 else rng.random() < 0.05
            lines.append(f"q{query},w{judge},{a},{b},{min(a, b) if right else max(a, b)}")
    return "\n".join(lines).encode()


def make_arena():
    rng = random.Random(1)
    lines = ["model_a,model_b,winner,judge,length_a,length_b,category"]
    for n in range(600):
        a, b = rng.sample(range(5), 2)
        lengths = rng.randint(10, 300), rng.randint(10, 300)
        chance = 1 / (1 + 2.718 ** -((a - b) * 0.4 + (lengths[0] - lengths[1]) / 200))
        side = "a" if rng.random() < chance else "b"
        lines.append(
            f"m{a},m{b},model_{side},j{n % 7},{lengths[0]},{lengths[1]},{rng.choice(['math', 'chat'])}"
        )
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as client:
        yield client


def find_csrf(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]


def upload(client, name, content):
    sent = client.post("/open/upload", data={"csrf": find_csrf(client)}, files=[("files", (name, content))])
    assert sent.status_code == 303, sent.text
    return re.search(r"/p/([0-9a-f]+)", sent.headers["location"])[1]


def get_page(client, address):
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.fixture
def crowd(client):
    return upload(client, "crowd.csv", make_votes())


def test_a_page_per_annotator_shows_disagreements(client, crowd):
    page = get_page(client, f"/p/{crowd}/annotators")
    assert f"/p/{crowd}/worker?who=w6" in page
    assert re.search(r'name="who" value="w6"[^>]*checked', page)
    shown = get_page(client, f"/p/{crowd}/worker?who=w6")
    assert "malicious" in shown
    document = client.get(f"/p/{crowd}/worker.json", params={"who": "w6"}).json()
    for case in document["disagreements"]:
        assert case["item"] > case["other"]  # the spammer prefers the worse item
        assert 2 * case["against"] > case["others"]
    assert len(document["disagreements"]) == 12
    assert client.get(f"/p/{crowd}/worker.json", params={"who": "nobody"}).status_code == 422


def test_exclusion_reaches_every_view_and_can_be_undone(client, crowd, tmp_path):
    before = client.get(f"/p/{crowd}/leaderboard.json").json()
    fields = {"csrf": find_csrf(client), "who": ["w6"]}
    assert client.post(f"/p/{crowd}/annotators/exclude", data=fields).status_code == 303
    page = get_page(client, f"/p/{crowd}/annotators")
    assert "30 judgements are left out" in page
    after = client.get(f"/p/{crowd}/leaderboard.json").json()
    assert before["votes"] - after["votes"] == 30
    cleaned = {}
    for suffix in ("csv", "jsonl", "parquet"):
        (tmp_path / f"cleaned.{suffix}").write_bytes(client.get(f"/p/{crowd}/cleaned.{suffix}").content)
        cleaned[suffix] = formats.read(tmp_path / f"cleaned.{suffix}").preferences
        assert len(cleaned[suffix].comparisons) == 210
        assert "w6" not in cleaned[suffix].experts.tolist()
    # what the studio shows is what the library computes from the cleaned file
    own = leaderboard(cleaned["csv"])
    assert [row["item"] for row in after["rows"]] == [row.item for row in own.rows] == list(GOOD)
    assert [row["score"] for row in after["rows"]] == pytest.approx([row.score for row in own.rows], abs=1)
    assert "Excluded" in get_page(client, f"/p/{crowd}/worker?who=w6")
    client.post(f"/p/{crowd}/annotators/restore", data={"csrf": find_csrf(client), "who": "w6"})
    assert client.get(f"/p/{crowd}/leaderboard.json").json()["votes"] == before["votes"]


def test_exclusions_that_make_no_sense_are_refused(client, crowd):
    csrf = find_csrf(client)
    for who in ([], ["nobody"], [f"w{n}" for n in range(8)]):
        answer = client.post(f"/p/{crowd}/annotators/exclude", data={"csrf": csrf, "who": who})
        assert answer.status_code == 422
    assert client.post(f"/p/{crowd}/annotators/forget", data={"csrf": csrf, "who": "w1"}).status_code == 422
    assert client.post(f"/p/{crowd}/annotators/exclude", data={"who": "w1"}).status_code == 403


def test_the_leaderboard_page_has_the_boards_of_the_library(client, tmp_path):
    content = make_arena()
    (tmp_path / "arena.csv").write_bytes(content)
    project = upload(client, "arena.csv", content)
    page = get_page(client, f"/p/{project}/leaderboard")
    assert re.findall(r'name="control" value="(\w+)"', page) == ["length", "order"]
    assert '<option value="category">' in page
    assert "one look" in page
    assert "Head to head" in page
    choice = "control=length&control=order&slice=category&anytime=1"
    document = client.get(f"/p/{project}/leaderboard.json?{choice}").json()
    votes = formats.read(tmp_path / "arena.csv", attributes=("length", "order", "category")).votes
    reference = contextual_leaderboard(votes, ["length", "order"], slices="category")
    assert document["contextual"] == json.loads(json.dumps(reference.to_dict(), default=str))
    anytime = anytime_leaderboard(formats.read(tmp_path / "arena.csv").preferences)
    assert document["anytime"]["conclusion"] == anytime.conclusion
    checked = client.get(f"/p/{project}/leaderboard.json?trust=1").json()["trust"]
    wanted = assess_tampering(formats.read(tmp_path / "arena.csv").preferences, strict=False)
    assert checked["lines"] == list(wanted.lines)
    assert wanted.margin.conclusion in client.get(f"/p/{project}/leaderboard?trust=1").text
    shown = get_page(client, f"/p/{project}/leaderboard?{choice}")
    assert reference.effects[0].sentence in shown
    assert client.get(f"/p/{project}/leaderboard.json?control=nothing").status_code == 422
    client.post(f"/p/{project}/annotators/exclude", data={"csrf": find_csrf(client), "who": "j0"})
    fewer = client.get(f"/p/{project}/leaderboard.json?control=length").json()["contextual"]
    assert fewer["votes"] == sum(line.split(b",")[3] != b"j0" for line in content.splitlines()[1:])


def test_the_judges_page_with_and_without_gold(client, tmp_path):
    made = simulate_panel("one good judge", questions=60, gold=40)
    made.write_files(tmp_path)
    project = upload(client, "votes.csv", (tmp_path / "votes.csv").read_bytes())
    page = get_page(client, f"/p/{project}/judges")
    assert "a bias that the judges share cannot be seen" in page
    panel = formats.read(tmp_path / "votes.csv").preferences
    without = assess_panel(panel, rules=("majority", "dawid_skene", "crowd_bt"))
    assert client.get(f"/p/{project}/judges.json").json()["lines"] == list(without.lines)
    named = {"gold": "judge:judge 1", "error": "20"}
    others, gold = panel.without_expert("judge 1"), panel.with_experts(["judge 1"])
    with capture_warnings():
        against = assess_panel(others, gold, rules=("majority", "dawid_skene", "crowd_bt"), error=0.2)
    assert client.get(f"/p/{project}/judges.json", params=named).json()["lines"] == list(against.lines)
    assert "cannot be seen" not in get_page(client, f"/p/{project}/judges?gold=judge:judge+1&error=20")
    assert client.get(f"/p/{project}/judges.json?gold=nonsense").status_code == 422
    rows = client.get(f"/p/{project}/judges.csv").text.splitlines()
    assert rows[0] == "query,item_a,item_b,answer,confidence,bounded_answer"
    assert len(rows) == 61
