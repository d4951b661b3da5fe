"""Labels that come later, queries that are too long for some methods, and uploads that come all at once."""

from __future__ import annotations

import json
import re
import threading
import time

import pytest

from podium.core.errors import InputError
from podium.data.index import ItemIndex
from podium.studio.loading import open_input, open_labels
from podium.studio.pages import projects
from podium.studio.settings import Limits
from podium.studio.store import Store
from serving import serving

RUN = b"".join(
    f"q{q} Q0 d{(e + k) % 4} {k + 1} {9 - k} e{e}\n".encode()
    for q in range(3)
    for e in range(3)
    for k in range(3)
)
TABLE = b"".join(f"q{q},d{d},{d}\n".encode() for q in range(3) for d in range(4))
QRELS = b"".join(f"q{q} 0 d{d} {d % 2}\n".encode() for q in range(3) for d in range(4))
SMALL = Limits(query_items=5)


@pytest.fixture
def client(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.run").write_bytes(RUN)
    with serving(tmp_path / "studio", roots=(tmp_path / "runs",)) as found:
        yield found


def mark(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]


def opened(client, *files, **options):
    given = [("files", f) for f in files]
    answer = client.post("/open/upload", data={"csrf": mark(client), **options}, files=given)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].split("/")[2]


def add(client, project, *files, **fields):
    given = [("files", f) for f in files]
    return client.post(f"/p/{project}/labels", data={"csrf": mark(client), **fields}, files=given)


def page(client, address):
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.02)
    return answer


def facts(client, project):
    return client.get(f"/p/{project}/overview.json").json()["facts"]


# -- labels ---------------------------------------------------------------------------------------------------------


def test_labels_can_be_added_to_an_upload_and_to_files_of_the_server(client):
    there = client.post("/open/path", data={"csrf": mark(client), "root": "0", "at": ""})
    for project in (opened(client, ("a.run", RUN)), there.headers["location"].split("/")[2]):
        assert facts(client, project)["labels"] == "none"
        assert f'action="/p/{project}/labels"' in page(client, f"/p/{project}/jobs").text
        assert f'action="/p/{project}/labels"' in page(client, f"/p/{project}/data").text
        assert client.get(f"/p/{project}/differences.json").status_code == 422
        answer = add(client, project, ("qrels.txt", QRELS))
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/p/{project}/data?done=labels-added",
        )
        assert facts(client, project)["labels"] == "12 on 3 queries"
        both = opened(client, ("a.run", RUN), ("qrels.txt", QRELS))
        for view in ("differences.json", "methods.json"):
            assert client.get(f"/p/{project}/{view}").json() == client.get(f"/p/{both}/{view}").json()
        assert "Start tuning" in page(client, f"/p/{project}/jobs").text


def test_labels_are_read_by_themselves_whatever_the_options_of_the_project(client):
    project = opened(client, ("t.csv", TABLE), format="csv", columns="query,item,score", kind="lists")
    assert add(client, project, ("qrels.txt", QRELS)).status_code == 303
    assert facts(client, project)["labels"] == "12 on 3 queries"


def test_labels_are_kept_and_go_with_their_project(tmp_path):
    with serving(tmp_path) as client:
        project = opened(client, ("a.run", RUN))
        assert add(client, project, ("one", QRELS[:40]), ("two", QRELS[40:])).status_code == 303
    with serving(tmp_path) as client:
        assert facts(client, project)["labels"] == "12 on 3 queries"
        files = [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()]
        assert len(files) == 3
        assert client.post(f"/p/{project}/remove", data={"csrf": mark(client)}).status_code == 303
        assert len([p for p in files if p.exists()]) == 3  # it can still be restored
        client.app.state.store.remove_project(project)
        assert not [p for p in files if p.exists()]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([("b.run", RUN)], "contains no labels"),
        ([("qrels.txt", QRELS.replace(b"q", b"Q"))], "the labels are for other queries"),
        (
            [("qrels.txt", QRELS.replace(b"d", b"D"))],
            "the labels are for other items: for query &#39;q0&#39; they have",
        ),
        ([("qrels.txt", b"q0 0 d9 1\nq9 0 d1 1\n")], "the labels are for other items"),
        ([("qrels.txt", b"q0 0 d0 1\nq0 0 d1 1e999\n")], "qrels.txt:2: the grade is"),
        ([("qrels.txt", b"\0\1\2")], "binary"),
        ([("x.json", b"[" * 100_000)], ""),
        ([], "no file; choose"),
    ],
)
def test_what_is_no_label_is_refused_and_nothing_is_kept(client, files, words):
    project = opened(client, ("a.run", RUN))
    answer = add(client, project, *files)
    assert answer.status_code == 422
    assert words in answer.text
    assert facts(client, project)["labels"] == "none"
    assert len(client.app.state.store.project(project).files) == 1


def test_labels_are_not_added_twice_nor_to_the_demo_nor_to_nothing(client):
    project = opened(client, ("a.run", RUN))
    assert add(client, project, ("qrels.txt", QRELS)).status_code == 303
    again = add(client, project, ("other.txt", QRELS))
    assert again.status_code == 422
    assert facts(client, project)["labels"] == "12 on 3 queries"
    assert add(client, "demo", ("qrels.txt", QRELS)).status_code == 422
    assert add(client, "nothing", ("qrels.txt", QRELS)).status_code == 404
    assert client.post(f"/p/{project}/labels", files=[("files", ("q", QRELS))]).status_code == 403
    cross = {"origin": "http://evil.example"}
    data = {"csrf": mark(client)}
    assert client.post(f"/p/{project}/labels", data=data, headers=cross).status_code == 403


def test_added_labels_are_removed_and_others_take_their_place(client):
    project = opened(client, ("a.run", RUN))
    remove, store = f"/p/{project}/labels/remove", client.app.state.store
    assert client.post(remove, data={"csrf": mark(client)}).status_code == 422
    assert remove not in page(client, f"/p/{project}/data").text
    wrong = QRELS.replace(b" 1\n", b" 2\n").replace(b" 0\n", b" 1\n")
    assert add(client, project, ("one.txt", wrong[:60]), ("two.txt", wrong[60:])).status_code == 303
    for view in ("data", "jobs"):
        assert f'action="{remove}"' in page(client, f"/p/{project}/{view}").text
    before = client.get(f"/p/{project}/methods.json").json()
    assert client.post(remove, data={}).status_code == 403
    assert (
        client.post(remove, data={"csrf": mark(client)}, headers={"origin": "http://x.example"}).status_code
        == 403
    )
    answer = client.post(remove, data={"csrf": mark(client)})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/p/{project}/data?done=labels-removed")
    assert facts(client, project)["labels"] == "none"
    assert len([p for p in (store.folder / "blobs").rglob("*") if p.is_file()]) == 1
    assert add(client, project, ("one.txt", QRELS[:60]), ("two.txt", QRELS[60:])).status_code == 303
    both = opened(client, ("a.run", RUN), ("qrels.txt", QRELS))
    now = client.get(f"/p/{project}/methods.json").json()
    assert now == client.get(f"/p/{both}/methods.json").json() != before
    for other in ("demo", both):
        assert client.post(f"/p/{other}/labels/remove", data={"csrf": mark(client)}).status_code == 422
    assert client.post("/p/nothing/labels/remove", data={"csrf": mark(client)}).status_code == 404


def test_labels_from_before_that_match_nothing_can_be_removed(client):
    project, store = opened(client, ("a.run", RUN)), client.app.state.store
    store.add_labels(project, [("q", QRELS.replace(b"d", b"D"))], [])
    assert "Remove added labels" in page(client, f"/p/{project}/data").text


CSV = b"item,query,grade\nd7,q0,1\nd1,q1,2\nd0,q1,1\n"


@pytest.mark.parametrize(
    ("there", "files", "words"),
    [
        (QRELS, [("more", b"q7 0 d1 1\nq0 0 d9 1\nq2 0 d3 1\nq0 0 d0 1\n")], "more:3: item 'd3' is labeled twice"),
        (QRELS, [("more", b"q7 0 d1 1\n"), ("t.csv", CSV)], "t.csv:3: item 'd1' is labeled twice for query 'q1'"),
        (QRELS, [("one", b"q1 0 d1 1\n")], "one:1: item 'd1' is labeled twice"),
        (None, [("a", QRELS), ("b", b"q7 0 d1 1\nq1 0 d1 1\n")], "b:2: item 'd1' is labeled twice"),
        (None, [("a", QRELS), ("t.csv", CSV)], "t.csv:3: item 'd1' is labeled twice for query 'q1': it"),
        (QRELS, [("x.json", b'[{"query":"q7","item":"d1","grade":1},\n{"query":"q1","item":"d1","grade":1}\n]')],
         "x.json: item 'd1' is labeled twice"),
    ],
)  # fmt: skip
def test_an_item_that_is_labeled_twice_is_named_by_file_and_line(there, files, words):
    data = open_input([("a.run", RUN), *([] if there is None else [("first", there)])])
    with pytest.raises(InputError, match=f"^{re.escape(words)}"):
        open_labels(data, files)


def test_names_of_label_files_are_no_paths(client, tmp_path):
    project = opened(client, ("a.run", RUN))
    assert add(client, project, ("../../../etc/<b>qrels", QRELS)).status_code == 303
    assert client.app.state.store.project(project).files[-1].name == "<b>qrels"
    assert "<b>qrels" not in page(client, f"/p/{project}/data").text


# -- long queries ---------------------------------------------------------------------------------------------------


def test_methods_that_compare_all_pairs_are_refused_on_long_queries(tmp_path):
    run = b"".join(
        f"q Q0 d{(e + k) % 9} {k + 1} {9 * e - k} e{e}\n".encode() for e in range(3) for k in range(9)
    )
    with serving(tmp_path, limits=SMALL) as client:
        project = opened(client, ("a.run", run))
        body = {"rankings": {"q": {"e": [f"d{k}" for k in range(9)]}}, "method": "mc4"}
        service = client.post("/v1/aggregate", json=body)
        assert service.status_code == 413
        for address in ("fuse.json?m=mc4", "why.json?m=mc4", "query.json?m=mc4", "methods.json?m=mc4"):
            answer = client.get(f"/p/{project}/{address}")
            assert answer.status_code == 413, address
            assert answer.json()["detail"] == "; ".join(service.json()[k] for k in ("detail", "remedy"))
        assert page(client, f"/p/{project}/fuse?m=mc4").status_code == 413
        for method in ("combmnz", "isr", "mean_rank", "median_rank"):
            assert client.get(f"/p/{project}/fuse.json?m={method}").status_code == 200, method
        for view in ("overview", "fuse", "methods", "queries", "query", "why", "experts", "jobs"):
            assert page(client, f"/p/{project}/{view}").status_code == 200, view
        found = client.get(f"/p/{project}/methods.json").json()
        assert found["methods"] == ["quality_weighted", "rrf", "borda", "combmnz"]
        told = client.get(f"/p/{project}/overview.json").json()["findings"]
        assert any("mc4 is left out: a query has 9 items" in f["text"] for f in told)


def test_a_query_with_very_many_items_is_shown_without_looking_for_each(tmp_path, monkeypatch):
    size = 12_000
    run = b"".join(
        f"q Q0 d{(e + k) % size} {k + 1} {size - k} e{e}\n".encode() for e in range(3) for k in range(size)
    )
    looked = []
    find = ItemIndex.slot
    monkeypatch.setattr(ItemIndex, "slot", lambda *given: looked.append(given) or find(*given))
    with serving(tmp_path) as client:
        project = opened(client, ("a.run", run))
        assert page(client, f"/p/{project}/query?q=q").status_code == 200
        rows = client.get(f"/p/{project}/query.json?q=q&m=rrf").json()["rows"]
    assert len(rows) == size
    assert not looked
    for row in (rows[0], rows[5_000], rows[-1]):
        number = int(row["item"][1:])
        assert row["ranks"] == {f"e{e}": (number - e) % size + 1 for e in range(3)}


def test_votes_on_too_many_items_are_refused_in_words(tmp_path):
    votes = [
        {"winner": f"m{a}", "loser": f"m{b}", "judge": j}
        for j in range(3)
        for a in range(8)
        for b in range(a)
    ]
    with serving(tmp_path, limits=SMALL) as client:
        project = opened(client, ("votes.json", json.dumps(votes).encode()))
        assert page(client, f"/p/{project}/overview").status_code == 200
        assert client.get(f"/p/{project}/methods.json").json()["methods"] == [
            "crowd_bt",
            "net_votes",
            "dawid_skene",
        ]
        for view in ("leaderboard", "annotators", "fuse?m=copeland"):
            answer = page(client, f"/p/{project}/{view}")
            assert answer.status_code == 413
            assert "a query has 8 items" in answer.text


def test_ratings_of_a_crowd_on_too_many_items_are_shown_without_annotators(tmp_path):
    rows = [{"rater": e, "item": f"i{n}", "score": (e * n) % 5} for e in range(4) for n in range(9)]
    with serving(tmp_path, limits=SMALL) as client:
        project = opened(client, ("ratings.json", json.dumps(rows).encode()))
        assert page(client, f"/p/{project}/overview").status_code == 200
        told = client.get(f"/p/{project}/overview.json").json()["findings"]
        assert any("annotators is left out: a query has 9 items" in f["text"] for f in told)
        answer = page(client, f"/p/{project}/annotators")
        assert answer.status_code == 413
        assert "a query has 9 items" in answer.text


# -- many uploads ---------------------------------------------------------------------------------------------------


def test_uploads_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    free, begun, real = threading.Event(), threading.Semaphore(0), projects.open_upload

    def slow(*given):
        begun.release()
        free.wait(20)
        return real(*given)

    monkeypatch.setattr(projects, "open_upload", slow)
    with serving(tmp_path, limits=Limits(uploads=1, seconds=0.3)) as client:
        csrf, answers = mark(client), []

        def send(address="/open/upload"):
            return client.post(address, data={"csrf": csrf}, files=[("files", ("a.run", RUN))])

        first = threading.Thread(target=lambda: answers.append(send()))
        first.start()
        assert begun.acquire(timeout=20)
        busy = send()
        assert busy.status_code == 503
        assert int(busy.headers["retry-after"]) > 0
        assert "1 upload was being read" in busy.text
        assert "try again later" in busy.text
        assert send("/p/demo/labels").status_code == 503
        assert (
            client.post("/p/demo/remove", data={"csrf": csrf}).status_code == 422
        )  # holds no file, and no place
        free.set()
        first.join(20)
        assert [a.status_code for a in answers] == [303]
        assert send().status_code == 303


def test_a_failed_upload_gives_its_place_back(tmp_path):
    with serving(tmp_path, limits=Limits(uploads=1, seconds=0.3)) as client:
        csrf = mark(client)
        for content in (b"\0", b"?", b"", RUN):
            answer = client.post("/open/upload", data={"csrf": csrf}, files=[("files", ("a.run", content))])
            assert answer.status_code == (303 if content == RUN else 422)


def test_a_store_refuses_the_same_labels_at_once(tmp_path):
    from podium.core.errors import ParameterError

    store = Store(tmp_path)
    project = store.add_upload("one", [("a.run", RUN)])
    store.add_labels(project, [("q", QRELS)], [])
    [known] = store.project(project).options["labels"]
    with pytest.raises(ParameterError, match="already"):
        store.add_labels(project, [("q", QRELS)], [known])
    with pytest.raises(ParameterError, match="in the meantime"):
        store.add_labels(project, [("r", QRELS[:10])], [])
    assert [f.name for f in store.project(project).files] == ["a.run", "q"]
    store.close()
