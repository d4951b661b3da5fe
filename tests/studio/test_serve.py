"""podium serve."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.studio.app import create_app
from podium.studio.server import create_server, format_address, listen
from podium.studio.settings import ServerSettings
from serving import started

TOKEN = "0123456789abcdef0123456789abcdef"


def run(*words, **environment):
    return CliRunner().invoke(program, ["serve", *map(str, words)], env=environment)


def test_help_is_light():
    """It neither loads nor needs what the extra brings."""
    code = (
        "import sys\n"
        "for name in ('fastapi', 'uvicorn', 'pydantic', 'jinja2'): sys.modules[name] = None\n"
        "from podium.cli import main\n"
        "sys.argv = ['podium', 'serve', '--help']\n"
        "try: main()\n"
        "finally: assert 'numpy' not in sys.modules and 'podium.studio' not in sys.modules"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--token-file" in found.stdout


def test_without_the_extra(tmp_path):
    code = (
        "import sys\n"
        "for name in ('fastapi', 'uvicorn'): sys.modules[name] = None\n"
        "from podium.cli import main\n"
        f"sys.argv = ['podium', 'serve', '--folder', {str(tmp_path)!r}]\n"
        "main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "pip install 'podium-rank[studio]'" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "a token is required"),
        (["--host", "::"], "a token is required"),
        (["--port", "99999"], "0<=x<=65535"),
        (["nowhere"], "does not exist"),
        (["--token-file", "nowhere"], "does not exist"),
        (["--seconds", "0"], "0.1"),
    ],
)
def test_bad_usage(tmp_path, words, said):
    found = run("--folder", tmp_path, *words)
    assert found.exit_code == 2
    assert said in found.output


def test_tokens_come_from_a_file_or_the_environment(tmp_path):
    empty, short = tmp_path / "empty", tmp_path / "short"
    empty.write_text("\n")
    short.write_text("abc")
    assert "is empty" in run("--token-file", empty).output
    assert "24 or more" in run("--token-file", short).output
    assert "24 or more" in run(PODIUM_TOKEN="abc").output


def test_a_port_in_use(tmp_path):
    taken = listen(ServerSettings(tmp_path, port=0))
    port = taken.getsockname()[1]
    assert format_address(taken) == f"http://127.0.0.1:{port}"
    found = run("--folder", tmp_path, "--port", port)
    taken.close()
    assert found.exit_code == 2
    assert "choose another --port" in found.output


def ask(where, body):
    link = http.client.HTTPConnection(where.removeprefix("http://"), timeout=20)
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    link.request("POST", "/v1/fuse", json.dumps(body), headers)
    answer = link.getresponse()
    assert "server" not in answer.headers
    found = json.load(answer)
    link.close()
    return found


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals of Unix")
def test_it_serves_until_told_to_stop(tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    with started(tmp_path / "p", "--token-file", str(token)) as (server, where):
        answer = ask(where["address"], {"lists": [["secret", "b"], ["b"]]})
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
    assert where["pid"] == server.pid
    assert answer["items"] == ["b", "secret"]
    assert "POST /v1/fuse 200" in said
    assert "secret" not in said
    assert TOKEN not in said
    assert "Traceback" not in said


def test_a_server_that_stops_cancels_what_still_computes(tmp_path, monkeypatch):
    """The open requests get an answer, before the server cuts them off with a traceback in the log."""
    stopped = threading.Event()
    monkeypatch.setattr("podium.studio.server.DRAIN", 0.05)

    async def wait_for_requests(*_):
        assert await asyncio.to_thread(stopped.wait, 10)

    monkeypatch.setattr("uvicorn.Server.shutdown", wait_for_requests)
    server = create_server(create_app(ServerSettings(tmp_path)))
    server.config.app.state.processes = SimpleNamespace(stop=stopped.set)
    asyncio.run(server.shutdown())
    assert stopped.is_set()


def test_every_address_family(tmp_path):
    try:
        found = listen(ServerSettings(tmp_path, host="::1", port=0))
    except Exception:
        pytest.skip("this machine has no IPv6")
    assert format_address(found).startswith("http://[::1]:")
    assert found.family == socket.AF_INET6
    found.close()
