"""Computations in processes: canceled, fair between users; a full disk; two servers on one folder."""

import contextlib
import errno
import http.client
import json
import sqlite3
import threading
import time

import pytest

from podium.studio.database import Database, DiskFull
from podium.studio.job_kinds import queue_job
from podium.studio.job_worker import run_jobs
from podium.studio.security import RequestRefused
from podium.studio.server import listen
from podium.studio.settings import Limits, ServerSettings
from podium.studio.store import Store
from podium.studio.telemetry import RequestMetrics
from podium.studio.view_processes import TaskCanceled, ViewProcesses
from podium.studio.view_queue import FairQueue, ViewTask
from serving import serving, started


def make_task(user, number=0, seconds=60.0):
    return ViewTask((user, number), user, {"scope": {}, "body": b""}, seconds)


# -- the queue


def test_users_take_turns():
    queue = FairQueue(4, 100)
    for number in range(3):
        queue.put(make_task("greedy", number))
    queue.put(make_task("other"))
    order = []
    for _ in range(4):
        task = queue.take()
        order.append(task.user)
        queue.release(task)
    assert order == ["greedy", "other", "greedy", "greedy"]


def test_one_user_never_holds_all_processes():
    queue = FairQueue(2, 100)
    for number in range(3):
        queue.put(make_task("greedy", number))
    first = queue.take()
    queue.put(make_task("other"))
    assert queue.take().user == "other"
    queue.release(first)
    assert queue.take().user == "greedy"


def test_the_queue_is_bounded_in_all_and_by_user():
    queue = FairQueue(2, 4)
    for number in range(2):
        queue.put(make_task("a", number))
    with pytest.raises(RequestRefused, match="already waiting"):
        queue.put(make_task("a", 2))
    for number in range(2):
        queue.put(make_task("b", number))
    with pytest.raises(RequestRefused):
        queue.put(make_task("c"))


# -- processes


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    settings = ServerSettings(tmp_path_factory.mktemp("studio"), processes=2)
    pool = ViewProcesses(settings, RequestMetrics())
    pool.start()
    yield pool
    pool.stop()


def run(processes, path, seconds=60.0, user="ann"):
    from podium.studio.token_store import User

    scope = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
             "podium.user": User(user, "editor"), "podium.request_id": "1"}  # fmt: skip
    key = object()
    task = processes.submit(key, lambda: ViewTask(key, user, {"scope": scope, "body": b""}, seconds))
    task.wanted = float("inf")  # as if a request waited
    return task


def test_a_view_is_computed_in_a_process(processes):
    outcome = run(processes, "/p/demo/query.json").outcome.result(120)
    assert outcome.status == 200
    assert json.loads(outcome.body)


def test_a_computation_that_takes_too_long_is_killed_and_the_next_one_works(processes):
    with pytest.raises(TaskCanceled, match="longer than"):
        run(processes, "/p/demo/methods.json", 0.3).outcome.result(120)
    assert run(processes, "/p/none/overview.json").outcome.result(120).status == 404
    assert processes.is_healthy


def test_a_computation_that_nobody_wants_is_given_up(processes):
    task = run(processes, "/p/demo/methods.json")
    task.wanted = float("-inf")
    with pytest.raises(TaskCanceled, match="nobody waits"):
        task.outcome.result(120)
    again = processes.submit(task.key, lambda: ViewTask(task.key, task.user, task.request, 60.0))
    again.wanted = float("inf")
    assert again.outcome.result(120).status == 200


DOWNLOADS = [
    "/p/demo/ranking.run?m=borda",
    "/p/demo/cleaned.csv",
    "/p/demo/report.html?m=borda",
    "/p/demo/methods/curves.png",
    "/v1/projects/demo/ranking.csv?m=borda",
    "/v1/projects/demo/cleaned.jsonl",
    "/v1/projects/demo/report.html?m=borda",
    "/v1/projects/demo/texts",
    "/v1/projects/demo/views/query",
]


def test_the_server_itself_computes_no_download(tmp_path):
    """It holds no data: the processes read them, and can be killed while they do."""
    with serving(tmp_path / "one", processes=1) as client, serving(tmp_path / "two") as plain:
        for path in DOWNLOADS:
            answer, own = client.get(path), plain.get(path)
            assert answer.status_code == own.status_code == 200, (path, answer.text[:500])
            assert answer.headers["content-type"] == own.headers["content-type"]
            assert answer.headers.get("content-disposition") == own.headers.get("content-disposition")
            assert answer.content == own.content or "report" in path
        assert client.get("/v1/projects/demo/ranking.nosuch").json()["status"] == 404
        assert client.app.state.workspace.count_cached_bytes() == 0
        assert plain.app.state.workspace.count_cached_bytes() > 0


def test_a_download_that_takes_too_long_is_killed(tmp_path):
    with serving(tmp_path, processes=1, limits=Limits(view_seconds=0.2, seconds=60)) as client:
        for path in (
            "/p/demo/report.html",
            "/v1/projects/demo/report.html",
            "/v1/projects/demo/views/methods",
        ):
            answer = client.get(path)
            assert answer.status_code == 504, path
            assert "longer than 0.2 seconds" in answer.text
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_download_that_is_not_ready_is_asked_for_again(tmp_path):
    with serving(tmp_path, processes=1, limits=Limits(seconds=0.2)) as client:
        for path in ("/p/demo/report.html", "/v1/projects/demo/report.html"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        page = client.get("/p/demo/report.html", headers={"accept": "text/html"})  # a browser
        assert 'http-equiv="refresh"' in page.text


# -- whole servers


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_a_page_shows_progress_until_a_process_has_it(tmp_path):
    with started(tmp_path, "--quiet") as (_, about):
        port = int(about["address"].rpartition(":")[2])
        status, page = ask(port, "GET", "/p/demo/methods")
        assert status == 200
        assert b'http-equiv="refresh"' in page
        status, answer = ask(
            port, "POST", "/v1/aggregate", json.dumps({"rankings": {"q": {"e": ["a"]}}, "method": "borda"}),
            {"content-type": "application/json"},
        )  # fmt: skip
        assert status == 200, answer
        assert b"podium_processes 2.0" in ask(port, "GET", "/metrics")[1]


def test_two_servers_share_a_folder(tmp_path):
    token = Store(tmp_path).add_token("ann", "editor")
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with started(tmp_path, "--quiet") as (_, one), started(tmp_path, "--quiet") as (_, two):
        first, second = (int(about["address"].rpartition(":")[2]) for about in (one, two))
        status, answer = ask(
            first, "POST", "/v1/projects/demo/jobs", '{"kind": "fit", "method": "rrf"}', headers
        )
        assert status == 201, answer
        job = json.loads(answer)["id"]
        for _ in range(600):
            status, answer = ask(second, "GET", f"/v1/projects/demo/jobs/{job}", None, headers)
            if json.loads(answer)["state"] not in ("queued", "running"):
                break
            time.sleep(0.1)
        assert json.loads(answer)["state"] == "done", answer


# -- a full disk


def test_a_full_disk_fails_writes_with_words_and_leaves_reads(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "podium.studio")
    with serving(tmp_path) as client:
        before = sorted(path for path in tmp_path.rglob("*") if "blobs" in path.parts and path.is_file())

        def fail(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("podium.studio.store.os.fsync", fail)
        files = {"files": ("a.run", b"q1 Q0 d1 1 2.5 bm25\n")}
        answer = client.post("/v1/projects", files=files)
        assert answer.status_code == 507
        assert "disk" in answer.json()["detail"]
        assert "full" in caplog.text
        after = sorted(path for path in tmp_path.rglob("*") if "blobs" in path.parts and path.is_file())
        assert after == before
        assert client.get("/v1/projects").status_code == 200
        assert client.get("/p/demo/query.json").status_code == 200


def test_the_index_of_the_log_stays_allocated_so_that_a_full_disk_can_be_read(tmp_path):
    store = Store(tmp_path)
    store.add_upload("x", [("a.run", b"content")])
    assert (tmp_path / "studio.sqlite-shm").stat().st_size >= 32_768
    store.close()


def test_a_blob_of_a_failed_transaction_is_removed(tmp_path, monkeypatch):
    store = Store(tmp_path)

    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "_insert_project", fail)
    with pytest.raises(DiskFull, match="full"):
        store.add_upload("x", [("a.run", b"content")])
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


def test_readiness_is_red_when_the_disk_is_full(tmp_path, caplog):
    caplog.set_level("INFO", "podium.studio")
    with serving(tmp_path, limits=Limits(free_bytes=1 << 60)) as client:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "free on the disk" in answer.text
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/projects").status_code == 200
    assert "cause=disk:" in caplog.text


def test_folders_of_version_one_are_read(tmp_path):
    from podium.studio import database

    with sqlite3.connect(tmp_path / "studio.sqlite") as db:
        db.executescript(database.TABLES)
        db.execute("INSERT INTO projects VALUES ('p', 'old', 'upload', '{}', 1.0)")
        db.execute(
            "INSERT INTO jobs (id, project, kind, settings, state, made) VALUES ('j', 'p', 'fit', '{}', 'done', 1)"
        )
        db.execute("PRAGMA user_version = 1")
    Database(tmp_path).close()
    assert Store(tmp_path).job("j").user == ""


def test_caches_are_bounded_by_bytes():
    import numpy as np

    from podium.studio.workspace import FutureCache

    cache = FutureCache(100, most_bytes=100_000)
    for number in range(10):
        cache.get(number, lambda: np.zeros(5_000))
    assert 80_000 <= cache.count_bytes() <= 100_000
    made = []
    for number in (9, 0):
        cache.get(number, lambda n=number: made.append(n) or np.zeros(5_000))
    assert made == [0]
    cache.get("large", lambda: np.zeros(50_000))  # more than the bound: it alone is kept
    assert 400_000 <= cache.count_bytes() < 500_000


# -- jobs


def test_jobs_of_users_take_turns(tmp_path):
    store = Store(tmp_path)
    for number in range(3):
        queue_job(store, "demo", "fit", {"method": f"rrf(k={number + 1})"}, "greedy")
    queue_job(store, "demo", "fit", {"method": "borda"}, "other")
    order = []
    for _ in range(4):
        job = store.claim("me", 20, (), 5)
        order.append(job.user)
        store.finish(job.id, "me", "done", "")
    assert order == ["greedy", "other", "greedy", "greedy"]


def test_a_job_that_reports_nothing_is_stopped_with_its_process(tmp_path, monkeypatch):
    from podium.studio import job_worker

    class Ended(BaseException):
        pass

    ended = threading.Event()
    monkeypatch.setattr(job_worker, "GRACE", 0.1)
    monkeypatch.setattr(job_worker, "BEAT", 0.05)
    monkeypatch.setattr(job_worker.os, "_exit", lambda _: ended.set())
    monkeypatch.setitem(
        job_worker.KINDS, "fit", (lambda given: given, lambda *_: (ended.wait(30), time.sleep(0.2))[1])
    )
    store = Store(tmp_path)
    job = queue_job(store, "demo", "fit", {})
    run_jobs(store, seconds=0.2, own_process=True)
    assert store.job(job).state == "cancelled"
    assert "longer than" in store.job(job).words


def test_connections_that_send_no_headers_are_closed(tmp_path):
    import socket

    from podium.studio.app import create_app
    from podium.studio.server import create_server

    settings = ServerSettings(tmp_path, port=0, limits=Limits(header_seconds=0.3, connections=8))
    app, listener = create_app(settings), listen(settings)
    server = create_server(app)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = listener.getsockname()[1]
    half = []
    for _ in range(30):  # more than may be open; the oldest ones are closed
        half.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        half[-1].sendall(b"GET / HTTP/1.1\r\nHost: loc")
    assert ask(port, "GET", "/healthz")[0] == 200
    for connection in half:
        with contextlib.suppress(ConnectionError):
            assert connection.recv(10) == b""
        connection.close()
    server.should_exit = True
    thread.join(20)
