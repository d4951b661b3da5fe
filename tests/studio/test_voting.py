"""Collected votes: stored once, undone, mixed with gold, seen by all views, exported; invitations and the API."""

from __future__ import annotations

import collections
import json
import re

import pytest

from podium import formats
from podium.analysis.leaderboard import leaderboard
from podium.core.errors import InputError, ParameterError
from podium.data.preferences import Preferences
from podium.studio.collected_votes import build_preferences, compute_live_board, select_counted
from podium.studio.database import RecordNotFound
from podium.studio.item_texts import read_item_texts
from podium.studio.question_choice import choose_pair
from podium.studio.security import hash_token
from podium.studio.store import Store
from podium.studio.vote_records import CollectionItem
from podium.studio.vote_store import VoteStore
from serving import serving

TOKEN = "a-token-of-more-than-24-characters"
ITEMS = [CollectionItem(name, f"The {name}", f"text of {name}") for name in ("ant", "bee", "cat", "dog")]


@pytest.fixture
def store(tmp_path):
    projects = Store(tmp_path)
    project = projects.add_upload("animals", [])
    votes = VoteStore(tmp_path)
    votes.start_collection(project, ITEMS)
    yield votes, project
    votes.close()
    projects.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as client:
        yield client


def find_csrf(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]


def open_collection(client, items="ant\nbee\ncat\ndog", **fields):
    sent = client.post("/collect", data={"csrf": find_csrf(client), "items": items, **fields})
    assert sent.status_code == 303, sent.text
    return sent.headers["location"].split("/")[2]


def open_link(client, project, judge):
    fields = {"csrf": find_csrf(client), "judge": judge}
    return client.post(f"/p/{project}/collect/vote", data=fields).headers["location"]


# -- the store ---------------------------------------------------------------------------------------------------


def test_a_vote_that_is_sent_again_is_stored_once(store):
    votes, project = store
    asked = votes.add_question(project, "ann", "ant", "bee")
    assert votes.find_open_question(project, "ann") == asked
    assert votes.answer_question(asked.key, "first", judge="ann", project=project)
    assert not votes.answer_question(asked.key, "second", judge="ann", project=project)
    [vote] = votes.votes(project)
    assert (vote.first, vote.second, vote.answer) == ("ant", "bee", "first")
    assert votes.find_open_question(project, "ann") is None


def test_every_row_is_on_the_disk_before_the_answer(store):
    votes, _ = store
    with votes._write_transaction() as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_undo_keeps_the_row_and_hides_the_vote(store):
    votes, project = store
    assert votes.undo_last_vote(project, "ann") is None
    for other in ("bee", "cat"):
        votes.add_vote(project, "ann", "ant", other, "first")
    votes.add_vote(project, "ben", "ant", "dog", "tie")
    assert votes.undo_last_vote(project, "ann").second == "cat"
    assert [(v.judge, v.second) for v in votes.votes(project)] == [("ann", "bee"), ("ben", "dog")]
    assert votes.undo_last_vote(project, "ann").second == "bee"
    assert votes.undo_last_vote(project, "ann") is None
    assert len(votes._fetch("SELECT * FROM votes")) == 3


def test_wrong_votes_are_refused_with_words(store):
    votes, project = store
    for given, words in [
        (("ann", "ant", "ant", "first"), "with itself"),
        (("ann", "ant", "eel", "first"), "no item 'eel'"),
        (("ann", "ant", "bee", "left"), "accepted: first, second, tie, skip"),
        (("ann", "ant", None, "first"), "give two items"),
        ((" ", "ant", "bee", "first"), "judge's name"),
    ]:
        with pytest.raises(ParameterError, match=re.escape(words)):
            votes.add_vote(project, *given)
    with pytest.raises(RecordNotFound, match="no such question"):
        votes.answer_question("nope", "first", judge="ann", project=project)
    asked = votes.add_question(project, "ann", "ant", "bee")
    with pytest.raises(RecordNotFound):  # a question of another judge
        votes.answer_question(asked.key, "first", judge="ben", project=project)
    with pytest.raises(ParameterError, match="already collects"):
        votes.start_collection(project, ITEMS)
    assert votes.votes(project) == []


def test_an_invitation_cannot_be_made_up(store):
    votes, project = store
    invite = votes.add_invite(project, "ann")
    signed = votes.sign_invite(invite)
    assert votes.resolve_invite(signed) == invite
    assert votes.add_invite(project, "ann") == invite  # the same link again
    other = votes.add_invite(project, "ben")
    for wrong in (
        "",
        "x",
        invite.id,
        f"{other.id}.{signed.partition('.')[2]}",
        signed + "0",
        signed[:-1] + "é",
    ):
        with pytest.raises(RecordNotFound):
            votes.resolve_invite(wrong)
    votes.revoke_invite(project, invite.id)
    with pytest.raises(RecordNotFound):
        votes.resolve_invite(signed)


def test_votes_go_with_their_project(store, tmp_path):
    votes, project = store
    votes.add_vote(project, "ann", "ant", "bee", "first")
    Store(tmp_path).remove_project(project)
    assert votes._fetch("SELECT * FROM votes") == []


# -- votes as preferences ----------------------------------------------------------------------------------------


def test_votes_become_comparisons_with_sides(store):
    votes, project = store
    for first, second, answer in [
        ("ant", "bee", "first"), ("ant", "bee", "second"), ("cat", "dog", "tie"), ("cat", "ant", "skip"),
    ]:  # fmt: skip
        votes.add_vote(project, "ann", first, second, answer)
    collection = votes.collection(project)
    [made] = build_preferences(collection, select_counted(votes.votes(project)))
    by_hand = Preferences.from_comparisons(
        ["collected"] * 3, ["ann"] * 3, ["ant", "bee", "cat"], ["bee", "ant", "dog"],
        tie=[False, False, True], side=[1, -1, 1],
    )  # fmt: skip
    assert made == by_hand


def test_the_live_board_is_the_leaderboard_of_the_votes(store):
    votes, project = store
    order = ["ant", "bee", "cat", "dog"]
    for n in range(60):
        a, b = [(x, y) for x in order for y in order if x != y][n % 12]
        better = "first" if (order.index(a) < order.index(b)) != (n % 5 == 0) else "second"
        votes.add_vote(project, f"judge {n % 3}", a, b, better)
    collection, texts = votes.collection(project), votes.item_texts(project)
    live = compute_live_board(collection, texts, votes.votes(project))
    [made] = build_preferences(collection, select_counted(votes.votes(project)))
    reference = leaderboard(made)
    assert [row["item"] for row in live.rows] == [row.item for row in reference.rows]
    for row, other in zip(live.rows, reference.rows, strict=True):
        # the ridge of the live board pulls scores a little together
        assert abs(row["score"] - other.score) < 0.1 * abs(other.score - 1000) + 5


def test_a_clear_leader_stops_the_collection(store):
    votes, project = store
    for n in range(40):
        for other in ("bee", "cat", "dog"):
            votes.add_vote(project, f"judge {n}", "ant", other, "first")
    live = compute_live_board(votes.collection(project), votes.item_texts(project), votes.votes(project))
    assert live.stop
    assert live.words.startswith("Stop: The ant is the best at 95%")


def test_every_item_is_asked_about_and_no_pair_twice():
    items, taken, seen = list("abcdefgh"), set(), collections.Counter()
    while (pair := choose_pair(items, [], taken, [], None)) is not None:
        assert frozenset(pair) not in taken
        taken.add(frozenset(pair))
        seen.update(pair)
    assert len(taken) == 28
    assert set(seen.values()) == {7}


# -- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"id,title,text\nx,X,one\ny,Y,two\n"),
        ("a.tsv", b"docid\theadline\tbody\nx\tX\tone\ny\tY\ttwo\n"),
        (
            "a.jsonl",
            b'{"id": "x", "title": "X", "text": "one"}\n{"id": "y", "title": "Y", "content": "two"}\n',
        ),
        (
            "a.json",
            b'[{"item": "x", "title": "X", "text": "one"}, {"item": "y", "title": "Y", "text": "two"}]',
        ),
    ],
)
def test_texts_are_read_from_any_table(name, content):
    assert read_item_texts(name, content) == [
        CollectionItem("x", "X", "one"),
        CollectionItem("y", "Y", "two"),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2\n", "no column of ids"),
        (b"id,text\nx,1\nx,2\n", "items:3: item 'x' occurs twice"),
        (b"id,text\n,1\n", "a row has no id"),
        (b'{"id": 1}\n{', "not JSON"),
        (b"[1, 2]", "not an object"),
    ],
)
def test_wrong_tables_of_items_are_refused(content, words):
    with pytest.raises(InputError, match=re.escape(words)):
        read_item_texts("items", content)


# -- pages and API -----------------------------------------------------------------------------------------------


def test_votes_are_part_of_the_project_at_once(client):
    project = open_collection(client)
    assert client.get(f"/p/{project}/leaderboard.json").status_code == 422  # no votes yet, said with words
    rows = [{"first": a, "second": b, "answer": "first"} for a, b in ("12", "23", "34", "13")]
    answer = client.post(f"/v1/projects/{project}/votes", json={"judge": "bot", "votes": rows})
    assert answer.json()["stored"] == 4
    board = client.get(f"/p/{project}/leaderboard.json").json()
    assert board["rows"][0]["item"] == "1"
    assert board["votes"] == 4
    client.post(f"/v1/projects/{project}/votes/undo", json={"judge": "bot"})
    assert client.get(f"/p/{project}/leaderboard.json").json()["votes"] == 3


def test_uploaded_votes_and_collected_ones_make_one_board(client):
    csv = b"model_a,model_b,winner,judge\n" + b"x,y,model_a,j1\ny,z,model_b,j1\nx,z,model_a,j2\n" * 4
    sent = client.post(
        "/open/upload", data={"csrf": find_csrf(client)}, files=[("files", ("votes.csv", csv))]
    )
    project = sent.headers["location"].split("/")[2].partition("?")[0]
    start = client.post(f"/p/{project}/collect/start", data={"csrf": find_csrf(client)})
    assert start.status_code == 303, start.text
    before = client.get(f"/p/{project}/leaderboard.json").json()["votes"]
    asked = client.get(f"/v1/projects/{project}/next-pair", params={"judge": "ann"}).json()
    votes = [{"key": asked["key"], "answer": "tie"}]
    assert (
        client.post(f"/v1/projects/{project}/votes", json={"judge": "ann", "votes": votes}).json()["stored"]
        == 1
    )
    assert client.get(f"/p/{project}/leaderboard.json").json()["votes"] == before + 1 == 13
    assert client.get(f"/p/{project}/collect.json").json()["live"]["rows"][0]["votes"] > 4


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_exports_read_back_as_the_same_votes(client, tmp_path, suffix):
    project = open_collection(client)
    link = open_link(client, project, "ann")
    for answer in ("first", "second", "tie", "skip"):
        key = client.get(f"{link}/next.json").json()["key"]
        client.post(f"{link}/answer", json={"key": key, "answer": answer, "seconds": 2.5})
    (tmp_path / f"votes.{suffix}").write_bytes(client.get(f"/p/{project}/votes.{suffix}").content)
    comparisons = formats.read(tmp_path / f"votes.{suffix}").preferences.comparisons
    assert len(comparisons) == 3
    assert comparisons.tie.sum() == 1
    whole = client.get(f"/p/{project}/votes.json").json()["votes"]
    assert [vote["answer"] for vote in whole] == ["first", "second", "tie", "skip"]
    lines = client.get(f"/p/{project}/votes.arena.jsonl").text.splitlines()
    assert [json.loads(line)["winner"] for line in lines] == ["model_a", "model_b", "tie"]


def test_gold_questions_are_asked_and_do_not_count(client):
    project = open_collection(client)
    fields = {"csrf": find_csrf(client), "first": "1", "second": "2", "answer": "first"}
    client.post(f"/p/{project}/collect/gold", data=fields)
    client.post(f"/p/{project}/collect/gold-every", data={"csrf": find_csrf(client), "gold_every": "2"})
    link, asked = open_link(client, project, "ann"), []
    while not (question := client.get(f"{link}/next.json").json())["done"]:
        asked.append({question["first"]["item"], question["second"]["item"]})
        # always the item with the smaller number, so the gold question is answered rightly on either side
        left = question["first"]["item"] < question["second"]["item"]
        client.post(f"{link}/answer", json={"key": question["key"], "answer": "first" if left else "second"})
    assert len(asked) == 6
    assert asked[1] == {"1", "2"}
    state = client.get(f"/p/{project}/collect.json").json()
    assert [(j["gold"], j["gold_right"]) for j in state["judges"]] == [(1, 1)]
    assert sum(row["votes"] for row in state["live"]["rows"]) == 2 * 5


def test_ratings_have_means_and_become_lists(client):
    project = open_collection(client, kind="ratings")
    for judge in ("ann", "ben"):
        link = open_link(client, project, judge)
        while not (question := client.get(f"{link}/next.json").json())["done"]:
            assert question["second"] is None
            item = question["first"]["item"]
            client.post(f"{link}/answer", json={"key": question["key"], "answer": item})
    rows = client.get(f"/p/{project}/collect.json").json()["live"]["rows"]
    assert [(row["item"], row["score"]) for row in rows] == [("4", 4), ("3", 3), ("2", 2), ("1", 1)]
    assert client.get(f"/p/{project}/fuse.json").json()["rows"][0]["item"] == "4"
    run = client.get(f"/p/{project}/votes.run").text.split("\n")[0].split()
    assert run[2] == "4"


def test_a_judge_needs_no_token_and_sees_nothing_else(tmp_path):
    owner = {"authorization": f"Bearer {TOKEN}"}
    with serving(tmp_path, token_hash=hash_token(TOKEN)) as client:
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/", headers=owner).text)[1]
        fields = {"csrf": csrf, "items": "ant\nbee\ncat", "name": "A secret project"}
        project = client.post("/collect", data=fields, headers=owner).headers["location"].split("/")[2]
        links = {}
        for judge, role in (("ann", "judge"), ("", "judge"), ("eve", "viewer")):
            made = {"csrf": csrf, "judge": judge, "role": role}
            client.post(f"/p/{project}/collect/invite", data=made, headers=owner)
            page = client.get(f"/p/{project}/collect", headers=owner).text
            links[judge] = re.findall(r'href="(/vote/[^"]+)"', page)[-1]
        for path in ("/", f"/p/{project}/collect", f"/v1/projects/{project}/votes", "/vote/x/next.json"):
            assert client.get(path).status_code in (401, 303, 404), path
        assert client.post(f"/v1/projects/{project}/votes", json={}).status_code == 401
        page = client.get(links["ann"])
        assert page.status_code == 200
        assert "secret" not in page.text
        assert client.get(f"{links['ann']}/board.json").status_code == 422
        assert client.post(f"{links['eve']}/answer", json={"key": "x", "answer": "tie"}).status_code == 422
        assert client.get(f"{links['eve']}/board.json").json()["live"]["rows"]
        own = client.post(f"{links['']}/join", data={"name": "zoe"}).headers["location"]
        assert own != links[""]
        key = client.get(f"{own}/next.json").json()["key"]
        assert client.post(f"{own}/answer", json={"key": key, "answer": "first"}).json()["stored"]
        assert client.post(f"{links['']}/join", data={"name": "zoe"}).status_code == 422  # the name is taken
        wrong = client.get("/vote/0123.4567")
        assert wrong.status_code == 404
        assert "secret" not in wrong.text
        foreign = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
        assert client.post(f"{own}/undo", json={}, headers=foreign).status_code == 403


def test_bad_requests_to_the_votes_are_refused(client):
    project = open_collection(client)
    where = f"/v1/projects/{project}/votes"
    for body in (
        {"judge": "j", "votes": []},
        {"judge": "j", "votes": [{"answer": "first"}]},
        {"judge": "j", "votes": [{"answer": "first", "first": "1", "second": "9"}]},
        {"judge": "", "votes": [{"answer": "first", "first": "1", "second": "2"}]},
        {"judge": "j", "votes": [{"answer": "first", "first": "1", "second": "2", "extra": 1}]},
    ):
        answer = client.post(where, json=body)
        assert answer.status_code == 422, answer.text
    assert client.get(f"/v1/projects/{project}/next-pair").status_code == 422
    assert client.get(f"{where}?after=x").status_code == 422
    link = open_link(client, project, "ann")
    assert (
        client.post(f"{link}/answer", content=b"[", headers={"content-type": "application/json"}).status_code
        == 400
    )
    assert client.post(f"{link}/answer", content=b"x" * 70_000).status_code == 413
    for seconds in (-1, "x", True):
        key = client.get(f"{link}/next.json").json()["key"]
        sent = {"key": key, "answer": "tie", "seconds": seconds}
        assert client.post(f"{link}/answer", json=sent).status_code == 422
    assert client.get(where).json() == {"votes": [], "next": None}
    client.post(f"/p/{project}/collect/close", data={"csrf": find_csrf(client)})
    assert "closed" in client.get(f"{link}/next.json").json()["done"]


def test_pages_of_votes_hold_no_code_of_their_own(client):
    project = open_collection(
        client, items="id,text,url\na,<b>bold</b>,javascript:alert(1)\nb,two,https://example.org\n"
    )
    link = open_link(client, project, "ann")
    for where in (f"/p/{project}/collect", link):
        text = client.get(where).text
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|href=\"javascript:", text)
        assert "<b>bold</b>" not in text


def test_a_user_who_is_a_judge_votes_under_the_own_name(tmp_path):
    with serving(tmp_path, has_tokens=True) as client:
        store = client.app.state.store
        editor, judge = (
            {"authorization": f"Bearer {store.add_token(name, role)}"}
            for name, role in (("eve", "editor"), ("ann", "judge"))
        )
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/", headers=editor).text)[1]
        fields = {"csrf": csrf, "items": "ant\nbee\ncat"}
        project = client.post("/collect", data=fields, headers=editor).headers["location"].split("/")[2]
        where = f"/v1/projects/{project}"
        asked = client.get(f"{where}/next-pair?judge=ann", headers=judge).json()
        vote = {"judge": "ann", "votes": [{"key": asked["key"], "answer": "tie"}]}
        assert client.post(f"{where}/votes", json=vote, headers=judge).json()["stored"] == 1
        assert client.get(f"{where}/next-pair?judge=ben", headers=judge).status_code == 403
        other = {"judge": "ben", "votes": [{"first": "1", "second": "2", "answer": "tie"}]}
        assert client.post(f"{where}/votes", json=other, headers=judge).status_code == 403
        assert client.post(f"{where}/votes", json=other, headers=editor).json()["stored"] == 1
        for action in ("close", "invite", "gold-every"):
            sent = client.post(f"/p/{project}/collect/{action}", data={"csrf": csrf}, headers=judge)
            assert sent.status_code == 403
        own = client.post(f"/p/{project}/collect/vote", data={"csrf": csrf, "judge": "ben"}, headers=judge)
        assert client.get(f"{own.headers['location']}/next.json").json()["judge"] == "ann"
        headers = judge | {"idempotency-key": "one"}
        body = {"judge": "ann", "votes": [{"first": "1", "second": "3", "answer": "first"}]}
        answers = [client.post(f"{where}/votes", json=body, headers=headers).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert len(client.get(f"{where}/votes", headers=editor).json()["votes"]) == 3
