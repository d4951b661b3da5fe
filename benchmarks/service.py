"""Load on the service: `/v1/fuse` of 3 lists x 100 items over keep-alive connections on loopback.

python benchmarks/service.py [--seconds 10] [--connections 8] [--requests 100000]

Starts `podium serve` in a process of its own, asks it as fast as it answers, in turns of `--seconds`, and prints
for each turn requests a second, the median and 99th percentile of the answer time, the memory of the server and its
processor time for one request; it goes on until there were `--requests` requests. Uses wrk where it is installed
(Debian: apt-get install wrk), else a client written here, which takes more of the machine for itself. The load average
(the client and the server included) is printed because a busy machine makes all of it slower. Figures are also kept in
benchmarks/results/service.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from server import started

LISTS, LENGTH, POOL = 3, 100, 200
RESULTS = Path(__file__).parent / "results" / "service.json"
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open("%s"); wrk.body = file:read("*a"); file:close()
"""
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def body() -> bytes:
    """One request."""
    draw = random.Random(7)
    ids = [f"document-{i:04d}" for i in range(POOL)]
    return json.dumps({"lists": [draw.sample(ids, LENGTH) for _ in range(LISTS)]}).encode()


def memory(pid: int) -> float:
    """Resident megabytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


def processor(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def with_wrk(port: int, seconds: int, connections: int, folder: Path) -> dict[str, float]:
    """What wrk says."""
    (folder / "body.json").write_bytes(body())
    (folder / "post.lua").write_text(SCRIPT % (folder / "body.json"))
    url = f"http://127.0.0.1:{port}/v1/fuse"
    options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(folder / "post.lua")]
    said = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(said)
    times = {n: float(v) * UNITS[u] for n, v, u in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", said)}
    done = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]
    return {"requests": done, "per_second": rate, "p50_ms": times["50"], "p99_ms": times["99"]}


def with_asyncio(port: int, seconds: int, connections: int, _: Path) -> dict[str, float]:
    """The same without wrk."""
    return asyncio.run(_load(port, seconds, connections))


async def _load(port: int, seconds: int, connections: int) -> dict[str, float]:
    taken: list[float] = []
    end = time.perf_counter() + seconds
    text = body()
    head = f"POST /v1/fuse HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
    message = f"{head}\r\n\r\n".encode() + text

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (begin := time.perf_counter()) < end:
            writer.write(message)
            headers = await reader.readuntil(b"\r\n\r\n")
            if not headers.startswith(b"HTTP/1.1 200"):
                raise SystemExit(headers.decode())
            await reader.readexactly(int(re.search(rb"content-length: (\d+)", headers)[1]))  # type: ignore[index]
            taken.append(time.perf_counter() - begin)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    cuts = statistics.quantiles(taken, n=100)
    return {
        "requests": len(taken), "per_second": len(taken) / seconds, "p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3
    }  # fmt: skip


def measure(seconds: int, connections: int, wanted: int) -> dict[str, Any]:
    """Turns of this many seconds until there are enough requests."""
    ask = with_wrk if shutil.which("wrk") else with_asyncio
    turns: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, started() as (pid, address):
        folder, port = Path(name), int(address.rpartition(":")[2])
        ask(port, 2, connections, folder)  # imports and caches
        first = memory(pid)
        while sum(t["requests"] for t in turns) < wanted:
            used = processor(pid)
            turn: dict[str, Any] = ask(port, seconds, connections, folder)
            turn["cpu_ms"] = (processor(pid) - used) / turn["requests"] * 1e3
            turns.append(turn | {"memory_mb": memory(pid), "load": os.getloadavg()[0]})
    return {"client": ask.__name__, "connections": connections, "first_mb": first, "turns": turns}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--requests", type=int, default=100_000)
    given = parser.parse_args()
    found = measure(given.seconds, given.connections, given.requests)
    print(f"{found['client']}, {given.connections} connections, {os.cpu_count()} cores")
    print("turn  requests/s  p50 ms  p99 ms  cpu ms  memory MB  load")
    for number, t in enumerate(found["turns"], 1):
        times = f"{t['p50_ms']:6.1f}  {t['p99_ms']:6.1f}  {t['cpu_ms']:6.2f}"
        print(f"{number:4}  {t['per_second']:10,.0f}  {times}  {t['memory_mb']:9.1f}  {t['load']:4.1f}")
    done = sum(t["requests"] for t in found["turns"])
    last = found["turns"][-1]["memory_mb"]
    print(f"memory {found['first_mb']:.1f} MB before and {last:.1f} MB after {done:,.0f} requests")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
