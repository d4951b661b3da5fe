"""The pages: every view in three forms, uploads of any bytes, no way out of the folders, no inline code."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import make
from podium.data.demo import demo
from podium.studio.pages.view_context import views
from serving import serving

VOTES = b"model_a,model_b,winner,judge\n" + b"".join(
    f"m{a},m{b},model_{'a' if (a * 7 + b * 3 + j) % 4 else 'b'},j{j}\n".encode()
    for a in range(4) for b in range(a + 1, 4) for j in range(6)
)  # fmt: skip
RUN = b"".join(
    f"q{q} Q0 d{d} {r} {9 - r} e{e}\n".encode()
    for q in range(3)
    for e in range(3)
    for r, d in enumerate([(e + k) % 4 for k in range(3)], 1)
)
QRELS = b"".join(f"q{q} 0 d{d} {d % 2}\n".encode() for q in range(3) for d in range(4))
LETOR = b"".join(
    f"{g} qid:{q} 1:{g + 1} 2:{3 - g} 3:{'NULL' if g else q + 1} #docid = d{g}\n".encode()
    for q in range(4)
    for g in range(3)
)
RATINGS = b"query,expert,item,score\n" + b"".join(
    f"q,{e},i{n},{(e + n) % 5}\n".encode() for e in range(4) for n in range(5)
)
PREFLIB = (
    b"# FILE NAME: x.soc\n# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: a\n"
    b"# ALTERNATIVE NAME 2: b\n2: 1,2\n1: 2,1\n"
)
ARENA = b'{"model_a": "x", "model_b": "y", "winner": "model_a"}\n{"model_a": "y", "model_b": "x", "winner": "tie"}\n'


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    (root / "runs").mkdir()
    (root / "runs" / "a.run").write_bytes(RUN)
    (root / "runs" / "qrels.txt").write_bytes(QRELS)
    (root / "runs" / "README.md").write_text("Some words that are no data.")
    (root / "votes.csv").write_bytes(VOTES)
    (root.parent / "secret.csv").write_bytes(VOTES)
    (root / "link.csv").symlink_to(root.parent / "secret.csv")
    with serving(tmp_path_factory.mktemp("studio"), roots=(root, root / "votes.csv")) as found:
        yield found


def mark(client, page="/"):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(page).text)[1]


def send(client, *files, **options):
    form = {"csrf": mark(client), **options}
    return client.post("/open/upload", data=form, files=[("files", f) for f in files])


def project(client, *files, **options):
    answer = send(client, *files, **options)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].split("/")[2]


def page(client, address):
    """A page, waited for as a browser would."""
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    return answer


@pytest.fixture(scope="module")
def votes(client):
    return project(client, ("votes.csv", VOTES))


@pytest.fixture(scope="module")
def judged(client):
    return project(client, ("a.run", RUN), ("qrels.txt", QRELS))


DEMO = ["overview", "fuse", "methods", "differences", "queries", "query", "why", "experts", "jobs"]


@pytest.mark.parametrize("view", DEMO)
def test_every_view_of_the_demo_in_three_forms(client, view):
    shown = page(client, f"/p/demo/{view}")
    assert shown.status_code == 200
    assert shown.headers["content-type"].startswith("text/html")
    json.loads(client.get(f"/p/demo/{view}.json").text)
    table = list(csv.reader(io.StringIO(client.get(f"/p/demo/{view}.csv").text)))
    assert len({len(row) for row in table}) == 1
    for where in re.findall(r'<img src="([^"]+)"', shown.text):
        drawn = client.get(where.replace("&amp;", "&"))
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert drawn.text.startswith("<svg xmlns")
        assert "style=" not in drawn.text


@pytest.mark.parametrize("view", [*DEMO, "leaderboard", "annotators"])
def test_pages_hold_no_code_and_no_styles_of_their_own(client, votes, view):
    where = f"/p/{votes}/{view}" if view in ("leaderboard", "annotators") else f"/p/demo/{view}"
    text = page(client, where).text
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", text)


@pytest.mark.parametrize("view", DEMO)
def test_pages_can_be_used_without_eyes_or_mouse(client, view):
    text = page(client, f"/p/demo/{view}").text
    assert '<html lang="en">' in text
    assert 'href="#main"' in text
    assert text.count("<h1>") == 1
    assert "<main" in text
    assert 'aria-current="page"' in text
    for control in re.findall(r"<(?:input|select)\b[^>]*>", text):
        if 'type="hidden"' in control or re.search(r'id="s\d+"', control):
            continue
        named = re.search(r'id="([^"]+)"', control)
        if named is not None and f'for="{named[1]}"' in text:
            continue
        before = text[: text.index(control)]
        assert before.rfind("<label") > before.rfind("</label>"), control
    for image in re.findall(r"<img [^>]*>", text):
        assert re.search(r'alt="[^"]{10,}"', image) or 'src="/static/icon.svg" alt=""' in image
    for number in re.findall(r'id="(s\d+)"', text):
        assert f'for="{number}"' in text


def test_the_numbers_are_the_librarys(client):
    data = demo()
    told = client.get("/p/demo/rank.json?q=q003&m=rrf&w:atlas-1=3&w:echo-1=0").json()
    weights = {e: 3.0 if e == "atlas-1" else 0.0 if e == "echo-1" else 1.0 for e in data.preferences.experts}
    own = make("rrf", weights=weights).aggregate(data.preferences)["q003"]
    assert [(r["item"], r["rank"], r["score"]) for r in told["rows"]] == [
        (r.item, r.rank, r.score) for r in own[:50]
    ]
    plain = make("rrf").aggregate(data.preferences)["q003"]
    assert {r["item"]: r["before"] for r in told["rows"]}.items() <= {r.item: r.rank for r in plain}.items()
    whole = list(csv.DictReader(io.StringIO(client.get("/p/demo/fuse.csv?m=mc4").text)))
    theirs = make("mc4").aggregate(data.preferences)
    assert [(r["query"], r["item"]) for r in whole] == [
        (q, i) for q in theirs.queries for i in theirs.ranking(q)
    ]


def test_two_methods_are_compared_with_each_other(client):
    from podium.evaluate import compare

    data = demo()
    told = client.get("/p/demo/differences.json?a=mc4&b=borda&metric=ndcg@10").json()
    both = {n: make(n).aggregate(data.preferences).with_ties("trec", single=True) for n in ("borda", "mc4")}
    theirs = compare(both, data.labels, "ndcg@10")
    assert told["pair"]["difference"] == pytest.approx(theirs.row("mc4", "ndcg@10").difference)
    assert (told["pair"]["better"], told["pair"]["worse"]) == ("mc4", "borda")
    rows = {r.query: r.difference for r in theirs.per_query("ndcg@10")}
    assert {r["query"]: r["difference"] for r in told["rows"]} == pytest.approx(rows)
    text = page(client, "/p/demo/differences?a=mc4&b=borda&metric=ndcg@10").text
    assert theirs.conclusion("ndcg@10") in text.replace("&lt;", "<")


def test_votes_have_a_leaderboard_and_what_to_ask(client, votes):
    text = page(client, f"/p/{votes}/leaderboard?top=1&count=3").text
    assert "What to compare next" in text
    told = client.get(f"/p/{votes}/leaderboard.json?count=3").json()
    assert {r["item"] for r in told["rows"]} == {"m0", "m1", "m2", "m3"}
    assert len(told["next"]) == 3
    assert 'href="/p/' + votes + '/annotators"' in text


def test_a_model_that_was_fitted_can_be_used_and_taken_away(client, judged):
    form = {"csrf": mark(client), "kind": "fit", "method": "weighted_borda"}
    wrong = client.post(f"/p/{judged}/jobs", data={**form, "csrf": "0" * 64})
    assert wrong.status_code == 403
    assert client.post(f"/p/{judged}/jobs", data={**form, "method": "crf"}).status_code == 303
    while client.get(f"/p/{judged}/jobs.json").json()["running"]:
        time.sleep(0.1)
    [job] = client.get(f"/p/{judged}/jobs.json").json()["jobs"]
    assert job["state"] == "done", job
    assert page(client, f"/p/{judged}/job?job={job['job']}").status_code == 200
    assert page(client, f"/p/demo/job?job={job['job']}").status_code == 404
    content = client.get(f"/p/{judged}/models/{job['model']}.podium")
    assert content.status_code == 200
    assert client.get(f"/p/demo/models/{job['model']}.podium").status_code == 404
    for view in ("fuse", "query", "why", "methods"):
        assert page(client, f"/p/{judged}/{view}?m=model:{job['model']}").status_code == 200, view
    assert "weights.svg" in page(client, f"/p/{judged}/experts").text


# -- ways in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        [("votes.csv", VOTES)],
        [("v.csv.gz", gzip.compress(VOTES, mtime=0))],
        [("a.run", RUN)],
        [("a.run", RUN), ("q.txt", QRELS)],
        [("l.txt", LETOR)],
        [("r.csv", RATINGS)],
        [("p.soc", PREFLIB)],
        [("a.jsonl", ARENA)],
        [("r.parquet", None)],
        [("c.json", None)],
        [("../../etc/passwd", RUN)],
        [("<script>alert(1)</script>.run", RUN)],
    ],
)
def test_every_kind_of_file_can_be_uploaded(client, files):
    found = project(client, *((name, content or SEEDS[name]) for name, content in files))
    for view in ("overview", "fuse", "methods", "queries", "query", "why", "experts"):
        shown = page(client, f"/p/{found}/{view}")
        assert shown.status_code == 200, (view, re.sub(r"<[^>]+>", " ", shown.text)[-500:])
        assert "<script>alert" not in shown.text


def test_options_of_reading_are_kept(client):
    bare = RATINGS.split(b"\n", 1)[1]
    guessed = send(client, ("bare.csv", bare))
    assert guessed.headers["location"].endswith("/data")
    assert page(client, guessed.headers["location"]).text.count('name="role') == 4
    found = project(
        client, ("bare.csv", bare), columns="query,expert,item,score", format="csv", kind="ratings"
    )
    assert page(client, f"/p/{found}/overview").status_code == 200
    assert send(client, ("r.csv", RATINGS), unlisted="sideways").status_code == 422
    assert send(client, ("r.csv", RATINGS), kind="poems").status_code == 422
    assert send(client, ("r.csv", RATINGS), format="poems").status_code == 422


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", b"", "empty"),
        ("x.run", b"\0\0\0\0", "binary"),
        ("x.zip", b"PK\x03\x04" + b"\0" * 50, "zip"),
        ("b.gz", gzip.compress(bytes(20_000_000), mtime=0), "decompress"),
        ("b.gz", gzip.compress(VOTES, mtime=0)[:50], "truncated"),
        ("p.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", "Parquet"),
        ("n.jsonl", b'{"a":' * 200_000, ""),
        ("l.run", b"q Q0 d 1 nan e\n", ""),
        ("l.run", b"q Q0 d 99999999999999999999999 1e999 e\n", ""),
    ],
)
def test_what_cannot_be_read_is_said_in_words(client, name, content, words):
    answer = send(client, (name, content))
    assert answer.status_code in (413, 422)
    assert 'role="alert"' in answer.text
    assert words in answer.text
    assert "Traceback" not in answer.text


def test_a_parquet_file_that_stands_for_too_much_is_refused(client):
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = io.BytesIO()
    rows = 30_000_000
    column = pa.array([0], pa.int8()).take(pa.array([0] * 1000, pa.int32()))
    table = pa.table(
        {c: pa.chunked_array([column] * (rows // 1000)) for c in ("query", "expert", "item", "score")}
    )
    pq.write_table(table, made, compression="zstd")
    assert len(made.getvalue()) < 2_000_000
    answer = send(client, ("big.parquet", made.getvalue()))
    assert answer.status_code == 413
    assert "decompresses to more than" in answer.text


def parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [("q", f"e{e}", f"i{n}", (e + n) % 5) for e in range(3) for n in range(5)]
    names = ("query", "expert", "item", "score")
    made = io.BytesIO()
    pq.write_table(pa.table({n: [r[k] for r in rows] for k, n in enumerate(names)}), made)
    return made.getvalue()


SEEDS = {
    "votes.csv": VOTES,
    "a.run": RUN,
    "q.txt": QRELS,
    "l.txt": LETOR,
    "r.csv": RATINGS,
    "p.soc": PREFLIB,
    "a.jsonl": ARENA,
    "c.json": b'{"models": ["a", "b", "c"], "X": [[0, 1], [1, 2]], "Y": [[3, 1, 0], [2, 2, 5]]}',
    "r.parquet": parquet(),
    "v.csv.gz": gzip.compress(VOTES, mtime=0),
}


@st.composite
def mutated(draw):
    name = draw(st.sampled_from(sorted(SEEDS)))
    content = bytearray(SEEDS[name])
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        what = draw(st.sampled_from(["cut", "insert", "replace", "double"]))
        some = draw(
            st.binary(min_size=1, max_size=8)
            | st.sampled_from(
                [b"nan", b"-1", b"1e308", b"\xff\xfe", b"\n", b",", b"\t", b'"', b"NULL", b"{", b":"]
            )
        )
        if what == "cut":
            del content[at : at + draw(st.integers(1, 60))]
        elif what == "insert":
            content[at:at] = some
        elif what == "replace":
            content[at : at + len(some)] = some
        else:
            content[at:at] = content[max(0, at - 40) : at]
    return name, bytes(content)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated() | st.tuples(st.sampled_from([*SEEDS, "x.parquet", "x.gz", ""]), st.binary(max_size=200)))
def test_no_bytes_bring_an_upload_down(client, file):
    answer = send(client, file)
    assert answer.status_code in (303, 413, 422)
    if answer.status_code == 303:
        where = answer.headers["location"]
        for view in ("overview", "query", "why", "fuse"):
            shown = page(client, where.replace("overview", view))
            assert shown.status_code in (200, 422), (view, file)
        client.post(where.replace("overview", "remove"), data={"csrf": mark(client)})
    else:
        assert "Traceback" not in answer.text


def test_files_on_the_server_below_its_roots(client, tmp_path_factory):
    listed = client.get("/files/0").text
    assert "runs/" in listed
    assert "votes.csv" in client.get("/files/1").text
    assert "a.run" in client.get("/files/0?at=runs").text
    form = {"csrf": mark(client), "root": "0"}
    opened = client.post("/open/path", data={**form, "at": "runs"})
    assert opened.status_code == 303
    shown = page(client, f"/p/{opened.headers['location'].split('/')[2]}/data")
    assert shown.status_code == 200
    assert "README.md was skipped" in shown.text
    assert client.post("/open/path", data={**form, "root": "1", "at": ""}).status_code == 303
    wrong = client.post("/open/path", data={**form, "at": "votes.csv", "format": "trec"})
    assert wrong.status_code == 422
    assert "votes.csv" in wrong.text
    assert str(tmp_path_factory.getbasetemp()) not in wrong.text  # where it lies is nobody's business


ASKED = {
    "duplicates": ("Duplicate items", "first", b"q Q0 a 1 3 x\nq Q0 a 2 2 x\nq Q0 b 3 1 x\n"),
    "encoding": ("Encoding", "latin-1", "q Q0 caf\xe9 1 3 x\nq Q0 b 2 1 x\n".encode("latin-1")),
    "missing": ("Missing values", "none", b"query,worker,item,rating\nq,x,a,-1\nq,x,b,2\n"),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_message_names_a_field_that_is_there(client, name):
    """What a message asks for can be entered in the form it came from, and following it works."""
    label, value, content = ASKED[name]
    file = ("x.csv" if name == "missing" else "x.run", content)
    answer = send(client, file, unlisted="unknown")
    if answer.status_code == 303:  # it was read, and a note says what to do
        text = page(client, answer.headers["location"]).text
    else:
        assert answer.status_code == 422
        text = answer.text
        assert f'name="{name}"' in text
        assert '<option value="unknown" selected>' in text  # what was entered is kept
        assert "choose the files again" in text
    assert f"\u201c{label}\u201d" in text
    assert f"{name}=" not in html.unescape(re.sub(r"<[^>]+>", " ", text))
    again = send(client, file, unlisted="unknown", **{name: value})
    assert again.status_code == 303, again.text
    assert f"\u201c{label}\u201d" not in page(client, again.headers["location"]).text


def test_runs_of_one_tag_are_told_apart_by_their_files(client):
    files = [(name, b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\n") for name in ("one.run", "two.run")]
    refused = page(client, send(client, *files).headers["location"])
    assert "Each file is an expert" in refused.text
    opened = project(client, *files, expert="file")
    assert client.get(f"/p/{opened}/overview.json").json()["facts"]["experts"] == "2"


def test_other_options_have_a_field_too(client):
    odd = ("odd.csv", b"frage,wer,was,platz\nq,x,a,1\nq,x,b,2\n")
    refused = send(client, odd, format="csv")
    assert "\u201cMore options\u201d: query=..." in refused.text
    named = "query=frage expert=wer item=was rank=platz"
    assert send(client, odd, format="csv", options=named).status_code == 303
    for wrong in ("query", "=x", "colour=red", "item='a", "rank=a rank=b"):
        answer = send(client, odd, format="csv", options=wrong)
        assert answer.status_code == 422
        assert wrong in html.unescape(answer.text)  # kept in the field


def test_the_form_of_a_folder_keeps_what_was_entered(client):
    form = {"csrf": mark(client), "root": "0", "at": "votes.csv", "format": "trec", "encoding": "utf-8"}
    answer = client.post("/open/path", data=form)
    assert answer.status_code == 422
    assert '<option value="trec" selected>' in answer.text
    assert 'name="encoding" value="utf-8"' in answer.text


def test_labels_in_another_encoding(client):
    run = "q1 Q0 caf\xe9 1 3 x\nq1 Q0 b 2 1 x\n".encode("latin-1")
    opened = project(client, ("a.run", run), encoding="latin-1")
    labels = [("files", ("qrels.txt", "q1 0 caf\xe9 1\n".encode("latin-1")))]
    form = {"csrf": mark(client)}
    refused = client.post(f"/p/{opened}/labels", data=form, files=labels)
    assert "\u201cEncoding\u201d: latin-1" in refused.text
    added = client.post(f"/p/{opened}/labels", data={**form, "encoding": "latin-1"}, files=labels)
    assert added.status_code == 303
    assert client.get(f"/p/{opened}/overview.json").json()["facts"]["labels"] == "1 on 1 queries"


def test_a_link_to_a_file_outside_discloses_nothing_of_it(tmp_path):
    """A folder opened whole says which files it leaves out and why, and that why once held a line of theirs."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.run").write_bytes(RUN)
    (tmp_path / "passwords.txt").write_text("admin hunter2\n")
    (root / "link.txt").symlink_to(tmp_path / "passwords.txt")
    with serving(tmp_path / "studio", roots=(root,)) as client:
        form = {"csrf": mark(client), "root": "0", "at": ""}
        opened = client.post("/open/path", data=form)
        assert opened.status_code == 303
        shown = page(client, f"/p/{opened.headers['location'].split('/')[2]}/data").text
        listed = client.get("/files/0").text
    assert "link.txt was skipped" in shown
    assert "hunter2" not in shown
    assert "link.txt" not in listed


@pytest.mark.parametrize(
    "at",
    [
        "../secret.csv",
        "..",
        "/etc/passwd",
        "link.csv",
        "runs/../../secret.csv",
        "a\0b",
        "x" * 5000,
        "%2e%2e/secret.csv",
    ],
)
def test_nothing_else_on_the_server(client, at):
    for number in ("0", "1", "7", "-1"):
        form = {"csrf": mark(client), "root": number, "at": at}
        assert client.post("/open/path", data=form).status_code == 422
        assert client.get(f"/files/{number}", params={"at": at}).status_code == 422


@pytest.mark.parametrize(
    "way",
    ["/open/upload", "/open/path", "/p/demo/jobs", "/p/demo/remove", "/p/demo/labels", "/p/demo/jobs/x/stop"],
)
def test_forms_of_others_are_refused(client, way):
    for data in ({}, {"csrf": "x"}, {"csrf": "é" * 10}):
        assert client.post(way, data=data).status_code == 403
    assert (
        client.post(way, data={"csrf": mark(client)}, headers={"origin": "http://evil.example"}).status_code
        == 403
    )
    assert client.post(
        way, content=b"--x\r\nbroken", headers={"content-type": "multipart/form-data; boundary=x"}
    ).status_code in (403, 422)


# -- the state in the address --------------------------------------------------------------------------------------


WILD = st.text(max_size=30) | st.sampled_from(
    ["0", "-1", "1e9", "nan", "model:", "model:x", "rrf(k=", "int:5", "{}", "%", "q001"]
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(views.all())),
    st.sampled_from(["", ".json", ".csv", ".xml", "/heatmap.svg"]),
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "q",
                    "m",
                    "item",
                    "over",
                    "metric",
                    "a",
                    "b",
                    "items",
                    "page",
                    "sort",
                    "find",
                    "top",
                    "count",
                    "w:e1",
                    "w:",
                    "job",
                    "plot",
                ]
            ),
            WILD,
        ),
        max_size=4,
    ),
)
def test_any_address_is_answered_in_words(client, judged, view, kind, state):
    answer = client.get(f"/p/{judged}/{view}{kind}", params=state)
    assert answer.status_code in (200, 404, 422), answer.text
    assert "Traceback" not in answer.text


def test_ids_that_look_alike_and_ids_that_are_code(client):
    evil = "=cmd|' /C calc'!A0"
    table = io.StringIO()
    out = csv.writer(table)
    out.writerow(["query", "expert", "item", "rank"])
    for query in ("<b>q</b>", "{{7*7}}", "a&b=c?d#e/f"):
        for expert in ("+e", "<i>e"):
            for rank, item in enumerate([evil, "@x", "-1", "{0}", "<img src=x onerror=alert(1)>"], 1):
                out.writerow([query, expert, item, rank])
    found = project(client, ("evil.csv", table.getvalue().encode()))
    text = page(client, f"/p/{found}/queries").text
    addresses = [a.replace("&amp;", "&") for a in re.findall(r'href="(/p/[^"]+/query\?[^"]+)"', text)]
    assert len(addresses) == 3
    for address in addresses:
        shown = page(client, address)
        assert shown.status_code == 200
        assert "<img src=x" not in shown.text
        for why in re.findall(r'href="(/p/[^"]+/why\?[^"]+)"', shown.text):
            assert page(client, why.replace("&amp;", "&")).status_code == 200
    for line in csv.DictReader(io.StringIO(client.get(f"/p/{found}/fuse.csv").text)):
        assert not line["item"].startswith(("=", "+", "-", "@"))
    assert (
        "49"
        not in page(client, f"/p/{found}/query?q=%7B%7B7*7%7D%7D").text.split("<h1>")[1].split("</h1>")[0]
    )


def test_a_project_can_be_removed(client):
    found = project(client, ("v.csv", VOTES))
    gone = client.post(f"/p/{found}/remove", data={"csrf": mark(client)})
    assert gone.headers["location"] == f"/?removed={found}"
    assert f'action="/p/{found}/restore"' in client.get(gone.headers["location"]).text
    assert found not in client.get("/").text
    assert client.get(f"/p/{found}/overview").status_code == 404
    back = client.post(f"/p/{found}/restore", data={"csrf": mark(client)})
    assert back.status_code == 303
    assert page(client, f"/p/{found}/overview").status_code == 200


def test_the_overview_says_how_unlisted_items_were_read(client):
    verdict = client.get("/p/demo/overview.json").json()["verdict"]
    assert "unlisted" in verdict[-1]
