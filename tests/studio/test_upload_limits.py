"""Uploads that break off, ids that are too long, token files that others can read."""

import os
import socket
import time

import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.core.errors import InputError
from podium.studio.loading import open_input
from podium.studio.settings import Limits
from serving import listening, serving

LONG = "d" * 600


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (f"q1 Q0 {LONG} 1 2.5 bm25\n", "item"),
        (f"{LONG} Q0 d1 1 2.5 bm25\n", "query"),
        (f"q1 Q0 d1 1 2.5 {LONG}\n", "expert"),
    ],
)
def test_long_ids_in_files_are_refused(content, what):
    with pytest.raises(InputError, match=f"id of an? {what} has 600 characters.*at most 512"):
        open_input([("a.run", content.encode())])


def test_ids_are_measured_in_characters():
    open_input([("a.run", f"q1 Q0 {'é' * 512} 1 2.5 bm25\n".encode())])


def test_long_ids_of_features_are_refused(tmp_path):
    body = {"rankings": {"q": {"e": ["a"]}}, "features": [{"query": "q", "item": LONG, "values": [1.0]}]}
    with serving(tmp_path) as client:
        answer = client.post("/v1/aggregate", json=body)
        assert answer.status_code == 422
        assert "512 characters" in answer.text


def test_an_aborted_upload_is_not_a_failure_of_the_server(tmp_path, caplog):
    caplog.set_level("INFO", "podium.studio")
    with listening(tmp_path) as port:
        for path in (b"/open/upload", b"/v1/aggregate"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                kind = b"application/json" if b"v1" in path else b"multipart/form-data; boundary=x"
                connection.sendall(
                    b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
                    b"Content-Type: " + kind + b"\r\n\r\n--x\r\n"
                )
                time.sleep(0.2)
        for _ in range(200):
            if caplog.text.count(" 499") >= 2:
                break
            time.sleep(0.05)
    assert caplog.text.count(" 499") == 2
    assert " 500" not in caplog.text


def test_every_form_with_files_has_the_limit_of_uploads(tmp_path):
    with serving(tmp_path, limits=Limits(body_bytes=1000)) as client:
        described = client.get("/openapi.json").json()["paths"]
        forms = [
            path
            for path, calls in described.items()
            if "multipart/form-data" in calls.get("post", {}).get("requestBody", {}).get("content", {})
        ]
        assert len(forms) >= 4
        for path in forms:
            files = {"files": ("a.run", b"q1 Q0 d1 1 2.5 bm25\n" * 100)}
            answer = client.post(path.format(project="demo"), files=files)
            assert answer.status_code not in (411, 413), (path, answer.text)


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_a_token_file_that_others_can_read_is_warned_of(tmp_path):
    file = tmp_path / "token.txt"
    file.write_text("0123456789abcdef0123456789abcdef")
    for mode, expected in ((0o644, True), (0o640, True), (0o600, False)):
        file.chmod(mode)
        result = CliRunner().invoke(
            program, ["serve", "--token-file", str(file), "--host", "256.0.0.1", "--folder", str(tmp_path)]
        )
        assert ("other users of this machine can read" in result.output) == expected
