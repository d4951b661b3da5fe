"""A server in the process of the tests."""

import contextlib
import json
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

from podium.studio.app import create_app
from podium.studio.server import create_server, listen
from podium.studio.settings import Limits, ServerSettings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer releases of Starlette prefer another client
    from starlette.testclient import TestClient


@contextlib.contextmanager
def serving(folder: Path, *, limits: Limits | None = None, headers=None, **settings):
    """A client of a server over a folder; `headers` go with every request."""
    app = create_app(ServerSettings(folder, limits=limits or Limits(), **settings))
    with TestClient(app, base_url="http://localhost", headers=headers, follow_redirects=False) as client:
        yield client


@contextlib.contextmanager
def listening(folder: Path, **settings):
    """The port of a server on a real socket, in a thread."""
    how = ServerSettings(folder, port=0, **settings)
    app, socket = create_app(how), listen(how)
    server = create_server(app)
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


@contextlib.contextmanager
def started(folder: Path, *words: str):
    """`podium serve` in a process of its own, and what it says of itself."""
    command = [
        sys.executable,
        "-m",
        "podium",
        "serve",
        "--port",
        "0",
        "--folder",
        str(folder),
        "--json",
        *words,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, json.loads(server.stdout.readline())
        finally:
            server.terminate()
            server.wait(30)
