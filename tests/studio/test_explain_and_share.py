"""A beside B with weights measured on all judged queries and kept as a model; everything that is shared."""

from __future__ import annotations

import contextlib
import html
import io
import re
import subprocess
import sys
import time

import pytest

from podium import formats, make
from podium.data.demo import demo
from podium.evaluate import evaluate
from serving import serving

RUN = b"".join(
    f"q{q} Q0 d{d} {r} {9 - r} e{e}\n".encode()
    for q in range(3)
    for e in range(3)
    for r, d in enumerate([(e + k) % 4 for k in range(3)], 1)
)
QRELS = b"".join(f"q{q} 0 d{d} {d % 2}\n".encode() for q in range(3) for d in range(4))
VOTES = (
    b"model_a,model_b,winner,judge\n" + b"x,y,model_a,j1\ny,z,model_b,j2\nx,z,model_a,j3\nz,y,tie,j1\n" * 5
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as client:
        yield client


def find_csrf(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]


def upload(client, *files):
    sent = client.post("/open/upload", data={"csrf": find_csrf(client)}, files=[("files", f) for f in files])
    assert sent.status_code == 303, sent.text
    return re.search(r"/p/([0-9a-f]+)", sent.headers["location"])[1]


def get_page(client, address):
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    assert answer.status_code == 200, answer.text
    return answer.text


def measure_by_hand(factors):
    data = demo()
    weights = dict.fromkeys(data.preferences.experts.tolist(), 1.0) | factors
    result = make("rrf", weights=weights).aggregate(data.preferences).with_ties("trec", single=True)
    return float(evaluate(result, data.labels, ["ndcg@10"])["ndcg@10"].mean())


def test_weights_are_measured_on_all_judged_queries(client):
    factors = {"echo-2": 0.0, "atlas-1": 2.5}
    state = {"m": "rrf", **{f"w:{e}": str(f) for e, f in factors.items()}}
    effect = client.get("/p/demo/effect.json", params=state).json()
    assert effect["queries"] == 200
    assert effect["before"] == pytest.approx(measure_by_hand({}))
    assert effect["now"] == pytest.approx(measure_by_hand(factors))
    assert effect["low"] <= effect["difference"] <= effect["high"]
    same = client.get("/p/demo/effect.json", params={"m": "rrf"}).json()
    assert same["now"] == same["before"]
    assert "as before" in same["text"]


def test_kept_weights_are_a_model(client):
    fields = {"csrf": find_csrf(client), "m": "rrf", "w:echo-2": "0", "w:atlas-1": "2.5", "name": "Mine"}
    sent = client.post("/p/demo/weights", data=fields)
    model = re.search(r"model%3A([0-9a-f]+)", sent.headers["location"])[1]
    assert "Mine" in get_page(client, sent.headers["location"])
    kept = client.get("/p/demo/effect.json", params={"m": f"model:{model}"}).json()
    assert kept["before"] == pytest.approx(measure_by_hand({"echo-2": 0.0, "atlas-1": 2.5}))
    assert client.get(f"/p/demo/models/{model}.podium").status_code == 200
    for wrong in ({"m": "rrf"}, {"m": "rrf", "w:nobody": "2"}, {"m": "mc4", "w:echo-2": "x"}):
        assert client.post("/p/demo/weights", data={"csrf": find_csrf(client), **wrong}).status_code == 422
    assert client.post("/p/demo/weights", data={"m": "rrf", "w:echo-2": "0"}).status_code == 403


def test_two_items_side_by_side_by_links_alone(client):
    page = get_page(client, "/p/demo/explain?m=rrf&q=q003")
    [title] = re.findall(r"<h1>([^<]+)</h1>", page)
    first, second = re.fullmatch(r"Why (\S+) is above (\S+)", title).groups()
    assert [row["item"] for row in client.get("/p/demo/explain.json?m=rrf&q=q003").json()["ranking"][:2]] == [
        first,
        second,
    ]
    link = re.findall(r'href="([^"]+)" aria-label="\S+ as B"', page)[4].replace("&amp;", "&")
    other = get_page(client, link)
    assert f"Why {first} is above " in other
    assert f"above {second}<" not in other
    document = client.get(link.replace("/explain?", "/explain.json?")).json()
    gap = sum(voice["value"] for voice in document["experts"])
    assert gap == pytest.approx(document["items"][0]["score"] - document["items"][1]["score"])


def test_texts_stand_beside_the_items(client):
    project = upload(client, ("a.run", RUN), ("qrels.txt", QRELS))
    texts = b"id,title,text,url\nd0,Zero,The text of zero,javascript:alert(1)\nd1,One,<b>bold</b>,https://example.org/1\n"
    fields = {"csrf": find_csrf(client), "query": "q1"}
    started = client.post(f"/p/{project}/collect/start", data=fields, files=[("files", ("t.csv", texts))])
    assert started.status_code == 303, started.text
    page = get_page(client, f"/p/{project}/explain?q=q1&item=d0&over=d1")
    assert "The text of zero" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "javascript:" not in page
    assert 'href="https://example.org/1"' in page


@pytest.mark.parametrize("suffix", ["run", "csv", "jsonl", "parquet"])
def test_rankings_read_back_as_they_are(client, tmp_path, suffix):
    project = upload(client, ("a.run", RUN), ("qrels.txt", QRELS))
    (tmp_path / f"ranking.{suffix}").write_bytes(client.get(f"/p/{project}/ranking.{suffix}?m=borda").content)
    read = formats.read(tmp_path / f"ranking.{suffix}").preferences
    (tmp_path / "a.run").write_bytes(RUN)
    own = make("borda").aggregate(formats.read(tmp_path / "a.run").preferences)
    for query in own.queries.tolist():
        one = read.select([query])
        items = one.index.items
        order = [items[slot] for slot in one.lists.item[one.lists.rank.argsort(kind="stable")].tolist()]
        assert order == own.ranking(query)


def test_reports_and_figures_are_files(client):
    while 'http-equiv="refresh"' in (page := client.get("/p/demo/report.html?m=rrf&m=borda")).text:
        time.sleep(0.1)
    assert page.headers["content-disposition"] == 'attachment; filename="podium-report.html"'
    assert "<svg" in page.text
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page.text)
    picture = client.get("/p/demo/methods/curves.png")
    assert picture.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert client.get("/p/demo/methods/nothing.png").status_code == 404
    assert client.get("/p/demo/ranking.exe").status_code == 404
    shared = get_page(client, "/p/demo/share")
    for link in (
        "/p/demo/ranking.run?m=",
        "/p/demo/report.html?m=",
        "/p/demo/methods/curves.png",
        "/p/demo/methods.json",
    ):
        assert link in shared


@pytest.mark.parametrize("files", [[("a.run", RUN), ("qrels.txt", QRELS)], [("votes.csv", VOTES)], []])
def test_the_snippet_repeats_the_view(client, tmp_path, files):
    project = upload(client, *files) if files else "demo"
    for name, content in files:
        (tmp_path / name).write_bytes(content)
    code = client.get(f"/p/{project}/share.json").json()["code"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Consensus" in done.stdout
    if not files:
        result = make(re.search(r"make\('(.+)'\)", code)[1]).aggregate(demo().preferences)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            print(evaluate(result, demo().labels, ["ndcg@10", "map"]))
        assert shown.getvalue() in done.stdout


def test_the_snippet_of_collected_votes_reads_their_download(client, tmp_path):
    sent = client.post("/collect", data={"csrf": find_csrf(client), "items": "ant\nbee\ncat"})
    project = sent.headers["location"].split("/")[2]
    votes = [{"first": a, "second": b, "answer": "first"} for a, b in ("12", "23", "13", "12")]
    client.post(f"/v1/projects/{project}/votes", json={"judge": "bot", "votes": votes})
    (tmp_path / "podium-cleaned.csv").write_bytes(client.get(f"/p/{project}/cleaned.csv").content)
    code = client.get(f"/p/{project}/share.json").json()["code"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "4 votes" in done.stdout


def run_code_of(client, project, folder, **state):
    """What the code of a page prints, and shows in a notebook; `state` is that of its address."""
    notebook = "display = lambda shown: print(shown._repr_html_())\n"
    code = notebook + client.get(f"/p/{project}/share.json", params=state).json()["code"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout


def test_every_page_leads_to_code_that_repeats_it(client, tmp_path):
    """The code of a page is run in a process of its own and prints the figures of the page."""
    page = get_page(client, "/p/demo/explain?q=q003&m=rrf&w:echo-1=0&t1.sort=2")
    link = re.search(r'data-code href="(/p/demo/share\?[^"#]+)#code"', page)[1].replace("&amp;", "&")
    assert "view=explain" in link
    assert "sort" not in link
    state = {"q": "q003", "m": "rrf", "w:echo-1": "0"}
    shown = client.get("/p/demo/explain.json", params=state).json()
    printed = run_code_of(client, "demo", tmp_path, view="explain", **state)
    assert shown["text"]
    for line in shown["text"]:
        assert html.escape(line) in printed
    assert "weights" in client.get(link.replace("share?", "share.json?")).json()["code"]
    means = client.get("/p/demo/methods.json", params={"m": ["rrf", "borda"]}).json()["rows"]
    printed = run_code_of(client, "demo", tmp_path, view="methods", m=["rrf", "borda"])
    for row in means:
        if row["name"] in ("rrf", "borda"):
            assert f"{row['mean']:.4f}" in printed
    assert "q003-d003" in run_code_of(client, "demo", tmp_path, view="query", q="q003")
    assert "atlas-1" in run_code_of(client, "demo", tmp_path, view="experts")
    config = client.get("/p/demo/deploy.json", params={"m": "rrf", "to": "elasticsearch"}).json()["config"]
    assert config in run_code_of(client, "demo", tmp_path, view="deploy", m="rrf", to="elasticsearch")


def test_the_code_of_the_pages_of_votes(client, tmp_path):
    lines = ["model_a,model_b,winner,judge,length_a,length_b"]
    lines += [
        f"m{n % 3},m{(n + 1 + n % 2) % 3},model_{'ab'[n % 5 < 3]},j{n % 4},{n % 7},{n % 11}"
        for n in range(160)
    ]
    (tmp_path / "arena.csv").write_text("\n".join(lines))
    project = upload(client, ("arena.csv", "\n".join(lines).encode()))
    state = {"view": "leaderboard", "control": "length", "anytime": "1", "trust": "1"}
    board = client.get(f"/p/{project}/leaderboard.json", params=state).json()
    printed = run_code_of(client, project, tmp_path, **state)
    for row in board["rows"]:
        assert f"{row['score']:.0f}" in printed
    for row in board["contextual"]["rows"]:
        assert f"{row['score']:.5g}" in printed
    crowd = client.get(f"/p/{project}/annotators.json").json()["rows"]
    printed = run_code_of(client, project, tmp_path, view="annotators")
    assert all(row["annotator"] in printed and f"{row['quality']:.2f}" in printed for row in crowd)
    assert "j" in run_code_of(client, project, tmp_path, view="judges", gold="judge:j1")
    run_code_of(client, project, tmp_path, view="worker", who="j1")
