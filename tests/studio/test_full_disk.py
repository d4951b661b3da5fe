"""A server whose folder lies on a disk that is really full: a small file system in memory."""

import contextlib
import os
import shutil
import subprocess

import pytest

from serving import started

httpx = pytest.importorskip("httpx")


@pytest.fixture
def small_disk(tmp_path):
    """A folder with 3 MB of space."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "podium-test", str(place)]
    is_root = os.name == "posix" and os.geteuid() == 0
    if not is_root or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs the rights of an administrator")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk):
    """Reads work, readiness is red, uploads fail with words and leave nothing behind, the log has the cause."""
    run = "".join(f"q{n} Q0 d{n} 1 2.5 bm25\n" for n in range(200_000)).encode()
    with (
        started(small_disk / "studio", "--log", "json") as (server, about),
        httpx.Client(base_url=about["address"], timeout=60) as client,
    ):
        made = client.post(
            "/v1/projects", files={"files": ("a.run", b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1 bm25\n")}
        )
        assert made.status_code == 201, made.text
        blobs = sorted(p.name for p in (small_disk / "studio" / "blobs").rglob("*"))
        large = client.post("/v1/projects", files={"files": ("large.run", run)})
        assert large.status_code == 507
        assert "full" in large.json()["detail"]
        assert sorted(p.name for p in (small_disk / "studio" / "blobs").rglob("*")) == blobs
        with contextlib.suppress(OSError), open(small_disk / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"\0" * 4096)
        assert shutil.disk_usage(small_disk).free < 4096
        for path in (
            "/",
            "/v1/projects",
            f"/v1/projects/{made.json()['id']}",
            "/p/demo/experts.json",
            "/healthz",
        ):
            assert client.get(path).status_code == 200, path
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "free" in ready.text or "written" in ready.text
        assert client.post("/v1/projects", files={"files": ("b.run", run[:4000])}).status_code == 507
        os.set_blocking(server.stderr.fileno(), False)
        log = server.stderr.read()
    assert "is full or cannot be written" in log
