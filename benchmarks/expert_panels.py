"""`auto` on small panels of experts and on experts that share a bias: an amendment of docs/project/auto-protocol.md.

python benchmarks/expert_panels.py --data FOLDER [--first 100] [--part panels|biases] [--set NAME]

Panels: random 3, 5 and 8 experts of every set of `automatic_choice.py`, five draws each. Biases: made experts, ten
draws; every query has a true value per item and a bias per group of experts, both normal, and an expert sees a
mixture of them with noise. Printed is NDCG@10 in points of 100 of `rrf`, `rbc` and the method that `choose_method`
names: the mean over the draws, and the largest loss against the better of the two in one draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from automatic_choice import REAL, load_set, measure

from podium import Labels, Preferences, choose_method

SIZES, PANEL_DRAWS, BIAS_DRAWS = (3, 5, 8), 5, 10
METHODS = ("rrf", "rbc", "auto")
GRADES = (0.5, 1.0, 1.6)  # true values from which an item has grade 1, 2 and 3
QUERIES = 40


class Group(NamedTuple):
    """Experts alike: how many, and what they see."""

    experts: int
    truth: float
    bias: float
    noise: float


BIASES: dict[str, tuple[tuple[Group, ...], int, int | None]] = {  # groups, items, length of the lists
    "3 good, 3 biased": ((Group(3, 1, 0, 0.7), Group(3, 0.5, 1, 0.35)), 30, None),
    "2 good, 5 biased": ((Group(2, 1, 0, 0.7), Group(5, 0.4, 1, 0.5)), 30, None),
    "3 good, 3 near copies": ((Group(3, 1, 0, 1), Group(3, 0.3, 1, 0.2)), 30, None),
    "3 good, 3 near copies, top 10": ((Group(3, 1, 0, 1), Group(3, 0.3, 1, 0.2)), 30, 10),
    "4 good, 4 biased, top 15": ((Group(4, 1, 0, 0.8), Group(4, 0.5, 1, 0.5)), 30, 15),
    "1 lexical, 4 dense, top 20": ((Group(1, 1, 0.8, 0.4), Group(4, 1, 0.7, 0.4)), 60, 20),
    "2 lexical, 3 dense": ((Group(2, 1, 0.7, 0.4), Group(3, 1, 0.7, 0.4)), 60, None),
    "4 alike, 2 independent": ((Group(4, 1, 0.6, 0.25), Group(2, 1, 0, 0.9)), 30, None),
    "4 alike, 2 random": ((Group(4, 1, 0.6, 0.25), Group(2, 0, 0, 1)), 30, None),
    "4 alike, 2 random, top 10": ((Group(4, 1, 0.6, 0.25), Group(2, 0, 0, 1)), 30, 10),
    "10 equal, top 3": ((Group(10, 1, 0, 0.8),), 30, 3),
    "6 equal": ((Group(6, 1, 0, 1),), 30, None),
}


def simulate_groups(
    groups: tuple[Group, ...], items: int, length: int | None, draw: int
) -> tuple[Preferences, Labels]:
    """The lists of all groups, and grades by the true values."""
    dice = np.random.default_rng(draw)
    names = [f"d{i}" for i in range(items)]
    lists: dict[int, dict[str, list[str]]] = {}
    grades: dict[int, dict[str, float]] = {}
    for query in range(QUERIES):
        truth = dice.normal(size=items)
        grades[query] = dict(zip(names, np.digitize(truth, GRADES).astype(float).tolist(), strict=True))
        lists[query] = {}
        for number, group in enumerate(groups):
            bias = dice.normal(size=items)
            for expert in range(group.experts):
                seen = group.truth * truth + group.bias * bias + group.noise * dice.normal(size=items)
                lists[query][f"{number}.{expert}"] = [names[i] for i in np.argsort(-seen)[:length]]
    unlisted = "unknown" if length is None else "below"
    return Preferences.from_lists(lists, unlisted=unlisted), Labels.from_dict(grades)


def draw_panel(preferences: Preferences, size: int, draw: int) -> Preferences:
    """Some of the experts, at random."""
    experts = preferences.experts.tolist()
    return preferences.with_experts(
        [experts[k] for k in np.random.default_rng((draw, size)).permutation(len(experts))[:size]]
    )


def build_cases(
    part: str, folder: Path, first: int, wanted: list[str] | None
) -> Iterator[tuple[str, list[tuple[Preferences, Labels]]]]:
    """By name, the draws of a case."""
    if part == "biases":
        for name, (groups, items, length) in BIASES.items():
            if not wanted or name in wanted:
                yield name, [simulate_groups(groups, items, length, first + k) for k in range(BIAS_DRAWS)]
        return
    for name in (name for sets in REAL.values() for name in sets):
        if not wanted or name in wanted:
            preferences, labels = load_set(name, folder)
            for size in SIZES:
                draws = range(first, first + PANEL_DRAWS)
                yield f"{size} experts of {name}", [(draw_panel(preferences, size, k), labels) for k in draws]


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=("panels", "biases"))
    parser.add_argument("--set", action="append", help="a set or a case of made experts; may be repeated")
    parser.add_argument("--first", type=int, default=100, help="the first draw")
    options = parser.parse_args()
    for part in (options.part,) if options.part else ("panels", "biases"):
        print(f"{'case':36}" + "".join(f"{m:>10}" for m in METHODS) + "   largest loss", flush=True)
        means = []
        for name, draws in build_cases(part, options.data, options.first, options.set):
            rows = []
            for preferences, labels in draws:
                named = repr(choose_method(preferences).method)
                rows.append(
                    [np.nanmean(measure(named if m == "auto" else m, preferences, labels)) for m in METHODS]
                )
            table = np.array(rows)
            means.append(table.mean(axis=0))
            loss = max(0.0, float((table[:, :2].max(axis=1) - table[:, 2]).max()))
            print(f"{name:36}" + "".join(f"{v:10.2f}" for v in means[-1]) + f"{loss:15.2f}", flush=True)
        print(f"{'mean':36}" + "".join(f"{v:10.2f}" for v in np.mean(means, axis=0)) + "\n", flush=True)


if __name__ == "__main__":
    main()
