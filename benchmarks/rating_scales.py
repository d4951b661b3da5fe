"""Which method serves ratings on fine scales? Made raters with bias and noise, on scales of 5 to 101 levels.

python benchmarks/rating_scales.py [--first 0] [--draws 3] [--json FILE]

Printed is the share of pairs in the right order, in points of 100, by scale, bad raters and method, and the mean of
every scale. docs/project/auto-protocol.md says what is decided by it.
"""

from __future__ import annotations

import argparse
import json
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


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = (*METHODS, "auto")
    rows = []
    print(f"{'scale and bad raters':32}" + "".join(f"{name[:16]:>18}" for name in names))
    for scale, grid in SCALES.items():
        cells = []
        for share, kind in BAD:
            values = []
            for draw in range(options.first, options.first + options.draws):
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
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
