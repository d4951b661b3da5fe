"""Whom do the verdicts of `podium annotators` dismiss? Crowds are simulated with annotators of known quality.

python benchmarks/verdicts.py [--repeats 20] [--json FILE]

Counted are honest annotators who are called random or malicious (at most 5 % should be, with few votes and with many),
and how many of those who guess, or who answer the other way round, are found. Honest annotators are right in 60 to 95 %
of their answers. The cases: crowds of honest annotators alone, with items that many or few others judge; crowds with
guessing and malicious annotators; ratings of which few are positive, so that honest answers may all be equal; two
annotators who contradict each other, of whom either may be the honest one; and single pairs asked again and again, on
which one honest annotator differs.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from podium import Preferences
from podium.analysis.annotators import annotators
from podium.testing.crowds import simulate

Random = np.random.Generator
Case = tuple[Preferences, dict[str, str]]  # judgements, and annotator -> honest, random, malicious
BAD = ("random", "malicious")


def crowd(
    random: Random, votes: int, *, items: int = 30, honest: int = 30, guess: int = 0, evil: int = 0
) -> Case:
    """Votes on random pairs of one query."""
    quality = {f"honest {k}": float(q) for k, q in enumerate(random.uniform(0.6, 0.95, honest))}
    quality |= {f"random {k}": 0.5 for k in range(guess)}
    quality |= {f"malicious {k}": float(q) for k, q in enumerate(random.uniform(0.05, 0.25, evil))}
    made = simulate(quality, items=items, judgements=votes, seed=int(random.integers(1 << 31)))
    return made.preferences, {name: name.split()[0] for name in quality}


def rare(random: Random, votes: int) -> Case:
    """Ratings 0 or 1 of items of which 5 % are positive, by honest annotators who are right in 97 %."""
    items, people = 200, 30
    truth = random.random(items) < 0.05
    rows = [
        (f"honest {k}", int(i), int(truth[i] == (random.random() < 0.97)))
        for k in range(people)
        for i in random.permutation(items)[:votes]
    ]
    who, item, rating = zip(*rows, strict=True)
    p = Preferences.from_rows([0] * len(rows), who, item, score=rating)
    return p, {f"honest {k}": "honest" for k in range(people)}


def lazy(random: Random, votes: int) -> Case:
    """Ratings 0 or 1, half of them positive, by honest annotators and by some who always say 1."""
    items, people = 200, 30
    truth = random.random(items) < 0.5
    rows = [
        (
            f"honest {k}" if k < 24 else f"random {k}",
            int(i),
            int(k >= 24 or truth[i] == (random.random() < 0.85)),
        )
        for k in range(people)
        for i in random.permutation(items)[:votes]
    ]
    who, item, rating = zip(*rows, strict=True)
    p = Preferences.from_rows([0] * len(rows), who, item, score=rating)
    return p, {w: w.split()[0] for w in who}


def two(random: Random, votes: int) -> Case:
    """One honest annotator and one who answers the other way round."""
    made = simulate(
        {"honest": 0.9, "other": 0.1}, items=12, judgements=votes, seed=int(random.integers(1 << 31))
    )
    return made.preferences, {"honest": "honest"}


def again(_: Random, votes: int) -> Case:
    """Six annotators answer one pair again and again, always alike; one of them sees it the other way round."""
    who = [f"honest {k}" for k in range(6) for _ in range(votes)]
    won = ["b" if w == "honest 5" else "a" for w in who]
    lost = ["a" if w == "b" else "b" for w in won]
    return Preferences.from_comparisons([0] * len(who), who, won, lost), dict.fromkeys(who, "honest")


CASES: dict[str, tuple[Callable[..., Case], dict[str, int]]] = {
    "honest, 30 items": (crowd, {}),
    "honest, 300 items": (crowd, {"items": 300}),
    "20 honest, 6 random, 4 malicious": (crowd, {"honest": 20, "guess": 6, "evil": 4}),
    "honest, ratings, 5 % positive": (rare, {}),
    "24 honest, 6 who always say 1": (lazy, {}),
    "two who contradict each other": (two, {}),
    "one pair again and again": (again, {}),
}
VOTES = (10, 16, 30, 60, 120, 400)


def count(
    case: Callable[..., Case], how: dict[str, int], votes: int, repeats: int
) -> dict[str, Counter[str]]:
    """By true kind, how often each verdict is given."""
    found: dict[str, Counter[str]] = {}
    for repeat in range(repeats):
        p, kinds = case(np.random.default_rng([repeat, votes]), votes, **how)
        for row in annotators(p, method="copeland").rows:
            if row.annotator in kinds:
                found.setdefault(kinds[row.annotator], Counter())[row.verdict] += 1
    return found


def lines(name: str, votes: int, found: dict[str, Counter[str]]) -> Iterator[dict[str, object]]:
    """One line per true kind."""
    for kind, verdicts in found.items():
        total = verdicts.total()
        shares = {v: round(100 * n / total, 1) for v, n in sorted(verdicts.items())}
        bad = round(100 * sum(verdicts[v] for v in BAD) / total, 1)
        yield {
            "case": name,
            "votes": votes,
            "kind": kind,
            "annotators": total,
            "dismissed": bad,
            "verdicts": shares,
        }


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    kept = []
    for name, (case, how) in CASES.items():
        print(name)
        for votes in VOTES:
            if case in (rare, lazy) and votes > 200:
                continue
            for line in lines(name, votes, count(case, how, votes, asked.repeats)):
                kept.append(line)
                print(
                    f"  {votes:4d} {line['kind']:10s} dismissed {line['dismissed']:5.1f} %   {line['verdicts']}",
                    flush=True,
                )
    if asked.json is not None:
        asked.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
