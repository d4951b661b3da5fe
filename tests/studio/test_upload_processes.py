"""Uploads are parsed in processes: a parse that takes too long is killed, and others are served meanwhile."""

import time

import pytest

import slow_uploads
from podium.core.errors import InputError
from podium.studio.api import project_routes
from podium.studio.settings import Limits, ServerSettings
from podium.studio.store import Store
from podium.studio.telemetry import RequestMetrics
from podium.studio.view_processes import ViewProcesses
from podium.studio.view_queue import ViewTask
from serving import listening

httpx = pytest.importorskip("httpx")

SMALL = b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1 bm25\n"


def test_a_parse_that_takes_too_long_is_killed_and_frees_its_slot(tmp_path, monkeypatch):
    monkeypatch.setattr(project_routes, "_create_project", slow_uploads.create_project)
    limits = Limits(view_seconds=3, uploads=1, seconds=20)
    with (
        listening(tmp_path, processes=2, limits=limits) as port,
        httpx.Client(base_url=f"http://localhost:{port}", timeout=60) as client,
    ):
        slow = client.post("/v1/projects", files={"files": (slow_uploads.ENDLESS, SMALL)})
        assert slow.status_code in (503, 504), slow.text  # 503: no process had started yet
        assert slow.headers["content-type"] == "application/problem+json"
        assert [p["id"] for p in client.get("/v1/projects").json()["projects"]] == ["demo"]
        end = time.monotonic() + 120  # on a busy machine a small upload may take too long as well
        while (small := client.post("/v1/projects", files={"files": ("a.run", SMALL)})).status_code != 201:
            assert small.status_code in (503, 504), small.text
            assert time.monotonic() < end
        # an upload that was answered by 504 may have been stored just before
        assert len(client.get("/v1/projects").json()["projects"]) >= 2


def test_errors_of_a_parse_are_those_of_the_server(tmp_path):
    pool = ViewProcesses(ServerSettings(tmp_path, processes=1), RequestMetrics())
    pool.start()
    try:
        from podium.studio.pages.form_routes import _open_upload

        def call(files):
            key = object()
            task = ViewTask(key, "ann", {"call": (_open_upload, (files, {}))}, 60.0)
            return pool.submit(key, lambda: task).outcome.result(60)

        assert call([("a.run", SMALL)]).value.view
        failed = call([("a.run", b"q1 Q0 d1 1 x bm25\nq1 Q0 d2 2 1 bm25\n")]).error
        with pytest.raises(InputError) as direct:
            _open_upload(type("State", (), {"store": Store(tmp_path), "settings": ServerSettings(tmp_path)}),
                         [("a.run", b"q1 Q0 d1 1 x bm25\nq1 Q0 d2 2 1 bm25\n")], {})  # fmt: skip
        assert (str(failed), failed.line, failed.parts) == (
            str(direct.value),
            direct.value.line,
            direct.value.parts,
        )
    finally:
        pool.stop()
