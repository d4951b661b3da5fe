"""`podium serve` in a process of its own, to be measured."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def started() -> Iterator[tuple[int, str]]:
    """The process and the address of a server over an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["serve", "--port", "0", "--folder", folder, "--quiet", "--json"]
        with subprocess.Popen(
            [sys.executable, "-m", "podium", *words], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                yield server.pid, json.loads(server.stdout.readline())["address"]
            finally:
                server.terminate()
