"""Two installations of Podium side by side: the same calls in turns, as ratios of processor time.

python benchmarks/two_versions.py OLD_PYTHON NEW_PYTHON [--only rrf,read] [--turns 5]

Every interpreter runs in a process of its own and answers one call at a time, so that both see the same load. The
figure of a call is the least processor time (of all threads) over its turns; `answer` says whether the scores of both
are equal within 1e-9. Only calls that both versions know are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from synthetic import rows, runs

LEAST = 0.05  # seconds per turn: shorter calls are repeated
SLOW = 0.02  # seconds for 10,000 rows beyond which a method is not tried on a million
LEARNERS = ("crf", "lambdarank", "svd", "fused", "weighted_rrf", "position_probability")


def build_calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls of this installation by name; each is prepared when it is first made."""
    import podium
    from podium.analysis import leaderboard
    from podium.core import registry

    small = podium.Preferences.from_rows(**rows(runs(10)))
    million = rows(runs(1000))
    large = podium.Preferences.from_rows(**million)
    rng = np.random.default_rng(0)
    strength = rng.normal(size=50)
    a, b = rng.integers(0, 50, (2, 20_000))
    b = np.where(a == b, (b + 1) % 50, b)
    first = rng.random(20_000) < 1 / (1 + np.exp(strength[b] - strength[a]))
    judges = rng.integers(0, 40, 20_000)
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    contests = podium.Preferences.from_comparisons(np.zeros(20_000, np.int64), judges, winner, loser)
    grades = {f"{q}": {f"{i}": int(rng.integers(0, 3)) for i in range(300)} for q in range(100)}
    labels = podium.Labels.from_dict(grades)
    text = rows(runs(100))
    lists = podium.Preferences.from_rows(
        **(text | {k: text[k].astype(str) for k in ("query", "expert", "item")})
    )
    calls: dict[str, Callable[[], Any]] = {
        "from_rows, a million rows": lambda: podium.Preferences.from_rows(**million),
        "leaderboard, 20,000 votes": lambda: leaderboard.leaderboard(contests),
    }

    def aggregate(name: str, preferences: Any) -> Callable[[], Any]:
        return lambda: podium.make(name).aggregate(preferences).scores

    for name in sorted(registry.aggregators.all()):
        for size, preferences in (("10,000", small), ("a million", large)):
            calls[f"{name}, {size} rows"] = aggregate(name, preferences)
        calls[f"{name}, 20,000 votes"] = aggregate(name, contests)
    for name in LEARNERS:
        calls[f"fit {name}, 100 queries"] = lambda name=name: podium.make(name).fit(lists, labels) and None
    path = folder / f"{os.getpid()}.run"
    data = rows(runs(200))
    with path.open("w") as file:
        for q, e, i, r, s in zip(
            *(data[k] for k in ("query", "expert", "item", "rank", "score")), strict=True
        ):
            file.write(f"{q} Q0 d{i} {r} {s:.6f} e{e}\n")
    calls["read a run of 200,000 lines"] = lambda: podium.read(path)
    return calls


def answer_requests(folder: Path) -> None:
    """Make the calls that arrive by name, one per line, until the input ends."""
    calls = build_calls(folder)
    print(json.dumps(sorted(calls)), flush=True)
    for line in sys.stdin:
        call = calls[line.strip()]
        try:
            result = call()
            count, spent = 0, 0.0
            while spent < LEAST:
                begin = time.process_time()
                call()
                spent += time.process_time() - begin
                count += 1
            scores = result.tolist() if isinstance(result, np.ndarray) else None
            answer = {"seconds": spent / count, "scores": scores if scores and len(scores) < 20_000 else None}
        except Exception as problem:  # a method that does not take this form
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), flush=True)


class Installation:
    """A process that runs calls with one interpreter."""

    def __init__(self, python: str, folder: str) -> None:
        command = [python, __file__, "--answer", folder]
        environment = os.environ | {"PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.names = self.read_answer()

    def read_answer(self) -> Any:
        """The next line of the process, decoded."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process ended before it answered; its message is above")
        return json.loads(line)

    def make_call(self, name: str) -> Any:
        """Seconds of one turn of a call, or its problem."""
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.read_answer()


def main() -> None:
    """Compare two interpreters call by call."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="*", help="interpreters of the old and the new installation")
    parser.add_argument("--only", default="", help="parts of names of calls, comma-separated")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer_requests(Path(options.answer))
        return
    if len(options.python) != 2:
        parser.error("two interpreters are needed: the old and the new")
    ratios, spent = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        pair = [Installation(python, folder) for python in options.python]
        parts = options.only.split(",")
        for name in [n for n in pair[0].names if n in pair[1].names and any(part in n for part in parts)]:
            if name.endswith("a million rows") and spent.get(name.replace("a million", "10,000"), 0.0) > SLOW:
                continue
            answers = [[side.make_call(name) for side in pair] for _ in range(options.turns)]
            if any("problem" in answer for turn in answers for answer in turn):
                continue
            old, new = (min(turn[side]["seconds"] for turn in answers) for side in (0, 1))
            ratios[name], spent[name] = new / old, old
            scores = [answers[0][side]["scores"] for side in (0, 1)]
            same = scores[0] is not None and np.allclose(*scores, rtol=1e-9, atol=1e-9, equal_nan=True)
            answer = "not compared" if scores[0] is None else "equal" if same else "DIFFERENT"
            print(
                f"{name:45} {old * 1e3:10.3f} ms {new * 1e3:10.3f} ms {ratios[name]:6.2f} {answer}",
                flush=True,
            )
    slower = {name: ratio for name, ratio in ratios.items() if ratio > 1.1}
    print(f"{len(ratios)} calls; {len(slower)} slower by more than 10 %: {slower}")
    print(f"median ratio {np.median(list(ratios.values())):.2f}")


if __name__ == "__main__":
    main()
