"""From how many votes is a judge's quality worth estimating? `crowd_bt` against `bradley_terry` and `auto`.

python benchmarks/few_votes.py [--data FOLDER] [--first 0] [--draws 10] [--judges 3] [--votes 10] [--also SPEC]

Made judges with 5 to 200 votes each; with --data instead, the votes of reading level and MIREX 2005, thinned. Printed
is the share of pairs in the true order, in points of 100: means by judges and votes per judge, the largest distances
of `auto` to the better of the two, and mean regrets. --also measures another method, such as
"crowd_bt(right=12, wrong=3)". docs/project/auto-protocol.md says what is decided by it.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from podium import Labels, Preferences, choose_method, make
from podium.data.dataset import Dataset
from podium.evaluate import evaluate, judged_only
from podium.methods import automatic_choice
from podium.testing.crowds import add_spammers
from podium_papers.paper_datasets import load_dataset

JUDGES, VOTES = (2, 3, 5, 10, 20, 50), (5, 10, 20, 30, 50, 100, 200)
ITEMS = ((1, 8), (1, 20), (1, 40), (5, 8))  # queries, items of each
CROWDS = ("uneven", "even", "random", "malicious")
BAD = 0.3
REAL, THINNED = ("reading-level", "mirex2005"), (5, 10, 15, 0)  # 0: all votes
Cell = dict[str, Any]


def sample_votes(cell: Cell, draw: int) -> Dataset:
    """Votes of judges of known accuracy on random pairs of items with normal values."""
    dice = np.random.default_rng((draw, cell["judges"], cell["votes"], cell["queries"], cell["items"]))
    accuracy = dice.uniform(0.55, 0.95, cell["judges"])
    bad = max(1, int(BAD * cell["judges"]))
    if cell["crowd"] == "even":
        accuracy[:] = 0.75
    elif cell["crowd"] != "uneven":
        accuracy[:bad] = 0.5 if cell["crowd"] == "random" else 1 - accuracy[:bad]
    value = dice.standard_normal((cell["queries"], cell["items"]))
    judge = np.repeat(np.arange(cell["judges"]), cell["votes"])
    query = dice.integers(0, cell["queries"], len(judge))
    first = dice.integers(0, cell["items"], len(judge))
    second = (first + dice.integers(1, cell["items"], len(judge))) % cell["items"]
    gap = value[query, first] - value[query, second]
    chance = accuracy[judge]
    if cell["chance"] == "logit":
        chance = _spread_chances(accuracy, np.abs(gap))[judge, np.arange(len(judge))]
    swap = (gap > 0) != (dice.random(len(judge)) < chance)
    winner, loser = np.where(swap, second, first), np.where(swap, first, second)
    truth = {q: dict(enumerate(map(float, row))) for q, row in enumerate(value)}
    names = [f"judge {j}" for j in judge.tolist()]
    votes = Preferences.from_comparisons(query.tolist(), names, winner.tolist(), loser.tolist())
    return Dataset(votes, Labels.from_dict(truth))


def _spread_chances(accuracy: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The chance of a right vote by judge and distance, logistic, with the judge's mean accuracy."""
    low, high = np.full(len(accuracy), -500.0), np.full(len(accuracy), 500.0)
    for _ in range(40):
        slope = (low + high) / 2
        chances = 0.5 + 0.5 * np.tanh(slope[:, None] * distance / 2)
        over = chances.mean(axis=1) > accuracy
        low, high = np.where(over, low, slope), np.where(over, slope, high)
    return chances


def thin_votes(data: Dataset, cell: Cell, draw: int) -> Dataset:
    """A random few of each judge's votes; bad judges are added to these."""
    votes, kept = data.preferences, data.preferences.comparisons
    if cell["votes"]:
        order = np.random.default_rng((draw, 11)).permutation(len(kept))
        by_judge = order[np.argsort(kept.expert[order], kind="stable")]
        starts = np.searchsorted(kept.expert[by_judge], np.arange(len(votes.experts)))
        place = np.arange(len(by_judge)) - starts[kept.expert[by_judge]]
        rows = np.sort(by_judge[place < cell["votes"]])
        names = votes.index.items
        votes = Preferences.from_comparisons(
            [votes.queries[int(q)] for q in kept.query_of_row[rows]],
            [votes.experts[int(e)] for e in kept.expert[rows]],
            [names[int(i)] for i in kept.winner[rows]],
            [names[int(i)] for i in kept.loser[rows]],
            tie=kept.tie[rows],
            weight=kept.weight[rows],
        )
    if cell["crowd"] != "clean":
        votes = add_spammers(votes, BAD, cell["crowd"], draw, data.labels)
    return Dataset(votes, data.labels)


def measure_cell(cell: Cell, draws: range, folder: Path | None, others: list[str]) -> Cell:
    """The pairs in the right order by method and draw, and the votes per judge and per item."""
    real = load_dataset(cell["set"], folder) if folder else None
    values: dict[str, list[float]] = {}
    density = []
    for draw in draws:
        data = thin_votes(real, cell, draw) if real else sample_votes(cell, draw)
        votes = data.preferences
        # as `auto` takes it: with the check for a reversed consensus
        checked = automatic_choice._recommend_for_crowd(votes, make("crowd_bt"), "", "").method
        methods = {
            "bradley_terry": make("bradley_terry"),
            "crowd_bt": checked,
            "auto": choose_method(votes).method,
        }
        for name, method in (methods | {spec: make(spec) for spec in others}).items():
            ranking = judged_only(method.aggregate(votes), data.labels)
            values.setdefault(name, []).append(100 * evaluate(ranking, data.labels, "pairs").mean()["pairs"])
        count = len(votes.comparisons)
        density.append((count / votes.active_experts.sum(), count / len(votes.index.items)))
    per_judge, per_item = np.mean(density, axis=0).tolist()
    return cell | {"per judge": per_judge, "per item": per_item, "values": values}


def report(rows: list[Cell], names: list[str]) -> None:
    """Means by judges or set and votes per judge, and where `auto` is below the better of the two."""
    group = "set" if "set" in rows[0] else "judges"
    mean = {n: np.array([np.mean(r["values"][n]) for r in rows]) for n in names}
    key = [(r[group], r["votes"]) for r in rows]
    print(f"{group:>14}{'votes each':>12}" + "".join(f"{n[:13]:>15}" for n in names))
    for each in dict.fromkeys(key):
        chosen = [k == each for k in key]
        print(
            f"{each[0]:>14}{each[1] or 'all':>12}" + "".join(f"{mean[n][chosen].mean():15.1f}" for n in names)
        )
    better = np.maximum(mean["bradley_terry"], mean["crowd_bt"])
    by_draw = [np.subtract(r["values"]["crowd_bt"], r["values"]["bradley_terry"]) for r in rows]
    gain = np.mean(by_draw, axis=0)  # cells share their dice within a draw
    print(
        f"crowd_bt above bradley_terry: {gain.mean():+.2f} (s.e. {gain.std(ddof=1) / len(gain) ** 0.5:.2f})"
    )
    for limit in (0, 6, 8, 11, 15, 21, 31, 51, 101):
        few = np.array([r["per judge"] < limit for r in rows])
        chosen = np.where(few, mean["bradley_terry"], mean["crowd_bt"])
        print(f"bradley_terry below {limit} votes per judge: mean regret {(better - chosen).mean():.2f}")
    for name in names:
        print(f"{name}: mean {mean[name].mean():.2f}, mean regret {(better - mean[name]).mean():.2f}")
    print("largest distances of auto beyond two standard errors:")
    beyond = []
    for row in rows:
        lags = [np.subtract(row["values"][n], row["values"]["auto"]) for n in names[:2]]
        spread = [2 * lag.std(ddof=1) / len(lag) ** 0.5 for lag in lags]
        beyond.append(max((lag.mean() - s, lag.mean(), s / 2) for lag, s in zip(lags, spread, strict=True)))
    for at in sorted(range(len(rows)), key=beyond.__getitem__, reverse=True)[:8]:
        label = ", ".join(
            f"{k} {v}" for k, v in rows[at].items() if k not in ("values", "per judge", "per item")
        )
        print(f"{label}: {beyond[at][1]:.1f} (s.e. {beyond[at][2]:.1f})")


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--judges", type=int, action="append", choices=JUDGES, help="may be repeated")
    parser.add_argument("--votes", type=int, action="append", choices=VOTES, help="may be repeated")
    parser.add_argument("--also", action="append", default=[], help="another method; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cells: list[Cell] = [
        {"judges": j, "votes": v, "queries": q, "items": i, "crowd": crowd, "chance": chance}
        for j, v, (q, i), crowd, chance in product(
            options.judges or JUDGES, options.votes or VOTES, ITEMS, CROWDS, ("constant", "logit")
        )
        if j > 2 or crowd in CROWDS[:2]
    ]
    if options.data:
        cells = [
            {"set": s, "votes": v, "crowd": c} for s, v, c in product(REAL, THINNED, ("clean", *CROWDS[2:]))
        ]
    draws = range(options.first, options.first + options.draws)
    rows = [measure_cell(cell, draws, options.data, options.also) for cell in cells]
    report(rows, ["bradley_terry", "crowd_bt", "auto", *options.also])
    if options.json is not None:
        options.json.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
