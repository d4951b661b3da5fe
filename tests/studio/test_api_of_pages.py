"""What the pages do, over the API: exclusions, kept weights, collections, invitations, gold questions, Apply, texts."""

import csv
import io
import random

import pytest

from podium import formats, make
from podium.analysis.leaderboard import leaderboard
from serving import serving

RUN = "".join(
    f"q{q} Q0 d{d} {r} {9 - r} e{e}\n"
    for q in range(3)
    for e in range(3)
    for r, d in enumerate([(e + k) % 4 for k in range(3)], 1)
).encode()
NEW = b"n1 Q0 x 1 3 e0\nn1 Q0 y 2 2 e0\nn1 Q0 y 1 3 e1\nn1 Q0 z 2 2 e1\nn1 Q0 x 1 3 e2\n"


def make_votes():
    rng, lines = random.Random(3), ["query,judge,item_a,item_b,winner"]
    for query in range(10):
        for judge in range(4):
            a, b = rng.sample(("ax", "bx", "cx", "dx"), 2)
            better = rng.random() < 0.8
            lines.append(f"q{query},w{judge},{a},{b},{min(a, b) if better else max(a, b)}")
    return "\n".join(lines).encode()


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path / "studio") as client:
        yield client


def create(client, name, content):
    answer = client.post("/v1/projects", files={"files": (name, content)})
    assert answer.status_code == 201, answer.text
    return f"/v1/projects/{answer.json()['id']}"


def test_excluded_annotators_are_left_out_of_every_view(client, tmp_path):
    address = create(client, "votes.csv", make_votes())
    assert client.get(f"{address}/annotators").json() == {"excluded": [], "next": None}
    done = client.post(f"{address}/annotators/exclude", json={"annotators": ["w1", "w3"]})
    assert done.status_code == 200, done.text
    assert done.json() == client.get(f"{address}/annotators").json()
    assert done.json() == {"excluded": ["w1", "w3"], "next": None}
    kept = [row for row in csv.reader(io.StringIO(make_votes().decode())) if row[1] not in ("w1", "w3")]
    (tmp_path / "kept.csv").write_text("\n".join(",".join(row) for row in kept))
    own = leaderboard(formats.read(tmp_path / "kept.csv").preferences)
    board = client.get(f"{address}/views/leaderboard").json()
    assert {row["item"]: row["votes"] for row in board["rows"]} == {row.item: row.votes for row in own.rows}
    back = client.post(f"{address}/annotators/restore", json={"annotators": ["w1"]})
    assert back.json()["excluded"] == ["w3"]
    for wrong in (["nobody"], [f"w{n}" for n in range(4)]):
        refused = client.post(f"{address}/annotators/exclude", json={"annotators": wrong})
        assert refused.status_code == 422
        assert refused.headers["content-type"] == "application/problem+json"


def test_kept_weights_are_a_model_that_is_applied_to_new_files(client, tmp_path):
    address = create(client, "a.run", RUN)
    wanted = {"method": "rrf", "weights": {"e0": 0.25, "e1": 4.0}, "name": "mine"}
    sent = [client.post(f"{address}/models", json=wanted, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in sent] == [201, 201]
    assert sent[0].json() == sent[1].json()
    [model] = client.get(f"{address}/models").json()["models"]
    assert model["name"] == "mine"
    form = {"method": f"model:{model['id']}", "format": "csv"}
    applied = client.post(f"{address}/apply", data=form, files={"files": ("new.run", NEW)})
    assert applied.status_code == 200, applied.text
    (tmp_path / "new.run").write_bytes(NEW)
    new = formats.read(tmp_path / "new.run").preferences
    # k = 60: x has .25 / 61 + 1 / 61, y .25 / 62 + 4 / 61, z 4 / 62
    assert [row["item"] for row in csv.DictReader(io.StringIO(applied.text))] == ["y", "z", "x"]
    plain = client.post(f"{address}/apply", data={"method": "borda"}, files={"files": ("new.run", NEW)})
    ranked = [line.split()[2] for line in plain.text.splitlines()]
    assert ranked == [row.item for row in make("borda").aggregate(new)["n1"]]
    for wrong in ({"method": "nosuch"}, {"format": "nosuch"}, {"method": "model:0"}, {"m": "rrf"}):
        assert client.post(f"{address}/apply", data=wrong, files={"files": ("n.run", NEW)}).status_code in (
            404,
            422,
        )
    for weights in ({"e0": 1.0}, {"nobody": 2.0}, {"e0": -1.0}, {}):
        assert client.post(f"{address}/models", json={"method": "rrf", "weights": weights}).status_code == 422


def test_a_collection_from_its_items_to_its_votes(client):
    items = [{"item": "a", "title": "Ant", "text": "An ant"}, {"item": "b"}, {"item": "c"}]
    made = client.post("/v1/collections", json={"name": "Animals", "items": items, "question": "Which?"})
    assert made.status_code == 201, made.text
    address = f"/v1/projects/{made.json()['project']}"
    assert client.get(address).json()["name"] == "Animals"
    assert client.get(f"{address}/collection").json() == made.json()
    assert {made.json()[name] for name in ("items", "question", "kind")} == {3, "Which?", "pairs"}
    invites = [client.post(f"{address}/invites", json={"judge": "ann"}).json() for _ in range(2)]
    assert invites[0] == invites[1]
    assert client.get(f"{address}/invites").json()["invites"] == invites[:1]
    asked = client.get(f"{invites[0]['path']}/next.json").json()
    assert (asked["judge"], asked["question"]) == ("ann", "Which?")
    shown = {asked[side]["item"]: asked[side]["title"] for side in ("first", "second")}
    assert shown.get("a", "Ant") == "Ant"
    assert client.delete(f"{address}/invites/{invites[0]['id']}").status_code == 204
    assert client.get(invites[0]["path"]).status_code == 404
    assert client.delete(f"{address}/invites/nosuch").status_code == 404
    pair = {"first": "a", "second": "b", "answer": "first"}
    assert client.post(f"{address}/gold", json=pair).json()["gold"] == [pair]
    assert client.post(f"{address}/gold", json=pair | {"second": "nosuch"}).status_code == 422
    gone = client.post(f"{address}/gold/remove", json={"first": "a", "second": "b"})
    assert gone.json() == client.get(f"{address}/gold").json() == {"gold": [], "next": None}
    vote = {"judge": "ben", "votes": [{"first": "a", "second": "b", "answer": "first"}]}
    assert client.post(f"{address}/votes", json=vote).json()["stored"] == 1
    closed = client.patch(f"{address}/collection", json={"closed": True})
    assert (closed.json()["closed"], closed.json()["votes"]) == (True, 1)
    assert client.patch(f"{address}/collection", json={"gold_every": 5}).json()["closed"]


def test_a_project_collects_votes_on_its_items_with_their_texts(client):
    address = create(client, "a.run", RUN)
    assert client.get(f"{address}/collection").status_code == 404
    texts = b"id,title\nd0,Zero\nd1,One\n"
    added = client.post(f"{address}/texts", files={"files": ("texts.csv", texts)})
    assert [file["name"] for file in added.json()["files"]] == ["a.run", "texts.csv"]
    started = client.post(f"{address}/collection", json={"query": "q1", "kind": "ratings"})
    assert (started.status_code, started.json()["query"], started.json()["items"]) == (201, "q1", 4)
    shown = client.get(f"{address}/next-pair", params={"judge": "ann"}).json()["first"]
    assert shown["title"] == {"d0": "Zero", "d1": "One"}.get(shown["item"], shown["item"])
    assert client.post(f"{address}/collection", json={}).status_code == 422  # it has one
    assert client.delete(f"{address}/texts").status_code == 204
    assert [file["name"] for file in client.get(address).json()["files"]] == ["a.run"]
    assert client.post(f"{address}/texts", files={"files": ("t.csv", b"")}).status_code == 422


def test_only_editors_see_links_and_gold_answers(tmp_path):
    with serving(tmp_path, has_tokens=True) as client:
        store = client.app.state.store
        heads = {
            r: {"authorization": f"Bearer {store.add_token(r, r)}"} for r in ("viewer", "judge", "editor")
        }
        items = [{"item": item} for item in "abc"]
        made = client.post("/v1/collections", json={"items": items}, headers=heads["editor"]).json()[
            "project"
        ]
        address = f"/v1/projects/{made}"
        link = client.post(f"{address}/invites", json={"judge": "ann"}, headers=heads["editor"]).json()[
            "path"
        ]
        pair = {"first": "a", "second": "b", "answer": "second"}
        assert client.post(f"{address}/gold", json=pair, headers=heads["editor"]).status_code == 201
        client.patch(f"{address}/collection", json={"gold_every": 1}, headers=heads["editor"])
        for _ in range(3):
            asked = client.get(f"{address}/next-pair?judge=judge", headers=heads["judge"]).json()
            voted = {"judge": "judge", "votes": [{"key": asked["key"], "answer": "tie"}]}
            assert client.post(f"{address}/votes", json=voted, headers=heads["judge"]).json()["stored"] == 1
        for role in heads:
            votes = client.get(f"{address}/votes", headers=heads[role]).json()["votes"]
            same = client.get(f"/p/{made}/votes.json", headers=heads[role]).json()["votes"]
            for listed in (votes, same):
                assert len(listed) == 3
                assert any(vote["gold"] for vote in listed) == (role == "editor")
        for role, expected in (("viewer", 403), ("judge", 403), ("editor", 200)):
            assert client.get(f"{address}/invites", headers=heads[role]).status_code == expected
            assert client.get(f"{address}/gold", headers=heads[role]).status_code == expected
            page = client.get(f"/p/{made}/collect", headers=heads[role]).text
            assert (link in page) == (role == "editor")
            assert ("Gold questions" in page) == (role == "editor")


def test_downloads_are_those_of_the_pages(client):
    address = create(client, "a.run", RUN)
    page = address.replace("/v1/projects", "/p")
    client.post(f"{address}/texts", files={"files": ("t.csv", b"id,title\nd0,Zero\nd1,One\n")})
    names = [f"ranking.{suffix}?m=borda" for suffix in ("run", "csv", "json", "jsonl", "parquet")]
    for name in (*names, "cleaned.csv", "report.html?m=borda"):
        own, theirs = client.get(f"{address}/{name}"), client.get(f"{page}/{name}")
        assert own.status_code == theirs.status_code == 200, own.text
        kind = "content-disposition"
        assert own.headers[kind] == theirs.headers[kind]
        assert own.content == theirs.content or name.startswith("report")
    for wrong in (
        "ranking.nosuch",
        "ranking.csv?m=nosuch",
        "cleaned.nosuch",
        "votes.csv",
        "report.html?m=nosuch",
    ):
        refused = client.get(f"{address}/{wrong}")
        assert refused.status_code in (404, 422), wrong
        assert refused.headers["content-type"] == "application/problem+json"
    assert client.get(f"{address}/votes/undo").headers["allow"] == "POST"  # no file of votes
    texts = client.get(f"{address}/texts", params={"limit": 1}).json()
    zero = {"item": "d0", "title": "Zero", "text": "", "url": ""}
    assert texts == {"texts": [zero], "next": "d0"}
    rest = client.get(f"{address}/texts", params={"after": "d0"}).json()
    assert [text["title"] for text in rest["texts"]] == ["One"]


def read_pages(client, address, name):
    """All records of a list, two at a time."""
    records, after = [], ""
    while after is not None:
        page = client.get(address, params={"limit": 2, "after": after}).json()
        assert 0 < len(page[name]) <= 2
        records, after = records + page[name], page["next"]
    return records


def test_lists_of_invitations_gold_questions_and_annotators_have_pages(client):
    items = [{"item": item} for item in (5, "5", "a", "b" * 300)]
    made = client.post("/v1/collections", json={"items": items}).json()
    address = f"/v1/projects/{made['project']}"
    for name in ("ann", "ben", "cas", "dee", "eve"):
        client.post(f"{address}/invites", json={"judge": name})
    assert [i["judge"] for i in read_pages(client, f"{address}/invites", "invites")] == [
        "ann",
        "ben",
        "cas",
        "dee",
        "eve",
    ]
    pairs = [(5, "5"), ("5", "a"), (5, "a"), ("b" * 300, 5), ("b" * 300, "5")]
    for first, second in pairs:
        added = client.post(f"{address}/gold", json={"first": first, "second": second, "answer": "tie"})
        assert added.status_code == 201, added.text
    shown = [(pair["first"], pair["second"]) for pair in read_pages(client, f"{address}/gold", "gold")]
    assert {frozenset(pair) for pair in shown} == {frozenset(pair) for pair in pairs}
    assert len(shown) == 5
    votes = create(client, "votes.csv", make_votes().replace(b",w2,", b"," + b"w" * 300 + b","))
    left_out = ["w0", "w1", "w" * 300]
    assert client.post(f"{votes}/annotators/exclude", json={"annotators": left_out}).status_code == 200
    assert read_pages(client, f"{votes}/annotators", "excluded") == sorted(left_out)
    for name in ("invites", "gold"):
        assert client.get(f"{address}/{name}?after=nosuch").status_code == 422


def test_tokens_stops_and_restorations_are_done_once_per_key(tmp_path):
    with serving(tmp_path, has_tokens=True) as client:
        store = client.app.state.store
        head = {"authorization": f"Bearer {store.add_token('root', 'admin')}", "idempotency-key": "k1"}
        wanted = {"name": "ann", "role": "judge"}
        made = [client.post("/v1/tokens", json=wanted, headers=head) for _ in range(2)]
        assert [answer.status_code for answer in made] == [201, 201], made[1].text
        assert made[0].json() == made[1].json()
        assert made[1].headers["idempotent-replayed"] == "true"
        own = {"authorization": f"Bearer {made[1].json()['token']}"}
        assert client.get("/v1/user", headers=own).json() == wanted
        other = client.post(
            "/v1/tokens", json=wanted | {"name": "ben"}, headers=head | {"idempotency-key": "k2"}
        )
        assert other.json()["token"] != made[0].json()["token"]
        for file in tmp_path.iterdir():  # the token is stored nowhere
            assert file.is_dir() or made[0].json()["token"].encode() not in file.read_bytes()

        project = client.post(
            "/v1/projects", files={"files": ("a.run", RUN)}, headers=head | {"idempotency-key": "k3"}
        )
        address = f"/v1/projects/{project.json()['id']}"
        job = store.add_job(project.json()["id"], "tune", {})
        for path in (f"{address}/jobs/{job}/stop", f"{address}/restore"):
            if path.endswith("restore"):
                client.delete(address, headers=head)
            done = [client.post(path, headers=head | {"idempotency-key": path[-20:]}) for _ in range(2)]
            assert [answer.status_code for answer in done] == [200, 200], done[0].text
            assert done[0].json() == done[1].json()
            assert done[1].headers["idempotent-replayed"] == "true"


def test_figures_are_those_of_the_pages(client):
    named = client.get("/v1/projects/demo/views/methods/figures").json()["figures"]
    assert [figure["name"] for figure in named][:1] == ["curves"]
    assert all(figure["caption"] for figure in named)
    address = "/v1/projects/demo/views/methods/figures/curves"
    drawn = client.get(f"{address}.svg?theme=dark&width=400")
    assert drawn.content == client.get("/p/demo/methods/curves.svg?theme=dark&width=400").content
    assert client.get(f"{address}.png").content[:4] == b"\x89PNG"
    assert "mark" in client.get(f"{address}.json").text
    for wrong in (f"{address}.gif", f"{address[:-1]}.svg", address.replace("methods", "nosuch") + ".svg"):
        refused = client.get(wrong)
        assert refused.status_code == 404
        assert refused.headers["content-type"] == "application/problem+json"
    assert client.get(f"{address}.svg?width=wide").status_code == 422
    broken = create(client, "votes.txt", SELF_VOTES)
    refused = client.get(f"{broken}/views/leaderboard/figures")
    assert (refused.status_code, refused.json()["title"]) == (422, "Input error")


SELF_VOTES = b"judge winner loser\n" + b"".join(
    b"j%d m%d m%d\n" % (n % 3, n % 4, (n + 1) % 4) for n in range(24)
)
SELF_VOTES += b"j1 m1 m1\n"


def test_a_plan_is_seen_changed_and_mended(client):
    address = create(client, "votes.txt", SELF_VOTES)
    plan = client.get(f"{address}/plan").json()
    [file], [problem] = plan["files"], plan["problems"]
    assert (plan["ready"], problem["blocks"]) == (False, True)
    assert {c["name"]: c["role"] for c in file["columns"]} == {
        "judge": "expert",
        "winner": "winner",
        "loser": "loser",
    }
    assert file["rows"][:2] == [["j0", "m0", "m1"], ["j1", "m1", "m2"]]
    assert file["counts"]["self_votes"] == 1
    remedy = next(r for r in problem["remedies"] if r["change"] == "option.self_votes=skip")
    head = {"idempotency-key": "click"}
    done = [
        client.post(f"{address}/remedies", json={k: remedy[k] for k in ("change", "file")}, headers=head)
        for _ in range(2)
    ]
    assert done[0].json() == done[1].json() == client.get(f"{address}/plan").json()
    assert done[0].json()["ready"]
    assert done[0].json()["files"][0]["choices"] == {"self_votes": "skip"}
    board = client.get(f"{address}/views/leaderboard").json()
    assert sum(row["votes"] for row in board["rows"]) == 48
    back = client.patch(f"{address}/plan/0", json={"choices": {"self_votes": ""}})
    assert not back.json()["ready"]


def test_roles_of_columns_are_changed_by_a_program(client):
    rows = "".join(f"q,e{e},i{n},{e * n + 1}\n" for e in range(3) for n in range(4))
    address = create(client, "r.csv", b"query,expert,item,score\n" + rows.encode())
    roles = {"query": "query", "expert": "expert", "item": "item", "score": "rank"}
    changed = client.patch(f"{address}/plan/0", json={"roles": roles})
    assert {c["name"]: c["role"] for c in changed.json()["files"][0]["columns"]} == roles
    best = client.get(f"{address}/ranking.json?m=borda").json()["rankings"]["q"][0]["item"]
    assert best == "i0"  # rank 1 of everybody, and the lowest score
    changed = client.patch(f"{address}/plan/0", json={"roles": roles | {"score": "score"}})
    assert changed.json()["ready"]
    assert client.get(f"{address}/ranking.json?m=borda").json()["rankings"]["q"][0]["item"] == "i3"
    wrong = (
        {"roles": {"nosuch": "item"}},
        {"roles": {"item": "king"}},
        {"format": "nosuch"},
        {"choices": {"x": 1}},
    )
    for body in wrong:
        assert client.patch(f"{address}/plan/0", json=body).status_code == 422, body
    assert client.patch(f"{address}/plan/7", json={"use": "data"}).status_code == 404
    assert client.patch(f"{address}/plan/0", json={"use": "ignore"}).json()["ready"] is False
    assert client.patch(f"{address}/plan/0", json={"use": "data"}).json()["ready"]
    assert client.patch("/v1/projects/demo/plan/0", json={"use": "data"}).status_code == 422
    assert client.get("/v1/projects/demo/plan").json()["files"] == []
