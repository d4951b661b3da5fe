"""`auto` with labels for a fifth of the queries: what it chooses, measured on the other queries, against rrf.

python benchmarks/labeled_choice.py --data FOLDER --part development [--set NAME] [--draws 5] [--keep FOLDER]
python benchmarks/labeled_choice.py --data FOLDER --part confirmation

Every draw keeps the labels of 20 % of the judged queries. The choice is that of `choose_by_labels`: the same
candidates, folds and rule; only the nested estimate, which does not change the choice, is not computed. Printed are
the choice, NDCG@10 in points of 100 of rrf and of the choice on the other judged queries, and per set and over all
sets the mean difference by query (a query that several draws hold out enters with its mean) with its standard error,
and the p-value of a paired randomization test over all queries. docs/project/auto-protocol.md says what has to hold.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from automatic_choice import FIRST_SEED, REAL, load_set

from podium import Labels, Preferences, make
from podium.core.errors import PodiumError, PodiumWarning
from podium.data.dataset import Dataset
from podium.evaluate import evaluate
from podium.evaluate.significance import assess_differences
from podium.evaluate.tuning.labeled_choice import BUDGET, plan_candidates
from podium.evaluate.tuning.method_selection import resolve_baseline
from podium.evaluate.tuning.nested_estimate import choose_simplest
from podium.evaluate.tuning.score_table import TuningTask, fit_config, measure_method
from podium.methods.automatic_choice import choose_method
from podium.metrics.base import parse
from podium.storage.folder_cache import ResultCache

METRIC, SHARE = "ndcg@10", 0.2


def draw_labels(preferences: Preferences, labels: Labels, seed: int) -> tuple[list[Any], list[Any]]:
    """The judged queries whose labels are kept, and the others."""
    judged = sorted((q for q in labels.queries if preferences.queries.code_of(q) is not None), key=str)
    order = np.random.default_rng(seed).permutation(len(judged))
    count = round(SHARE * len(judged))
    return [judged[i] for i in order[:count]], [judged[i] for i in order[count:]]


def measure_candidates(data: Dataset, labels: Labels, held: list[Any]) -> dict[str, Any]:
    """Of every candidate: its level, its values by labeled query out of fold, and by held-out query."""
    task = TuningTask.from_dataset(data, parse(METRIC), "item", None, 0, ResultCache.open(None))
    first = [resolve_baseline(task, None), choose_method(data.preferences).method]
    configs, levels, _ = plan_candidates(task, first, True, BUDGET)
    experts, rest = data.preferences.experts.tolist(), labels.select(held)
    names, kept, own, other = [], [], [], []
    for config, level in zip(configs, levels.tolist(), strict=True):
        try:
            values = np.empty(len(task))
            if config.depends_on_labels:
                for fold in range(task.fold_count):
                    inside, outside = np.flatnonzero(task.fold == fold), np.flatnonzero(task.fold != fold)
                    values[inside] = measure_method(task, fit_config(task, config, outside), inside)
                model = fit_config(task, config, np.arange(len(task)))
            else:
                model = config.make_method(experts)
                values[:] = measure_method(task, model, np.arange(len(task)))
            consensus = model.aggregate(data.preferences)
        except PodiumError:
            continue
        names.append(config.describe(experts))
        kept.append(level)
        own.append(values)
        other.append(np.nan_to_num(np.asarray(evaluate(consensus, rest, METRIC)[METRIC])))
    return {"names": names, "levels": np.array(kept), "own": np.array(own), "other": np.array(other)}


def measure_set(name: str, options: argparse.Namespace) -> dict[Any, list[float]]:
    """Differences to rrf by held-out query, over all draws."""
    preferences, labels = load_set(name, options.data)
    differences: dict[Any, list[float]] = {}
    first = FIRST_SEED[options.part]
    for seed in range(first, first + options.draws):
        known, held = draw_labels(preferences, labels, seed)
        table = measure_candidates(Dataset(preferences, labels.select(known)), labels, held)
        rows, own = table["other"], table["own"]
        chosen = int(choose_simplest(table["levels"])(own, np.ones((1, own.shape[1])))[0])
        for query, d in zip(held, 100 * (rows[chosen] - rows[0]), strict=True):
            differences.setdefault(query, []).append(float(d))
        means = 100 * rows.mean(axis=1)
        print(
            f"{name:20} seed {seed:3}: {len(known):4} labeled, {len(own):3} candidates; rrf {means[0]:.2f}, "
            f"{table['names'][chosen]} {means[chosen]:.2f}, best "
            f"{table['names'][int(means.argmax())]} {means.max():.2f}",
            flush=True,
        )
        if options.keep is not None:
            options.keep.mkdir(exist_ok=True)
            np.savez(options.keep / f"{name}-{seed}.npz", **table, held=np.array([str(q) for q in held]))
    return differences


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=list(REAL), default="development")
    parser.add_argument("--set", action="append", help="a set of the part; may be repeated")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder for the values of all candidates")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PodiumWarning)
    make("rrf")
    pooled = []
    for name in options.set or REAL[options.part]:
        d = np.array([np.mean(values) for values in measure_set(name, options).values()])
        pooled.append(d)
        error = float(d.std(ddof=1)) / math.sqrt(len(d))
        print(f"{name:20} {len(d):5} queries: {d.mean():+.2f} (standard error {error:.2f})", flush=True)
    d = np.concatenate(pooled)
    p = float(assess_differences(d[None], test="randomization", level=0.95, seed=0).p[0])
    error = float(d.std(ddof=1)) / math.sqrt(len(d))
    print(f"{'all':20} {len(d):5} queries: {d.mean():+.2f} (standard error {error:.2f}), p = {p:.4f}")


if __name__ == "__main__":
    main()
