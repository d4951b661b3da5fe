"""The Data page over HTTP: nothing is lost after an error, and everything can be changed by its forms."""

from __future__ import annotations

import html
import re
import time

import pytest

from podium import make
from podium.studio.loading import open_input
from serving import serving

VOTES = (
    b"judge winner loser\n"
    + b"".join(b"j%d m%d m%d\n" % (n % 3, n % 4, (n + 1) % 4) for n in range(24))
    + b"j1 m1 m1\n"
)
RUN = b"".join(
    f"q{q} Q0 d{d} {r} {9 - r} e{e}\n".encode()
    for q in range(3) for e in range(3) for r, d in enumerate([(e + k) % 4 for k in range(3)], 1)
)  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as found:
        yield found


def page(client, address):
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    return answer


def mark(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]


def post(client, address, files=None, **fields):
    return client.post(address, data={"csrf": mark(client), **fields}, files=files)


def upload(client, *files):
    sent = post(client, "/open/upload", [("files", file) for file in files])
    assert sent.status_code == 303, sent.text
    return sent.headers["location"].split("/")[2], sent.headers["location"]


def test_a_problem_is_settled_by_a_click_and_nothing_is_lost(client):
    project, where = upload(client, ("votes.txt", VOTES))
    assert where == f"/p/{project}/data"
    shown = page(client, where).text
    assert 'role="alert"' in shown
    assert "m1" in shown  # the first rows
    assert "Self-votes (1)" in shown
    # other pages lead here until it is settled, and the navigation has nothing else
    assert client.get(f"/p/{project}/overview").headers["location"] == where
    assert f'href="/p/{project}/methods"' not in shown
    change = re.search(r'name="change" value="(option.self_votes=skip)"', shown)[1]
    assert (
        post(client, f"/p/{project}/data/change", file="0", change=html.unescape(change)).status_code == 303
    )
    ready = page(client, where).text
    assert 'role="alert"' not in ready
    assert "Open the results" in ready
    assert client.get(f"/p/{project}").headers["location"] == f"/p/{project}/leaderboard"


def test_roles_can_be_changed_after_opening(client):
    ratings = b"query,expert,item,score\n" + b"".join(
        b"q,e%d,i%d,%d\n" % (e, n, e * n) for e in range(3) for n in range(4)
    )
    project, _ = upload(client, ("r.csv", ratings))
    before = client.get(f"/p/{project}/fuse.json?m=borda").json()
    roles = {f"role{k}": role for k, role in enumerate(("query", "expert", "item", "rank"))}
    assert post(client, f"/p/{project}/data/0", use="data", **roles).status_code == 303
    after = client.get(f"/p/{project}/fuse.json?m=borda")
    assert after.status_code == 422  # rank 0 is none, and the page says so
    assert "rank" in after.text
    roles["role3"] = "score"
    post(client, f"/p/{project}/data/0", use="data", **roles)
    assert client.get(f"/p/{project}/fuse.json?m=borda").json()["rows"] == before["rows"]


def test_a_project_has_a_name_and_its_items_have_texts(client):
    project, _ = upload(client, ("a.run", RUN))
    post(client, f"/p/{project}/rename", name="My <b>runs</b>")
    texts = b"id,title,text\nd0,The zeroth <document>,words\nd1,The first document,more words\n"
    sent = post(client, f"/p/{project}/texts", [("files", ("docs.csv", texts))])
    assert sent.headers["location"].endswith("/data?done=texts-added")
    shown = page(client, f"/p/{project}/why?q=q0&m=rrf").text
    assert "My &lt;b&gt;runs&lt;/b&gt;" in shown
    assert "The zeroth &lt;document&gt;" in shown
    assert "The first document" in page(client, f"/p/{project}/query?q=q0").text
    refused = post(client, f"/p/{project}/texts", [("files", ("docs.csv", b"words"))])
    assert refused.status_code == 422
    post(client, f"/p/{project}/texts/remove")
    assert "The first document" not in page(client, f"/p/{project}/query?q=q0").text


def test_the_demo_is_not_changed(client):
    assert page(client, "/p/demo/data").status_code == 200
    assert post(client, "/p/demo/data/0", use="ignore").status_code == 422
    assert post(client, "/p/demo/remove").status_code == 422


def test_a_method_is_applied_to_new_files(client):
    project, _ = upload(client, ("a.run", RUN))
    assert page(client, f"/p/{project}/apply").status_code == 200
    sent = post(client, f"/p/{project}/apply", [("files", ("b.run", RUN))], m="borda", format="csv")
    assert sent.headers["content-disposition"] == 'attachment; filename="podium-result.csv"'
    own = make("borda").aggregate(open_input([("b.run", RUN)]).preferences)
    rows = [line.split(",") for line in sent.text.splitlines()]
    head = rows[0]
    told = [(r[head.index("query")], r[head.index("item")]) for r in rows[1:]]
    assert told == [(q, i) for q in own.queries for i in own.ranking(q)]
    trec = post(client, f"/p/{project}/apply", [("files", ("b.run", RUN))], m="borda", format="trec")
    assert len(trec.text.splitlines()) == len(told)
    assert (
        post(client, f"/p/{project}/apply", [("files", ("b.run", RUN))], m="borda", format="poem").status_code
        == 422
    )
    assert post(client, f"/p/{project}/apply", m="borda", format="csv").status_code == 422
    # after an error the form is there again, with what was chosen
    again = post(client, f"/p/{project}/apply", [("files", ("b.run", b"\x00\x01"))], m="borda", format="csv")
    assert again.status_code == 422
    assert 'role="alert"' in again.text
    assert "<option selected>borda</option>" in again.text
    assert "<option selected>csv</option>" in again.text


def test_every_page_shows_the_same_answer(client):
    told = client.get("/p/demo/overview.json").json()["answer"]
    for view in ("methods", "fuse", "why", "experts", "jobs", "apply", "differences"):
        text = page(client, f"/p/demo/{view}").text
        assert f"<strong>{told['winner']}</strong>" in text, view
    assert f'<p class="winner">{told["winner"]}</p>' in page(client, "/p/demo/overview").text


def test_the_words_of_the_overview_have_the_figures_of_the_card(client):
    document = client.get("/p/demo/overview.json").json()
    card, words = document["answer"], document["verdict"][0]
    assert words.startswith(
        f"Use {card['winner']}: on held-out queries its {card['metric']} is {card['value']:.4f}"
    )
    for gain in card["gains"]:
        assert (
            f"{gain['difference']:+.4f} ({gain['low']:+.4f} to {gain['high']:+.4f}) over {gain['over']}"
            in words
        )
    text = page(client, "/p/demo/overview").text
    above, _, table = text.partition("All quick methods, on all judged queries")
    assert f"{card['value']:.4f}" in above
    figure = client.get("/p/demo/methods.json", params={"m": card["winner"]}).json()
    mean = next(
        r["mean"] for r in figure["rows"] if r["name"] == card["winner"] and r["metric"] == card["metric"]
    )
    # over all queries: only below a heading, or in words, that say so; a method without labels may have the same mean
    # on held-out queries
    assert f"{mean:.4f}" not in above or f"{mean:.4f}" == f"{card['value']:.4f}"
    assert f"{mean:.4f}" in table


def test_rows_of_a_table_are_searched_sorted_and_listed(client):
    client.get("/p/demo/overview.json")
    first = page(client, "/p/demo/queries").text
    assert "Page 1 of 4" in first
    second = page(client, "/p/demo/queries?t0.page=2&t0.sort=-2").text
    assert "Page 2 of 4" in second
    assert 'aria-sort="descending"' in second
    found = page(client, "/p/demo/queries?t0.find=q003").text
    assert found.count('href="/p/demo/query?q=') == 1
    rows = client.get("/p/demo/queries/t0.rows?t0.sort=1").json()
    assert len(rows["rows"]) == len(rows["links"]) == 200
    assert client.get("/p/demo/queries/t9.rows").status_code == 404


def test_titles_belong_to_items_and_not_to_queries_or_experts_of_the_same_name(client):
    run = b"".join(
        b"%d Q0 %d %d %d %d\n" % (q, i, i, 9 - i, e) for q in (1, 2) for e in (1, 2) for i in (1, 2, 3)
    )
    project, _ = upload(client, ("numbers.run", run))
    post(client, f"/p/{project}/texts", [("files", ("t.csv", b"id,title\n1,First\n2,Second\n3,Third\n"))])
    for view in ("fuse?m=borda", "queries"):
        cells = re.findall(r"<td class=\"\w+\">(.*?)</td>", page(client, f"/p/{project}/{view}").text)
        assert re.fullmatch(r'<a href="[^"]+">1</a>', cells[0])
    assert [re.sub("<.*", "", cell) for cell in cells if "First" in cell] == []
    rows = client.get(f"/p/{project}/fuse/t0.rows?m=borda").json()  # as the page draws them when it scrolls
    assert rows["rows"][0][:3] == ["1", "3", "First"]
    assert rows["notes"][0][:3] == ["", "", "1"]
    ranked = client.get(f"/p/{project}/rank.json?q=1&m=borda").json()["rows"][0]
    assert (ranked["item"], ranked["name"], ranked["note"]) == ("1", "First", "1")


def test_items_of_a_collection_are_shown_by_their_titles(client):
    csrf = mark(client)
    sent = client.post("/collect", data={"csrf": csrf, "items": "Red apple\nGreen apple\nBlue apple"})
    project = sent.headers["location"].split("/")[2]
    link = client.post(f"/p/{project}/collect/vote", data={"csrf": csrf, "judge": "ann"}).headers["location"]
    for _ in range(12):
        asked = client.get(f"{link}/next.json").json()
        if asked["key"] is None:
            break
        best = "first" if asked["first"]["item"] < asked["second"]["item"] else "second"
        client.post(f"{link}/answer", json={"key": asked["key"], "answer": best})
    board, card = page(client, f"/p/{project}/leaderboard"), page(client, f"/p/{project}/overview")
    assert '<p class="winner">Red apple</p>' in board.text
    assert '<p class="winner">Red apple</p>' in card.text
    assert "Green apple<" in board.text
    assert re.search(r"separate (Red|Green|Blue) apple and", board.text)
    assert "Red apple" in client.get(f"/p/{project}/leaderboard/leaderboard.svg").text
    document = client.get(f"/p/{project}/leaderboard.json").json()
    assert document["rows"][0]["item"] == "1"  # programs get ids
    answer = client.get(f"/p/{project}/overview.json").json()["answer"]
    assert (answer["winner"], answer["title"]) == ("1", "Red apple")


def test_forms_come_again_with_what_was_entered(client):
    project, _ = upload(client, ("a.run", RUN))
    empty = [("files", ("t.csv", b"words"))]
    for view, address, fields in (
        ("data", f"/p/{project}/texts", {}),
        ("data", f"/p/{project}/labels", {"encoding": "cp1252"}),
        ("jobs", f"/p/{project}/labels", {"encoding": "cp1252", "view": "jobs"}),
        (
            "collect",
            f"/p/{project}/collect/start",
            {"question": "Which <one>?", "kind": "ratings", "query": "q1"},
        ),
        ("home", "/collect", {"question": "Which <one>?", "kind": "ratings", "items": "one line"}),
    ):
        answer = post(client, address, empty, **fields)
        assert answer.status_code == 422, address
        assert answer.text.count('role="alert"') == 1, address
        assert f'action="{address}"' in answer.text, address
        assert ('aria-current="page">' in answer.text) == (view != "home")
        for name, value in fields.items():
            shown = value.replace("<", "&lt;").replace(">", "&gt;")
            assert shown in answer.text, (address, name)
        if fields.get("kind") == "ratings":
            assert 'value="ratings" checked' in answer.text
            assert 'value="pairs" checked' not in answer.text
    assert 'value="q1" selected' in post(client, f"/p/{project}/collect/start", empty, query="q1").text


def test_encodings_are_offered_with_what_they_cannot_read(client):
    project, _ = upload(client, ("v.csv", "judge,winner,loser\nZoë,“a”,b\nj2,b,“a”\n".encode("cp1252")))
    shown = page(client, f"/p/{project}/data").text
    assert "UTF-8 (5 characters unreadable)" in shown
    assert "latin-1 (4 characters unreadable)" in shown
    assert re.search(r'<option value="cp1252"( selected)?>cp1252</option>', shown)
    assert "utf-16" not in shown


def test_every_file_has_its_roles_however_many_there_are(client):
    lines = "".join(f"q,d{n},{n}\n" for n in range(5))
    files = [(f"engine-{k:02}.csv", f"topic,thing,points\n{lines}".encode()) for k in range(14)]
    project, _ = upload(client, *files)
    first, second = (page(client, f"/p/{project}/data?page={n}").text for n in (1, 2))
    assert first.count("data-autosubmit") == 12
    assert second.count("data-autosubmit") == 2
    assert "engine-13.csv" in second
    assert "also for the 13 other files with these columns" in second

    def find_roles(text):
        return re.findall(r"<select name=\"role\d\".*?<option selected>([\w ,]+)</option>", text)

    columns = re.search(r'name="columns" value="(\w+)"', second)[1]
    roles = {"use": "data", "role0": "query", "role1": "item", "role2": "score"}
    sent = post(client, f"/p/{project}/data/13", **roles)
    assert sent.headers["location"] == f"/p/{project}/data?page=2&done=read-again"
    assert find_roles(page(client, f"/p/{project}/data?page=2").text)[3:] == ["query", "item", "score"]
    assert find_roles(page(client, f"/p/{project}/data").text) == find_roles(first)
    post(client, f"/p/{project}/data/13", **roles, alike="1", columns=columns)
    assert find_roles(page(client, f"/p/{project}/data").text) == ["query", "item", "score"] * 12
    assert len(client.get(f"/p/{project}/data.json").json()["files"]) == 14


def test_files_without_column_names_are_not_taken_for_alike(client):
    votes = "".join(f"q{n % 3} d{n % 5} d{n % 5 + 5} d{n % 5 + n % 2 * 5}\n" for n in range(40))
    qrels = "".join(f"q{n % 3} 0 d{n % 10} {n % 2}\n" for n in range(30))
    project, _ = upload(client, ("a.pref", votes.encode()), ("b.qrels", qrels.encode()))
    shown = page(client, f"/p/{project}/data").text
    assert shown.count("data-autosubmit") == 2
    assert "with these columns" not in shown
    assert '<option value="labels" selected>' in shown
