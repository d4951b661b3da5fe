"""The studio's memory: transactions, files by digest, several processes at once."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from podium.core.errors import InputError, ParameterError
from podium.studio.store import DEMO, RecordNotFound, Store

GONE = -1.0  # seconds of silence that everybody has behind them


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "studio")
    yield made
    made.close()


def blobs(store: Store) -> list[Path]:
    return [p for p in (store.folder / "blobs").rglob("*") if p.is_file()]


def test_nobody_else_can_read_what_is_kept(store):
    assert store.folder.stat().st_mode & 0o077 == 0


def test_the_demo_is_always_there(store):
    assert store.project(DEMO).kind == "demo"
    with pytest.raises(ParameterError):
        store.remove_project(DEMO)


def test_the_same_bytes_are_kept_once_and_go_with_the_last_project(store):
    one = store.add_upload("one", [("a.run", b"same"), ("b.run", b"other")])
    two = store.add_upload("two", [("c.run", b"same")], {"format": "trec"})
    assert len(blobs(store)) == 2
    assert [f.name for f in store.project(one).files] == ["a.run", "b.run"]
    assert store.project(two).options == {"format": "trec"}
    store.remove_project(one)
    assert len(blobs(store)) == 1
    assert store.blob_path(store.project(two).files[0].digest).read_bytes() == b"same"
    store.remove_project(two)
    assert blobs(store) == []


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/passwd", "a\0b", "..", "x" * 5000, "'; DROP TABLE projects; --", "\n"]
)
def test_names_are_values_and_never_paths(store, name):
    project = store.add_upload(name, [(name, b"content")])
    assert store.project(project).files[0].name == name
    outside = [
        p for p in store.folder.parent.rglob("*") if store.folder not in p.parents and p != store.folder
    ]
    assert outside == []
    for path in blobs(store):
        assert path.name.isalnum()


@pytest.mark.parametrize("wrong", ["nothing", "", "../demo", "' OR 1=1 --", "\0"])
def test_what_is_not_there_is_said(store, wrong):
    for ask in (store.project, store.job, store.model, store.remove_project):
        with pytest.raises(RecordNotFound):
            ask(wrong)
    with pytest.raises(RecordNotFound):
        store.add_job(wrong, "tune", {})


def test_a_failed_upload_leaves_nothing(store, monkeypatch):
    monkeypatch.setattr(store, "_insert_project", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.add_upload("one", [("a", b"content")])
    assert [p.id for p in store.projects()] == [DEMO]
    assert not [p for p in blobs(store) if p.name.endswith(".tmp")]


def test_models_of_a_job_are_kept_once(store):
    job = store.add_job(DEMO, "fit", {})
    first = store.add_model(DEMO, "a", "rrf", b"bytes", job)
    assert store.add_model(DEMO, "a", "rrf", b"bytes", job) == first
    assert store.model_bytes(first) == b"bytes"
    assert [m.id for m in store.models(DEMO)] == [first]


def test_jobs_go_with_their_project(store):
    project = store.add_upload("one", [("a", b"x")])
    job = store.add_job(project, "fit", {})
    store.remove_project(project)
    with pytest.raises(RecordNotFound):
        store.job(job)


def test_a_job_has_one_owner(store):
    job = store.add_job(DEMO, "tune", {"trials": 3})
    mine = store.claim("me", 60, ["tune"], 3)
    assert mine is not None
    assert (mine.id, mine.state, mine.owner) == (job, "running", "me")
    assert store.claim("you", 60, ["tune"], 3) is None
    assert not store.beat(job, "you", 1, 2, "mine")
    assert not store.finish(job, "you", "done", "mine")
    assert store.beat(job, "me", 1, 2, "half")
    assert store.job(job).share == 0.5
    assert store.finish(job, "me", "done", "good", {"a": 1})
    assert store.job(job).result == {"a": 1}
    assert not store.finish(job, "me", "failed", "again")


def test_a_silent_owner_loses_its_job(store):
    job = store.add_job(DEMO, "tune", {})
    store.claim("dead", 60, ["tune"], 3)
    assert not store.has_waiting_job(60)
    assert store.has_waiting_job(GONE)
    taken = store.claim("alive", GONE, ["tune"], 3)
    assert taken is not None
    assert (taken.id, taken.owner, taken.tries) == (job, "alive", 2)
    assert not store.beat(job, "dead", 1, 1, "late")


def test_work_that_cannot_go_on_is_marked(store):
    job = store.add_job(DEMO, "fit", {})
    store.claim("dead", 60, ["tune"], 3)
    assert store.claim("alive", GONE, ["tune"], 3) is None
    found = store.job(job)
    assert found.state == "interrupted"
    assert "start it again" in found.words


def test_work_that_breaks_off_again_and_again_is_given_up(store):
    job = store.add_job(DEMO, "tune", {})
    for n in range(3):
        assert store.claim(f"dead-{n}", GONE, ["tune"], 3) is not None
    assert store.claim("last", GONE, ["tune"], 3) is None
    assert store.job(job).state == "interrupted"
    assert "3 times" in store.job(job).words


def test_a_released_job_waits_again_and_was_not_to_blame(store):
    job = store.add_job(DEMO, "fit", {})
    store.claim("me", 60, [], 3)
    store.release("me", "the server ends")
    assert (store.job(job).state, store.job(job).tries) == ("queued", 0)


def test_cancelling(store):
    waiting, running = store.add_job(DEMO, "fit", {}), store.add_job(DEMO, "fit", {})
    store.cancel(waiting)
    assert store.job(waiting).state == "cancelled"
    store.claim("me", 60, [], 3)
    store.cancel(running)
    assert not store.beat(running, "me", 0, 1, "on")
    store.cancel(running)
    store.finish(running, "me", "cancelled", "stopped")
    store.cancel(running)
    assert store.job(running).state == "cancelled"


def _busy(folder: str, number: int) -> None:
    store = Store(folder)
    for n in range(10):
        project = store.add_upload(f"{number}-{n}", [("a", b"shared"), ("b", f"{number}-{n % 3}".encode())])
        store.add_job(project, "tune", {"n": n})
        if n % 2:
            store.remove_project(project)
        while store.claim(f"{number}", 60, ["tune"], 3):
            pass
    store.close()


def test_three_processes_at_once_lose_and_break_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    many = [context.Process(target=_busy, args=(str(tmp_path), n)) for n in range(3)]
    for one in many:
        one.start()
    for one in many:
        one.join(60)
    assert [one.exitcode for one in many] == [0, 0, 0]
    store = Store(tmp_path)
    projects = [store.project(p.id) for p in store.projects() if p.id != DEMO]
    assert len(projects) == 15
    for project in projects:
        assert store.blob_path(project.files[0].digest).read_bytes() == b"shared"
        assert store.blob_path(project.files[1].digest).read_bytes().startswith(project.name[:2].encode())
    jobs = store.jobs()
    assert len(jobs) == 15
    assert {j.tries for j in jobs} == {1}
    with sqlite3.connect(tmp_path / "studio.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.close()
    store.close()


def test_a_folder_of_a_newer_podium_is_refused(tmp_path):
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "studio.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="version 99"):
        Store(tmp_path)


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_database_is_said(tmp_path, content):
    (tmp_path / "studio.sqlite").write_bytes(content)
    with pytest.raises(InputError, match="cannot be used for the studio"):
        Store(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be used for the studio"):
        Store(tmp_path / "file")
