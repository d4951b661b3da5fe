"""Processor time per `/v1/fuse` request under load, beside a minimal FastAPI route that parses the same body.

python benchmarks/fuse_load.py [--wrk PATH] [--seconds 8] [--connections 8 64]

Both servers run at once and are loaded in turn by `wrk` with two bodies (3 lists of 50 ids): plain lists, and named
lists with weights. The minimal route is a FastAPI function with a pydantic model that returns the number of lists.
The figures are requests per second, the processor time of the server's own process per request, and the ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fuse_cpu import LENGTH, LISTS, POOL, read_processor_time, start_server

MINIMAL = """
import socket, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Request(BaseModel):
    lists: list[list[str]] | dict[str, list[str]]
    weights: dict[str, float] | None = None

app = FastAPI()

@app.post("/v1/fuse")
async def count(request: Request) -> dict[str, int]:
    return {"lists": len(request.lists)}

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print('{"address": "http://127.0.0.1:%d"}' % listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, http="httptools", access_log=False, log_level="error")).run([listener])
"""


def build_bodies() -> dict[str, str]:
    """The two bodies."""
    draw = random.Random(7)
    ids = [f"document-{i:04d}" for i in range(POOL)]
    lists = [draw.sample(ids, LENGTH) for _ in range(LISTS)]
    named = dict(zip(("bm25", "dense", "sparse"), lists, strict=True))
    weights = {"bm25": 1.0, "dense": 2.0, "sparse": 0.5}
    return {
        "plain lists": json.dumps({"lists": lists}),
        "named lists with weights": json.dumps({"lists": named, "weights": weights}),
    }


def write_script(folder: Path, name: str, body: str) -> Path:
    """A wrk script that posts a body."""
    path = folder / f"{name.replace(' ', '-')}.lua"
    path.write_text(
        f'wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = [==[{body}]==]\n'
    )
    return path


def load_server(wrk: str, port: int, script: Path, connections: int, seconds: int) -> int:
    """Load a server; the number of requests it answered."""
    command = [
        wrk,
        "-t1",
        f"-c{connections}",
        f"-d{seconds}",
        "-s",
        str(script),
        f"http://127.0.0.1:{port}/v1/fuse",
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        raise SystemExit(text)
    match = re.search(r"(\d+) requests in", text)
    assert match is not None, text
    return int(match[1])


def main() -> None:
    """Print one line per body and number of connections."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wrk", default=shutil.which("wrk"))
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 64])
    given = parser.parse_args()
    if given.wrk is None:
        raise SystemExit("wrk is not installed; give its path with --wrk")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        serve = ["-m", "podium", "serve", "--port", "0", "--folder", str(folder), "--quiet", "--json"]
        serve += ["--concurrent", "128"]
        servers = {
            "minimal": stack.enter_context(start_server(["-c", MINIMAL])),
            "podium": stack.enter_context(start_server(serve)),
        }
        for name, body in build_bodies().items():
            script = write_script(folder, name, body)
            for connections in given.connections:
                times, rates = {}, {}
                for server, (pid, port) in servers.items():
                    load_server(given.wrk, port, script, connections, 1)
                    begin = read_processor_time(pid)
                    count = load_server(given.wrk, port, script, connections, given.seconds)
                    times[server] = (read_processor_time(pid) - begin) / count * 1e6
                    rates[server] = count / given.seconds
                print(
                    f"{name}, {connections} connections: minimal {times['minimal']:.0f} us and "
                    f"{rates['minimal']:.0f}/s, podium {times['podium']:.0f} us and {rates['podium']:.0f}/s; "
                    f"{times['podium'] / times['minimal']:.2f} x minimal",
                    flush=True,
                )


if __name__ == "__main__":
    main()
