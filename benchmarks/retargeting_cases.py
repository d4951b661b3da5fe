"""Retargeting on made cases: what it does where lists and features mislead or where lists are noisy or short.

python benchmarks/retargeting_cases.py [--draws 20] [--first 0] [--only NAME] [--before] [--json FILE]

Every case has 100 items (the first line of its function says what is special about it) and a known order.
Printed are the means over the draws of Kendall's tau to that order, in percent, with the standard deviation
of retargeting, and in how many draws the features were used. With --before there is also retargeting without
what was added because of these cases: copied features stay, the gate does not allow for noise, unlisted items
have the mean of their list, and the search starts from single lists that end early too.

The thresholds of copies with noise were chosen on draws 0 to 19; reported are draws 100 to 119 (--first 100).
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from podium import Features, Preferences, make
from podium.core.errors import PodiumWarning
from podium.methods.feature import retargeting, retargeting_search

ITEMS = 100
Random = np.random.Generator


class MadeCase(NamedTuple):
    """Features (or none), the true scores, and lists as columns; NaN where a list does not have an item."""

    features: Any
    truth: Any
    lists: Any


def sample_linear(random: Random, noise: float, lists: int = 6, features: int = 8) -> MadeCase:
    """Scores linear in the features, and lists with equal noise (in standard deviations of the scores)."""
    x = random.normal(size=(ITEMS, features))
    truth = x @ random.normal(size=features)
    return MadeCase(x, truth, truth[:, None] + noise * truth.std() * random.normal(size=(ITEMS, lists)))


def sample_feature_as_list(random: Random) -> MadeCase:
    """One of the lists is also a feature, as a monotone transform; the other features are noise."""
    case = sample_linear(random, 1.0)
    other = random.normal(size=(ITEMS, 3))
    lists = case.lists.copy()
    lists[:, 0] = case.truth + 2 * case.truth.std() * random.normal(size=ITEMS)
    return MadeCase(np.column_stack((np.arctan(lists[:, 0]), other)), case.truth, lists)


def sample_rounded_feature(random: Random) -> MadeCase:
    """As before, and the feature is rounded to 60 levels."""
    case = sample_feature_as_list(random)
    x = case.features.copy()
    place = case.lists[:, 0].argsort().argsort()
    x[:, 0] = place * 60 // ITEMS
    return MadeCase(x, case.truth, case.lists)


def sample_near_copy(random: Random, noise: float) -> MadeCase:
    """One of the lists with noise (in its standard deviations) is also a feature; the other features are noise."""
    case = sample_linear(random, 1.0)
    one = case.lists[:, 0]
    x = np.column_stack((one + noise * one.std() * random.normal(size=ITEMS), random.normal(size=(ITEMS, 3))))
    return MadeCase(x, case.truth, case.lists)


def sample_useful_copy(random: Random) -> MadeCase:
    """One of the lists is also a feature, and the other features explain the scores."""
    case = sample_linear(random, 1.0)
    return MadeCase(np.column_stack((case.lists[:, 0], case.features)), case.truth, case.lists)


def sample_useful_near_copy(random: Random, noise: float = 1.0) -> MadeCase:
    """One of the lists is with little noise also a feature, and the other features explain the scores."""
    case = sample_linear(random, noise)
    one = case.lists[:, 0]
    return MadeCase(
        np.column_stack((one + 0.2 * one.std() * random.normal(size=ITEMS), case.features)),
        case.truth,
        case.lists,
    )


def sample_leading_feature(random: Random) -> MadeCase:
    """Most of the scores is one feature, which is near each of the lists."""
    x = random.normal(size=(ITEMS, 4))
    truth = x @ np.array([1.0, 0.15, 0.15, 0.15])
    return MadeCase(x, truth, truth[:, None] + 0.3 * truth.std() * random.normal(size=(ITEMS, 6)))


def sample_leading_feature_clean(random: Random) -> MadeCase:
    """Most of the scores is one feature; one list has no noise, the others have much."""
    case = sample_leading_feature(random)
    lists = case.truth[:, None] + case.truth.std() * random.normal(size=(ITEMS, 6))
    lists[:, 0] = case.truth
    return MadeCase(case.features, case.truth, lists)


def sample_nonlinear(random: Random) -> MadeCase:
    """Scores that depend on products and thresholds of the features, which a linear sum barely explains."""
    x = random.normal(size=(ITEMS, 6))
    truth = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + (x[:, 3] > 0.5)
    return MadeCase(x, truth, truth[:, None] + 0.8 * truth.std() * random.normal(size=(ITEMS, 6)))


def sample_monotone(random: Random) -> MadeCase:
    """Scores that are sums of monotone transforms of the features."""
    x = random.normal(size=(ITEMS, 4))
    truth = np.exp(x[:, 0]) + np.cbrt(x[:, 1]) - np.arctan(3 * x[:, 2])
    return MadeCase(x, truth, truth[:, None] + 0.8 * truth.std() * random.normal(size=(ITEMS, 6)))


def sample_collusion(random: Random) -> MadeCase:
    """Three of eight lists copy one another with little noise and are unrelated to the truth."""
    case = sample_linear(random, 0.8, lists=5)
    wrong = random.normal(size=ITEMS)
    copies = wrong[:, None] + 0.1 * random.normal(size=(ITEMS, 3))
    return MadeCase(case.features, case.truth, np.column_stack((case.lists, copies)))


def sample_top(random: Random) -> MadeCase:
    """Lists of the 20 items that each puts first, and no features."""
    case = sample_linear(random, 0.6)
    place = (-case.lists).argsort(axis=0).argsort(axis=0)
    return MadeCase(None, case.truth, np.where(place < 20, case.lists, np.nan))


def sample_top_features(random: Random, kept: int = 20) -> MadeCase:
    """Lists of the items that each puts first, with features that explain the scores."""
    case = sample_linear(random, 0.6)
    place = (-case.lists).argsort(axis=0).argsort(axis=0)
    return MadeCase(case.features, case.truth, np.where(place < kept, case.lists, np.nan))


def sample_top_clean(random: Random) -> MadeCase:
    """The same with lists of 20 items, one of which has no noise."""
    case = sample_linear(random, 0.6)
    lists = case.lists.copy()
    lists[:, 0] = case.truth
    place = (-lists).argsort(axis=0).argsort(axis=0)
    return MadeCase(case.features, case.truth, np.where(place < 20, lists, np.nan))


def sample_subsets(random: Random) -> MadeCase:
    """Lists of 50 random items each, and no features."""
    case = sample_linear(random, 0.6)
    listed = random.random((ITEMS, 6)).argsort(axis=0) < 50
    return MadeCase(None, case.truth, np.where(listed, case.lists, np.nan))


def sample_useless(random: Random) -> MadeCase:
    """Noisy lists, and features that are noise."""
    case = sample_linear(random, 2.0)
    return MadeCase(random.normal(size=case.features.shape), case.truth, case.lists)


CASES: dict[str, Callable[[Random], MadeCase]] = {
    "feature as a list": sample_feature_as_list,
    "feature as a list, rounded": sample_rounded_feature,
    "feature as a list, others useful": sample_useful_copy,
    "non-linear": sample_nonlinear,
    "monotone transforms": sample_monotone,
    "colluding lists": sample_collusion,
    "top 20": sample_top,
    "top 20, features": sample_top_features,
    "random halves": sample_subsets,
    "noise 1": lambda random: sample_linear(random, 1.0),
    "noise 1.5": lambda random: sample_linear(random, 1.5),
    "noise 2": lambda random: sample_linear(random, 2.0),
    "noise 3": lambda random: sample_linear(random, 3.0),
    "noise 2, useless features": sample_useless,
    # at the end, since the place of a case is part of its seed
    "feature near a list, noise .03": lambda random: sample_near_copy(random, 0.03),
    "feature near a list, noise .2": lambda random: sample_near_copy(random, 0.2),
    "feature near a list, noise .5": lambda random: sample_near_copy(random, 0.5),
    "feature near a list, noise .7": lambda random: sample_near_copy(random, 0.7),
    "feature near a list, noise 1": lambda random: sample_near_copy(random, 1.0),
    "near a list, others useful": sample_useful_near_copy,
    "near a better list, others useful": lambda random: sample_useful_near_copy(random, 0.5),
    "one feature explains most": sample_leading_feature,
    "the same, one clean list": sample_leading_feature_clean,
    "top 10, features": lambda random: sample_top_features(random, 10),
    "top 50, features": lambda random: sample_top_features(random, 50),
    "top 20, features, one clean list": sample_top_clean,
}


@contextmanager
def former_checks() -> Iterator[None]:
    """Retargeting as it was before these cases: no feature is a copy, and noise does not limit the gate."""
    with (
        patch.object(retargeting, "find_copied_features", lambda *_: {}),
        patch.object(retargeting_search, "compute_reliability", lambda _: 1.0),
    ):
        yield


def measure_case(name: str, draws: range, before: bool) -> dict[str, Any]:
    """Mean tau of retargeting, of its lists alone, and of Borda; with `before` also of former retargeting."""
    taus: dict[str, list[float]] = {"retargeting": [], "without features": [], "borda": []}
    if before:
        taus["before"] = []
    used = 0
    for draw in draws:
        case = CASES[name](np.random.default_rng((draw, list(CASES).index(name))))
        item = np.array([f"item {k:03d}" for k in range(ITEMS)], object)
        at, which = np.nonzero(~np.isnan(case.lists))
        rows = Preferences.from_rows(
            ["q"] * len(at), which, item[at], score=case.lists[at, which], candidates=(["q"] * ITEMS, item)
        )
        x = None if case.features is None else Features.from_rows(["q"] * ITEMS, item, case.features)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)
            model: Any = make("retargeting").fit(rows, features=x)
            scores = {
                "retargeting": model.aggregate(rows, x).scores,
                "without features": make("retargeting").aggregate(rows).scores,
                "borda": make("borda").aggregate(rows).scores,
            }
            if before:
                with former_checks():
                    scores["before"] = (
                        make("retargeting(missing=mean)").fit(rows, features=x).aggregate(rows, x).scores
                    )
        used += model.mode_ != "lists"
        for method, values in scores.items():
            taus[method].append(compute_tau(values, case.truth))
    means = {method: 100 * float(np.mean(values)) for method, values in taus.items()}
    return {
        "case": name,
        **means,
        "sd": 100 * float(np.std(taus["retargeting"])),
        "sd before": 100 * float(np.std(taus.get("before", [0]))),
        "used": used,
        "draws": len(draws),
    }


def compute_tau(scores: Any, truth: Any) -> float:
    """Kendall's tau-b to the true order, which has no ties."""
    sign = np.sign(np.subtract.outer(scores, scores)) * np.sign(np.subtract.outer(truth, truth))
    pairs = len(truth) * (len(truth) - 1)
    untied = np.count_nonzero(np.subtract.outer(scores, scores))
    return float(sign.sum() / np.sqrt(pairs * untied)) if untied else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--before", action="store_true", help="also retargeting as it was before these cases")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--only", action="append", choices=CASES, help="a case; may be repeated")
    options = parser.parse_args()
    rows = []
    head = f"{'before':>8}{'sd':>6}" if options.before else ""
    print(f"{'':<36}{head}{'retargeting':>12}{'sd':>6}{'no features':>13}{'Borda':>7}{'features used':>15}")
    for name in options.only or CASES:
        row = measure_case(name, range(options.first, options.first + options.draws), options.before)
        rows.append(row)
        cells = f"{row['before']:>8.1f}{row['sd before']:>6.1f}" if options.before else ""
        cells += f"{row['retargeting']:>12.1f}{row['sd']:>6.1f}{row['without features']:>13.1f}"
        print(f"{name:<36}{cells}{row['borda']:>7.1f}{row['used']:>10} of {row['draws']}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
