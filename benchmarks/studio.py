"""How long somebody waits for the studio: the first page, the demo, the largest heatmap, one step of a slider.

    python benchmarks/studio.py

A server of its own is started on a free port, asked over loopback, and ended. A page that is still being computed
counts as shown (it says so, with the facts known by then); the time until it is complete stands beside it.
"""

from __future__ import annotations

import time
import urllib.request

from server import started

from podium.data.demo import demo


def main() -> None:
    """Print the figures."""
    with started() as (_, address):
        measure(address)


def measure(address: str) -> None:
    """One cold look at everything, then once more."""

    def get(what: str, where: str) -> bytes:
        begin = time.perf_counter()
        with urllib.request.urlopen(address + where) as answer:
            content: bytes = answer.read()
        print(f"{what:<45} {1000 * (time.perf_counter() - begin):8.0f} ms  {len(content) / 1024:8.0f} kB")
        return content

    get("first page", "/")
    begin = time.perf_counter()
    page = get("overview of the demo, shown", "/p/demo/overview")
    while b'http-equiv="refresh"' in page:
        time.sleep(0.05)
        with urllib.request.urlopen(address + "/p/demo/overview") as answer:
            page = answer.read()
    print(f"{'overview of the demo, whole':<45} {1000 * (time.perf_counter() - begin):8.0f} ms")
    get("overview of the demo, again", "/p/demo/overview")
    index = demo().preferences.index
    query = index.queries[int(index.sizes.argmax())]
    get(f"heatmap of 25 x {index.sizes.max()}, page", f"/p/demo/query?q={query}")
    get(f"heatmap of 25 x {index.sizes.max()}, picture", f"/p/demo/query/heatmap.svg?q={query}")
    get("the same picture again", f"/p/demo/query/heatmap.svg?q={query}")
    for step in range(3):
        get("one step of a slider", f"/p/demo/rank.json?q={query}&m=rrf&w:atlas-1=1.{step + 1}")


if __name__ == "__main__":
    main()
