"""Which method serves ratings? Made raters with bias and noise, on scales of 5 to 101 levels or in small surveys.

python benchmarks/rating_scales.py [--part scales] [--first 0] [--draws 3] [--json FILE]

Printed is the share of pairs in the right order, in points of 100, by method. `--part scales`: by scale and bad raters,
and the mean of every scale. `--part surveys`: from one rating per rater to thousands, on 2 to 10 levels, with the
ratings per rater for each chance that `dawid_skene` estimates (levels x levels), and the distance of `auto` to the
better of `dawid_skene` and `crowdagg`. docs/project/auto-protocol.md says what is decided by it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium import Labels, Preferences, choose_method, make
from podium.evaluate import evaluate
from podium.testing.crowds import SpammerKind, add_spammers

METHODS = ("dawid_skene", "crowdagg", "quality_weighted", "combsum(normalizer=zscore)")
SCALES = {"1 to 5": (1, 5, 1), "half stars": (0.5, 5, 0.5), "0 to 10": (0, 10, 1), "0 to 100 by 5": (0, 100, 5),
          "0 to 100": (0, 100, 1)}  # fmt: skip
BAD: tuple[tuple[float, SpammerKind], ...] = ((0.0, "random"), (0.3, "random"), (0.3, "malicious"))
QUERIES, ITEMS, RATERS, RATED = 20, 20, 15, 10


def sample_ratings(low: float, high: float, step: float, seed: int) -> tuple[Preferences, Labels]:
    """Ratings of raters with a bias and noise of their own, and the true values."""
    dice = np.random.default_rng(seed)
    bias, noise = dice.normal(0, 0.1, RATERS), dice.uniform(0.05, 0.4, RATERS)
    lists: dict[int | str, dict[int | str, dict[int | str, float]]] = {}
    truth: dict[int | str, dict[int | str, float]] = {}
    for query in range(QUERIES):
        value = dice.random(ITEMS)
        truth[query] = {f"item {i:02}": float(v) for i, v in enumerate(value)}
        lists[query] = {}
        for rater in range(RATERS):
            items = dice.permutation(ITEMS)[:RATED]
            seen = np.clip(value[items] + bias[rater] + noise[rater] * dice.standard_normal(RATED), 0, 1)
            given = low + np.rint(seen * (high - low) / step) * step
            rated = zip(items.tolist(), given.tolist(), strict=True)
            lists[query][f"rater {rater:02}"] = {f"item {i:02}": v for i, v in rated}
    return Preferences.from_lists(lists), Labels.from_dict(truth)


@dataclass(frozen=True)
class Survey:
    """Raters who rate some items of every query with a bias and noise of their own; some rate at random."""

    queries: int
    items: int
    raters: int
    rated: int
    levels: int
    noise: tuple[float, float] = (0.2, 0.2)
    bias: float = 0.1
    random: float = 0.0  # share of the raters

    def sample(self, seed: int) -> tuple[Preferences, Labels]:
        """The ratings, and the true values."""
        dice = np.random.default_rng(seed)
        bias, noise = dice.normal(0, self.bias, self.raters), dice.uniform(*self.noise, self.raters)
        value = dice.random((self.queries, self.items))
        rows = []
        for query in range(self.queries):
            for rater in range(self.raters):
                items = dice.permutation(self.items)[: self.rated]
                seen = value[query, items] + bias[rater] + noise[rater] * dice.standard_normal(self.rated)
                if rater < self.random * self.raters:
                    seen = dice.random(self.rated)
                given = np.rint(np.clip(seen, 0, 1) * (self.levels - 1))
                rows += [(query, rater, int(i), float(g)) for i, g in zip(items, given, strict=True)]
        query, rater, item, score = map(list, zip(*rows, strict=True))
        truth = {q: dict(enumerate(map(float, row))) for q, row in enumerate(value)}
        return Preferences.from_rows(query, rater, item, score=score), Labels.from_dict(truth)


UNEVEN = (0.05, 0.5)
SURVEYS = {
    "1,000 raters, 1 of 100 items": Survey(1, 100, 1000, 1, 5),
    "1,000 raters, 3 of 100 items": Survey(1, 100, 1000, 3, 5),
    "500 raters, 10 of 50, 30 % random": Survey(1, 50, 500, 10, 5, random=0.3),
    "30 raters, 20 items": Survey(1, 20, 30, 20, 5),
    "8 raters, 5 of 12 items": Survey(1, 12, 8, 5, 5),
    "8 raters, 5 of 12 items, 10 levels": Survey(1, 12, 8, 5, 10),
    "100 raters, 6 of 150, 10 levels": Survey(1, 150, 100, 6, 10),
} | {
    f"{spread}, {queries} x {items} items, {raters} raters, {levels} levels": Survey(
        queries, items, raters, items, levels, noise, 0.0
    )
    for spread, noise in (("even", (0.2, 0.2)), ("uneven", UNEVEN))
    for queries, items, raters in ((1, 10, 10), (1, 50, 10), (5, 20, 10), (20, 10, 10), (20, 20, 20), (20, 20, 40),
                                   (50, 20, 10))
    for levels in (2, 3, 5, 10)
}  # fmt: skip
SURVEY_METHODS = ("dawid_skene", "crowdagg", "majority", "combanz(normalizer=zscore)", "auto")


def measure_surveys(first: int, draws: int) -> list[dict[str, object]]:
    """The mean of every method over the draws, by survey."""
    print(
        f"{'survey':46}{'per chance':>11}"
        + "".join(f"{n[:12]:>14}" for n in SURVEY_METHODS)
        + f"{'auto lags':>11}"
    )
    rows: list[dict[str, object]] = []
    for name, survey in SURVEYS.items():
        values = []
        for draw in range(first, first + draws):
            ratings, labels = survey.sample(draw)
            methods = [choose_method(ratings).method if n == "auto" else make(n) for n in SURVEY_METHODS]
            values.append(
                [100 * evaluate(m.aggregate(ratings), labels, "pairs").mean()["pairs"] for m in methods]
            )
        mean = np.mean(values, axis=0)
        chance = survey.queries * survey.rated / survey.levels**2
        lag = max(mean[0], mean[1]) - mean[-1]
        print(f"{name:46}{chance:11.2f}" + "".join(f"{v:14.1f}" for v in mean) + f"{lag:11.1f}", flush=True)
        rows.append({"survey": name, "per chance": chance, "methods": SURVEY_METHODS, "values": values})
    return rows


def measure_scales(first: int, draws: int) -> list[dict[str, object]]:
    """The mean of every method over the draws, by scale and bad raters."""
    names = (*METHODS, "auto")
    rows: list[dict[str, object]] = []
    print(f"{'scale and bad raters':32}" + "".join(f"{name[:16]:>18}" for name in names))
    for scale, grid in SCALES.items():
        cells = []
        for share, kind in BAD:
            values = []
            for draw in range(first, first + draws):
                ratings, labels = sample_ratings(*grid, draw)
                spoiled = add_spammers(ratings, share, kind, draw, labels) if share else ratings
                methods = {name: None if name == "dawid_skene" and scale == "0 to 100" else make(name)
                           for name in METHODS} | {"auto": choose_method(spoiled).method}  # fmt: skip
                values.append(
                    [
                        np.nan
                        if method is None
                        else 100 * evaluate(method.aggregate(spoiled), labels, "pairs").mean()["pairs"]
                        for method in methods.values()
                    ]
                )
            cells.append(np.mean(values, axis=0))
            rows.append({"scale": scale, "share": share, "kind": kind, "values": values})
            label = f"{scale}, {f'{share:.0%} {kind}' if share else 'clean'}"
            print(f"{label:32}" + "".join(f"{v:18.1f}" for v in cells[-1]), flush=True)
        print(f"{f'{scale}, mean':32}" + "".join(f"{v:18.1f}" for v in np.mean(cells, axis=0)))
    return rows


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("scales", "surveys"), default="scales")
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    measure = measure_scales if options.part == "scales" else measure_surveys
    rows = measure(options.first, options.draws)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
