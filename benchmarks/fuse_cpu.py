"""Processor time of one `/v1/fuse` request (3 lists x 50 items), against a minimal server of the same stack.

python benchmarks/fuse_cpu.py [--requests 3000] [--turns 7] [--also OTHER/src]

Starts `podium serve` and a bare ASGI application on the same uvicorn, loop and parser, which decodes the body with
msgspec, sums reciprocal ranks in a dictionary, sorts, and encodes the answer. One client sends requests over one
keep-alive connection to each in turn. The figures are the processor time of the server's own process (all threads, user
and system) per request: the least and the median of the turns. `--also` adds the server of another checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LISTS, LENGTH, POOL = 3, 50, 100
MINIMAL = """
import socket, msgspec, uvicorn

class Request(msgspec.Struct):
    lists: list[list[str]]

decode, encode = msgspec.json.Decoder(Request).decode, msgspec.json.encode

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    totals = {}
    for items in decode(body).lists:
        for rank, item in enumerate(items, 1):
            totals[item] = totals.get(item, 0.0) + 1 / (60 + rank)
    ranking = sorted(totals, key=lambda item: (-totals[item], item))
    answer = encode({"items": ranking, "scores": [totals[item] for item in ranking]})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print('{"address": "http://127.0.0.1:%d"}' % listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", access_log=False, log_level="error")
uvicorn.Server(config).run([listener])
"""


def build_message() -> bytes:
    """One request, head and body."""
    draw = random.Random(7)
    ids = [f"document-{i:04d}" for i in range(POOL)]
    body = json.dumps({"lists": [draw.sample(ids, LENGTH) for _ in range(LISTS)]}).encode()
    lines = ["POST /v1/fuse HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@contextlib.contextmanager
def start_server(words: list[str], source: str | None = None) -> Iterator[tuple[int, int]]:
    """Process id and port of a server."""
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            address = json.loads(server.stdout.readline())["address"]
            yield server.pid, int(address.rpartition(":")[2])
        finally:
            server.terminate()


def read_processor_time(pid: int) -> float:
    """Seconds that the threads of a process have run."""
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in stats) / 1e9


def send_requests(port: int, message: bytes, count: int) -> bytes:
    """Send requests one after the other; the last answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        stream = connection.makefile("rb")
        for _ in range(count):
            connection.sendall(message)
            status = stream.readline()
            if b" 200 " not in status:
                raise SystemExit(status.decode())
            length = 0
            while (line := stream.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            answer = stream.read(length)
    return answer


def main() -> None:
    """Print the processor time per request of each server."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--also", help="the folder `src` of another checkout")
    given = parser.parse_args()
    message = build_message()
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2)]
        serve = [
            ["-m", "podium", "serve", "--port", "0", "--folder", f, "--quiet", "--json"] for f in folders
        ]
        servers = {"minimal": stack.enter_context(start_server(["-c", MINIMAL]))}
        servers["podium"] = stack.enter_context(start_server(serve[0]))
        if given.also:
            servers["other"] = stack.enter_context(start_server(serve[1], given.also))
        rankings = [json.loads(send_requests(port, message, 300))["items"] for _, port in servers.values()]
        assert all(ranking == rankings[0] for ranking in rankings)
        taken: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(given.turns):
            for name, (pid, port) in servers.items():
                begin = read_processor_time(pid)
                send_requests(port, message, given.requests)
                taken[name].append((read_processor_time(pid) - begin) / given.requests * 1e6)
    for name, times in taken.items():
        least, median = min(times), statistics.median(times)
        print(
            f"{name:8} {least:6.0f} us least, {median:6.0f} us median; {least / min(taken['minimal']):.2f} x minimal"
        )


if __name__ == "__main__":
    main()
