"""How a server under attack answers another user: slow views and downloads, dripping uploads, half-open connections.

python benchmarks/studio_attacks.py [--seconds 15]

Starts `podium serve` with two named tokens. One user (or connections without any) attacks; meanwhile the other opens a
first page again and again, and /healthz is asked ten times per second. Prints the longest times of both per attack.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from podium.studio.store import Store

VIEWS, DOWNLOADS, UPLOADS, CONNECTIONS = 45, 45, 64, 1000
HEADERS = "Host: localhost\r\nAuthorization: Bearer {token}\r\n"


def get(port: int, path: str, token: str) -> tuple[int, float]:
    """Status and seconds of a request."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
    return answer.status, time.perf_counter() - begin


def send_slow_views(port: int, token: str, end: threading.Event) -> None:
    """Ask for views whose computation takes many seconds, each a different one."""
    ask_again_and_again(port, token, end, ["/p/demo/methods.json"] * VIEWS)


def send_slow_downloads(port: int, token: str, end: threading.Event) -> None:
    """Ask for reports and figures that take many seconds, by the pages and by the API, each a different one."""
    kinds = ("/p/demo/report.html", "/p/demo/methods/curves.png", "/v1/projects/demo/report.html")
    ask_again_and_again(port, token, end, [kinds[number % 3] for number in range(DOWNLOADS)])


def ask_again_and_again(port: int, token: str, end: threading.Event, paths: list[str]) -> None:
    """Ask for every path in a thread of its own, with methods that nobody else asks for."""

    def ask(number: int) -> None:
        while not end.is_set():
            methods = "&".join(f"m=rrf(k={number * 20 + step})" for step in range(12))
            with contextlib.suppress(OSError):
                get(port, f"{paths[number]}?{methods}", token)
            time.sleep(0.2)

    for number in range(len(paths)):
        threading.Thread(target=ask, args=(number,), daemon=True).start()


def send_dripping_uploads(port: int, token: str, end: threading.Event) -> None:
    """Send uploads one byte per second."""
    head = f"POST /open/upload HTTP/1.1\r\n{HEADERS.format(token=token)}Content-Length: 100000\r\n"
    head += "Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"

    def drip() -> None:
        while not end.is_set():
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
            ):
                connection.sendall(head.encode())
                while not end.is_set():
                    connection.sendall(b"a")
                    time.sleep(1)

    for _ in range(UPLOADS):
        threading.Thread(target=drip, daemon=True).start()


def open_half_connections(port: int, _token: str, end: threading.Event) -> None:
    """Hold connections that never complete their headers; opened again when the server closes them."""

    def hold() -> None:
        connections: list[socket.socket] = []
        while not end.is_set():
            with contextlib.suppress(OSError):
                while len(connections) < CONNECTIONS and not end.is_set():
                    connection = socket.create_connection(("127.0.0.1", port), timeout=2)
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
                    connections.append(connection)
            time.sleep(0.5)
            for connection in list(connections):
                try:
                    connection.sendall(b"a")
                except OSError:
                    connection.close()
                    connections.remove(connection)
        for connection in connections:
            connection.close()

    threading.Thread(target=hold, daemon=True).start()


@contextlib.contextmanager
def start_server(folder: str) -> Iterator[int]:
    """The port of a server."""
    command = [
        sys.executable,
        "-m",
        "podium",
        "serve",
        "--port",
        "0",
        "--folder",
        folder,
        "--quiet",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(json.loads(server.stdout.readline())["address"].rpartition(":")[2])
        finally:
            server.terminate()


def measure(port: int, tokens: dict[str, str], attack: Callable[..., None] | None, seconds: float) -> str:
    """The longest times of the first page and of /healthz during an attack, and the statuses of the page."""
    end, pages, checks, statuses = threading.Event(), [0.0], [0.0], set()
    if attack is not None:
        attack(port, tokens["attacker"], end)
        time.sleep(2)

    def check_health() -> None:
        while not end.is_set():
            checks.append(get(port, "/healthz", "")[1])
            time.sleep(0.1)

    checker = threading.Thread(target=check_health)
    checker.start()
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        for path in ("/", "/p/demo/overview"):
            status, taken = get(port, path, tokens["other"])
            pages.append(taken)
            statuses.add(status)
    end.set()
    checker.join()
    return (
        f"first page at most {max(pages):.2f} s (statuses {sorted(statuses)}), "
        f"/healthz at most {max(checks) * 1000:.0f} ms in {len(checks) - 1} requests"
    )


def main() -> None:
    """Print one line per attack."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    attacks = {
        "no attack": None,
        f"{VIEWS} slow views": send_slow_views,
        f"{DOWNLOADS} slow downloads": send_slow_downloads,
        f"{UPLOADS} dripping uploads": send_dripping_uploads,
        f"{CONNECTIONS} half-open connections": open_half_connections,
    }
    for name, attack in attacks.items():
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))
            tokens = {user: store.add_token(user, "editor") for user in ("attacker", "other")}
            store.close()
            with start_server(folder) as port:
                get(port, "/p/demo/overview.json", tokens["other"])  # both processes have started
                print(f"{name}: {measure(port, tokens, attack, given.seconds)}", flush=True)


if __name__ == "__main__":
    main()
