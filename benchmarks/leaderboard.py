"""A leaderboard with intervals from many votes: the Chatbot Arena counts, and a million votes among a thousand items.

python benchmarks/leaderboard.py [--quick]

What is timed starts with the votes in memory, one row a vote, and ends with the leaderboard: counts, fit, intervals by
the bootstrap, tests of all pairs and checks. The first call, which imports modules, is left out.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from timing import measure

from podium import Preferences, read
from podium.analysis.leaderboard import leaderboard
from podium.data.ids import CodedColumn, Ids

DATA = Path(os.environ.get("PODIUM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
ARENA = DATA / "chatbot-arena-counts" / "chatbotarena_20240814.json.gz"


def arena() -> Preferences:
    """The public counts as single votes in random order."""
    counted = read(ARENA).preferences
    assert counted is not None
    v, names = counted.comparisons, counted.index.items
    often = v.weight.astype(np.int64)
    order = np.random.default_rng(0).permutation(int(often.sum()))
    winner, loser, tie = (np.repeat(c, often)[order] for c in (v.winner, v.loser, v.tie))
    return _preferences(winner, loser, tie, names)


def synthetic(items: int, votes: int) -> Preferences:
    """Votes by Bradley-Terry."""
    random = np.random.default_rng(0)
    truth = random.normal(size=items)
    a = random.integers(0, items, votes)
    b = (a + random.integers(1, items, votes)) % items
    won = random.random(votes) < 1 / (1 + np.exp(truth[b] - truth[a]))
    none = np.zeros(votes, np.bool_)
    return _preferences(np.where(won, a, b), np.where(won, b, a), none, Ids(np.arange(items)))


def _preferences(winner: object, loser: object, tie: object, names: Ids) -> Preferences:
    one = np.zeros(len(winner), np.int64)  # type: ignore[arg-type]
    columns = (CodedColumn(np.asarray(c, np.int64), names) for c in (winner, loser))
    return Preferences.from_comparisons(
        CodedColumn(one, Ids(["all"])), CodedColumn(one, Ids(["votes"])), *columns, tie=tie
    )  # type: ignore[arg-type]


def run(quick: bool = False) -> list[dict[str, Any]]:
    """A row per set of votes and number of rounds."""
    rows = []
    cases = [("1,000 items, 1,000,000 votes", synthetic(1000, 1_000_000), (100,) if quick else (100, 1000))]
    if ARENA.exists():
        cases.insert(0, ("Chatbot Arena, 129 items, 1,670,250 votes", arena(), (0, 100, 1000)))
    for name, votes, rounds in cases:
        for count in rounds:
            leaderboard(votes, bootstrap=min(count, 20))  # modules are imported before anything is timed
            taken, _ = measure(lambda v=votes, n=count: leaderboard(v, bootstrap=n), repeats=5)  # type: ignore[misc]
            errors = f"{count:,} bootstrap rounds" if count else "sandwich errors"
            rows.append({"votes": name, "errors": errors, "time": str(taken)})
    return rows


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true")
    for row in run(words.parse_args().quick):
        print(f"{row['votes']}, {row['errors']}: {row['time']}")
