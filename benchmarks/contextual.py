"""Do the intervals of contextual leaderboards hold what they promise, and how long does a large board take?

python benchmarks/contextual.py [coverage] [slices] [speed] [--repeats 1000]

Protocol, fixed before the first run.

- coverage: 8 items with normal scores (sd 0.7). Each vote is on a random pair; both answers have a length (log-normal,
  sd 0.6, longer by exp(0.2 z) for an item with the standard normal number z) and a number of marks (Poisson, mean 3).
  Log odds are the difference of scores plus 1.0 times the normalized difference of the lengths, 0.3 times that of the
  marks and 0.1 for the first side; no ties. `contextual_leaderboard` controls length, markdown and order. Counted: the
  share of 95 % intervals of each effect that hold the truth, and of those of the scores (less the mean of all items).
  Each must lie within 94 to 96 % (at 1,000 repeats an exact interval leaves 94 to 96 in 15 % of the cases: one standard
  error is 0.7 points for an effect; the mean over the three effects is more precise).
  Rows: 3,000 votes; 500 votes; 3,000 votes where pairs are shown with frequencies 1 to 20 and `pair_floor=50`; 40
  judges with normal opinions of their own about the items (sd 0.5), 3,000 votes, intervals over experts. With judges
  the truth is what a fit to 400,000 votes by as many judges gives.
- slices: 8 items with scores as above, no covariates; slices of 2,000 and 1,000 votes, of 1,000, 500, 100, 30 and 10,
  and eight of 400. With equal slices: the share of boards that name an item whose place depends on the slice, at most
  5 %. With normal deviations by slice and item (sd 0.4): the share of 95 % intervals of slice scores (less the mean of
  all items) that hold the truth. 300 repeats each, fewer with fewer repeats.
- speed: a million votes among 100 items with 5 covariates, from arrays of integer codes: seconds of processor time and
  of wall-clock time for the whole board (the plain board included), best of three. It must be below 2 s; the same with
  100 bootstrap rounds, once, below 20 s.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from podium.analysis.leaderboard import contextual_leaderboard
from podium.data.ids import CodedColumn, Ids
from podium.data.vote_table import VoteTable
from podium.kernels.dispatch import F8

SECTIONS = ("coverage", "slices", "speed")
ITEMS, CONTROL, EFFECTS = 8, ("length", "markdown", "order"), np.array([1.0, 0.3, 0.1])
NAMES = Ids([f"m{k}" for k in range(ITEMS)])
ROWS: dict[str, dict[str, Any]] = {
    "3,000 votes": {"votes": 3000},
    "500 votes": {"votes": 500},
    "unequal pairs, pair_floor=50": {"votes": 3000, "unequal": True, "settings": {"pair_floor": 50}},
    "40 judges with opinions": {"votes": 3000, "judges": 40, "settings": {"over": "experts"}},
}


def normalized_difference(a: F8, b: F8) -> F8:
    """(a - b) / (a + b), 0 where both are 0."""
    return np.divide(a - b, a + b, out=np.zeros(len(a)), where=a + b > 0)


def draw_votes(
    random: np.random.Generator, scores: F8, verbosity: F8, votes: int, judges: int = 0, unequal: bool = False
) -> VoteTable:
    """Votes of one repeat."""
    pairs = np.array([(i, j) for i in range(ITEMS) for j in range(ITEMS) if i != j])
    often = np.ones(len(pairs))
    if unequal:
        often = 1 + (pairs.min(axis=1) * 7 + pairs.max(axis=1) * 3) % 20.0
    a, b = pairs[random.choice(len(pairs), votes, p=often / often.sum())].T
    lengths = [np.exp(5 + 0.2 * verbosity[i] + 0.6 * random.normal(size=votes)) for i in (a, b)]
    marks = [random.poisson(3.0, votes).astype(float) for _ in range(2)]
    x = np.stack([normalized_difference(*lengths), normalized_difference(*marks), np.ones(votes)], axis=1)
    judge = random.integers(0, judges, votes) if judges else np.zeros(votes, int)
    logits = scores[a] - scores[b] + x @ EFFECTS
    if judges:
        opinions = random.normal(size=(judges, ITEMS)) * 0.5
        logits += opinions[judge, a] - opinions[judge, b]
    won = random.random(votes) < 1 / (1 + np.exp(-logits))
    return VoteTable.from_columns(
        CodedColumn(a, NAMES), CodedColumn(b, NAMES), won.astype(float), expert=judge,
        attributes={"length": tuple(lengths), "markdown": tuple(marks)},
    )  # fmt: skip


def find_truth(scores: F8, effects: F8, judges: int) -> tuple[F8, F8]:
    """What infinitely many votes by as many judges would give."""
    if not judges:
        return scores - scores.mean(), effects
    votes = draw_votes(np.random.default_rng(7), scores, np.zeros(ITEMS), 400_000, 400_000)
    board = contextual_leaderboard(votes, CONTROL, over="votes", scale="natural")
    return np.array([board[f"m{k}"].score for k in range(ITEMS)]), np.array([e.points for e in board.effects])


def run_coverage(repeats: int) -> None:
    """All rows."""
    steps = np.array([1 / 3, 1 / 3, 1.0])
    for name, row in ROWS.items():
        random = np.random.default_rng(30)
        held, scores_held, used = np.zeros(3), [], 0
        given = {key: row[key] for key in ("votes", "judges", "unequal") if key in row}
        # with judges, the truth of one set of scores serves all repeats
        fixed = random.normal(size=ITEMS) * 0.7 if "judges" in row else None
        truths = None if fixed is None else find_truth(fixed, steps * EFFECTS, row["judges"])
        for _ in range(repeats if fixed is None else max(repeats // 2, 1)):
            scores = random.normal(size=ITEMS) * 0.7 if fixed is None else fixed
            true_scores, true_effects = truths or find_truth(scores, steps * EFFECTS, 0)
            votes = draw_votes(random, scores, random.normal(size=ITEMS), **given)
            board = contextual_leaderboard(
                votes, CONTROL, scale="natural", **{"over": "votes", **row.get("settings", {})}
            )
            if not board.plain.estimate.core.all():
                continue
            used += 1
            held += [e.low <= truth <= e.high for e, truth in zip(board.effects, true_effects, strict=True)]
            scores_held += [r.low <= true_scores[int(str(r.item)[1:])] <= r.high for r in board]
        print(json.dumps({
            "section": "coverage", "row": name, "effects": (100 * held / used).round(1).tolist(),
            "all effects": round(100 * held.mean() / used, 2), "scores": round(100 * float(np.mean(scores_held)), 2),
            "repeats": used,
        }), flush=True)  # fmt: skip


def run_slices(repeats: int) -> None:
    """Equal slices, and slices with deviations."""
    random = np.random.default_rng(32)
    for sizes in ((2000, 1000), (1000, 500, 100, 30, 10), (400,) * 8):
        part = np.repeat(np.arange(len(sizes)), sizes)
        named, held = 0, []
        for repeat in range(2 * min(repeats, 300)):
            planted = random.normal(size=(len(sizes), ITEMS)) * (0.4 if repeat % 2 else 0.0)
            scores = random.normal(size=ITEMS) * 0.7 + planted
            a = random.integers(0, ITEMS, len(part))
            b = (a + random.integers(1, ITEMS, len(part))) % ITEMS
            won = random.random(len(part)) < 1 / (1 + np.exp(scores[part, b] - scores[part, a]))
            votes = VoteTable.from_columns(
                CodedColumn(a, NAMES), CodedColumn(b, NAMES), won.astype(float), attributes={"slice": part}
            )
            boards = contextual_leaderboard(votes, slices="slice", over="votes", scale="natural").slices
            assert boards is not None
            truth = scores - scores.mean(axis=1, keepdims=True)
            if repeat % 2:
                held += [r.low <= truth[int(r.slice), int(str(r.item)[1:])] <= r.high for r in boards]
            else:
                named += bool(boards.dependent_items)
        row = {"sizes": sizes, "named": round(100 * named / min(repeats, 300), 1)}
        print(
            json.dumps({"section": "slices", **row, "scores": round(100 * float(np.mean(held)), 2)}),
            flush=True,
        )


def run_speed() -> None:
    """A million votes."""
    random = np.random.default_rng(31)
    n, items = 1_000_000, 100
    scores = random.normal(size=items) * 0.5
    a = random.integers(0, items, n)
    b = (a + random.integers(1, items, n)) % items
    attributes = {f"c{k}": tuple(random.lognormal(3, 1, (2, n))) for k in range(5)}
    won = (random.random(n) < 1 / (1 + np.exp(scores[b] - scores[a]))).astype(float)
    names = Ids([f"m{k:03d}" for k in range(items)])
    votes = VoteTable.from_columns(CodedColumn(a, names), CodedColumn(b, names), won, attributes=attributes)
    for rounds, repeats in ((0, 3), (100, 1)):
        used, wall = [], []
        for _ in range(repeats):
            start = time.process_time(), time.perf_counter()
            contextual_leaderboard(votes, list(attributes), bootstrap=rounds)
            used.append(time.process_time() - start[0])
            wall.append(time.perf_counter() - start[1])
        row = {"bootstrap": rounds, "processor_s": round(min(used), 2), "wall_s": round(min(wall), 2)}
        print(json.dumps({"section": "speed", **row}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", default=SECTIONS)
    parser.add_argument("--repeats", type=int, default=1000)
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"unknown section {unknown.pop()}; accepted: {', '.join(SECTIONS)}")
    if "coverage" in given.sections:
        run_coverage(given.repeats)
    if "slices" in given.sections:
        run_slices(given.repeats)
    if "speed" in given.sections:
        run_speed()


if __name__ == "__main__":
    main()
