"""Which methods answer on very large inputs, which refuse them and in which words: a table of all methods.

    python benchmarks/limits.py                         # every method on every input; about half an hour
    python benchmarks/limits.py --only bradley_terry,elo --inputs "10 x 10,000"

Every method runs in a process of its own with `--memory` gigabytes of address space and `--cpu` seconds of processor
time. A method that learns from labels is fitted to the same lists with grades of 200 items, then aggregates them. An
input either has an answer or is refused at once, with the number that is too large, the limit, and what to use instead;
the exit status is 1 if any method runs out of memory or time.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

# experts, items per list, distinct ratings (0: rankings)
INPUTS = {
    "10 x 10,000": (10, 10_000, 0),
    "100 x 1,000": (100, 1_000, 0),
    "5 x 100,000": (5, 100_000, 0),
    "5 x 100,000 rated": (5, 100_000, 5),
}
JUDGED = 200  # items with grades, for methods that learn from labels
MESSAGE = 100  # characters of a refusal that the table shows


def lists_of(experts: int, items: int, grades: int) -> dict[str, Any]:
    """Rows of one query: each expert orders (or rates) all items by their quality and its own error."""
    random = np.random.default_rng(items)
    noisy = np.arange(items) + random.normal(0, items / 4, (experts, items))
    place = noisy.argsort(axis=1).argsort(axis=1)
    names = np.char.add("e", np.arange(experts).astype(str))
    columns = {
        "query": np.full(experts * items, "q"),
        "expert": np.repeat(names, items),
        "item": np.tile(np.arange(items), experts),
    }
    if grades:
        return columns | {"score": (grades - place * grades // items).ravel().astype(float)}
    return columns | {"rank": (place + 1).ravel()}


def answer(name: str, case: str) -> None:
    """Aggregate one input by one method, in this process."""
    from podium import Features, Labels, Preferences, make

    experts, items, grades = INPUTS[case]
    preferences = Preferences.from_rows(**lists_of(experts, items, grades))
    method, given = make(name), {}
    if method.tags.uses_features:
        values = np.random.default_rng(0).normal(np.arange(items)[:, None], items / 4, (items, 3))
        keys = preferences.index.items.tolist()
        given = {"features": Features.from_rows(["q"] * items, keys, values[keys], ("a", "b", "c"))}
    if method.tags.supervised:
        judged = np.random.default_rng(1).choice(items, JUDGED, replace=False)
        labels = {int(i): float(2 - 3 * int(i) // items) for i in judged}
        method.fit(preferences, Labels.from_dict({"q": labels}), **given)
    method.aggregate(preferences, **given)


def attempt(name: str, case: str) -> None:
    """Print as JSON how one attempt ended."""
    from podium.core.errors import PodiumError

    begin = time.perf_counter()
    found: dict[str, Any] = {"end": "ok"}
    try:
        answer(name, case)
    except PodiumError as refused:
        found = {"end": "refused", "message": str(refused)}
    except MemoryError:
        found = {"end": "MEMORY"}
    except Exception as error:
        found = {"end": "ERROR", "message": f"{type(error).__name__}: {error}"}
    found["seconds"] = time.perf_counter() - begin
    found["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found))


def bounded(name: str, case: str, memory: float, cpu: int) -> dict[str, Any]:
    """How one attempt ended within the limits."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))

    command = [sys.executable, __file__, "--attempt", name, case]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    if done.returncode == 0 and done.stdout.strip():
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return {"end": "TIME", "seconds": float(cpu)}
    last = (done.stderr.strip().splitlines() or [""])[-1]
    end = "MEMORY" if "MemoryError" in done.stderr or "alloc" in done.stderr else "ERROR"
    return {"end": end, "message": f"exit {done.returncode}: {last}"}


def line(name: str, case: str, found: dict[str, Any]) -> str:
    """One row of the table."""
    measured = " ".join(f"{found[key]:8.1f}" if key in found else " " * 8 for key in ("seconds", "gigabytes"))
    return f"{case:18} {name:18} {found['end']:8} {measured}  {found.get('message', '')[: found.get('cut', MESSAGE)]}"


def main() -> None:
    """Read the command line and print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--attempt", nargs=2, metavar=("METHOD", "INPUT"), help="run one attempt in this process"
    )
    parser.add_argument("--only", default="", help="methods, separated by commas; default all")
    parser.add_argument("--inputs", default="", help="inputs, separated by ' / '; default all")
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes of address space per process")
    parser.add_argument("--cpu", type=int, default=120, help="seconds of processor time per process")
    parser.add_argument("--full", action="store_true", help="print messages whole")
    asked = parser.parse_args()
    if asked.attempt:
        attempt(*asked.attempt)
        return
    from podium.core import registry

    names = asked.only.split(",") if asked.only else list(registry.aggregators.all())
    cases = asked.inputs.split(" / ") if asked.inputs else list(INPUTS)
    failed = 0
    print(f"{'input':18} {'method':18} {'end':8} {'seconds':>8} {'GB':>8}  message")
    for case in cases:
        for name in names:
            found = bounded(name, case, asked.memory, asked.cpu)
            failed += found["end"] not in ("ok", "refused")
            print(line(name, case, found | ({"cut": None} if asked.full else {})), flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
