"""`auto` with labels for some queries: what it chooses, measured on the other queries, against rules without labels.

python benchmarks/labeled_choice.py --data FOLDER --part development [--set NAME] [--draws 5] [--keep FOLDER]
python benchmarks/labeled_choice.py --data FOLDER --part confirmation
python benchmarks/labeled_choice.py --data FOLDER --part confirmation --first 300 --draws 10 --labels 10 --labels 20

Every draw keeps the labels of 20 % of the judged queries, or of the numbers of queries given as `--labels`. The choice
is that of `choose_by_labels`: the same candidates, folds and rule; only the nested estimate, which does not change the
choice, is not computed. Printed are the choice, NDCG@10 in points of 100 of rrf, of the choice without labels and of
the choice by labels on the other judged queries; per set and over all sets the mean differences of the last from the
other two by query (a query that several draws hold out enters with its mean) with their standard errors, and the
p-value of a paired randomization test over all queries; and the means over the sets. With `--keep`, the values of all
candidates are written to a folder, and tables that it has already are not computed again.
docs/project/auto-protocol.md says what has to hold.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from automatic_choice import FIRST_SEED, REAL, load_set

from podium import Labels, Preferences, make
from podium.core.errors import PodiumError, PodiumWarning
from podium.data.consensus import Consensus
from podium.data.dataset import Dataset
from podium.evaluate import evaluate
from podium.evaluate.significance import assess_differences
from podium.evaluate.tuning.labeled_choice import ADDED, BUDGET, plan_candidates
from podium.evaluate.tuning.method_selection import resolve_baseline
from podium.evaluate.tuning.nested_estimate import choose_simplest
from podium.evaluate.tuning.score_table import TuningTask, fit_config, measure_method
from podium.evaluate.tuning.search_space import TuningConfig
from podium.methods.automatic_choice import choose_method
from podium.metrics.base import parse
from podium.storage.folder_cache import ResultCache

METRIC, SHARE = "ndcg@10", 0.2
RIVALS = ("rrf", "without labels")
Table = dict[str, Any]


class LabeledSet:
    """A set with all its labels, and what does not depend on the draw of the labels that are kept."""

    def __init__(self, preferences: Preferences, labels: Labels) -> None:
        self.preferences, self.labels = preferences, labels
        self.unlabeled = choose_method(preferences).method
        self.values: dict[TuningConfig, dict[Any, float] | None] = {}  # of candidates that use no labels

    def draw_labels(self, count: int | None, seed: int) -> tuple[list[Any], list[Any]]:
        """The judged queries whose labels are kept, and the others."""
        codes = self.preferences.queries
        judged = sorted((q for q in self.labels.queries if codes.code_of(q) is not None), key=str)
        order = np.random.default_rng(seed).permutation(len(judged))
        kept = round(SHARE * len(judged)) if count is None else count
        return [judged[i] for i in order[:kept]], [judged[i] for i in order[kept:]]

    def plan(self, known: list[Any]) -> tuple[TuningTask, list[TuningConfig], list[int]]:
        """What `choose_by_labels` tries with the labels of these queries, and the level of each candidate."""
        data = Dataset(self.preferences, self.labels.select(known))
        task = TuningTask.from_dataset(data, parse(METRIC), "item", None, 0, ResultCache.open(None))
        base = resolve_baseline(task, None)
        configs, levels, _ = plan_candidates(task, base, self.unlabeled, True, BUDGET)
        return task, configs, levels.tolist()

    def measure_unlabeled(self, config: TuningConfig) -> dict[Any, float] | None:
        """The values by query of a candidate that uses no labels; None if it cannot be computed."""
        if config not in self.values:
            try:
                model = config.make_method(self.preferences.experts.tolist())
                self.values[config] = self.measure_consensus(model.aggregate(self.preferences))
            except PodiumError:
                self.values[config] = None
        return self.values[config]

    def measure_consensus(self, consensus: Consensus) -> dict[Any, float]:
        """NDCG@10 by judged query."""
        found = evaluate(consensus, self.labels, METRIC)
        return dict(zip(found.queries, np.nan_to_num(found[METRIC]).tolist(), strict=True))

    def measure_candidates(self, known: list[Any], held: list[Any]) -> Table:
        """Of every candidate: its level, its values by labeled query out of fold, and by held-out query.

        `unlabeled` is the row of the choice without labels; the first row is rrf.
        """
        task, configs, levels = self.plan(known)
        experts, everything = self.preferences.experts.tolist(), np.arange(len(task))
        unlabeled = TuningConfig(self.unlabeled.name)
        names, kept, own, other = [], [], [], []
        table: Table = {"held": np.array([str(q) for q in held])}
        for config, level in zip(configs, levels, strict=True):
            if config.depends_on_labels:
                values = np.empty(len(task))
                try:
                    for fold in range(task.fold_count):
                        inside, outside = np.flatnonzero(task.fold == fold), np.flatnonzero(task.fold != fold)
                        values[inside] = measure_method(task, fit_config(task, config, outside), inside)
                    model = fit_config(task, config, everything)
                    by_query = self.measure_consensus(model.aggregate(self.preferences))
                except PodiumError:
                    continue
            else:
                found = self.measure_unlabeled(config)
                if found is None:
                    continue
                by_query = found
                values = np.array([by_query.get(q, 0.0) for q in task.queries])
            if config == unlabeled:
                table["unlabeled"] = len(names)
            names.append(config.describe(experts))
            kept.append(level)
            own.append(values)
            other.append([by_query.get(q, 0.0) for q in held])
        return {
            **table,
            "names": names,
            "levels": np.array(kept),
            "own": np.array(own),
            "other": np.array(other),
        }


def choose_row(table: Table) -> int:
    """The row of the candidate that the labels choose."""
    own = table["own"]
    return int(choose_simplest(table["levels"], ADDED)(own, np.ones((1, own.shape[1])))[0])


def iterate_tables(name: str, count: int | None, options: argparse.Namespace) -> Iterator[tuple[int, Table]]:
    """The table of every draw, computed or as it was kept."""
    whole: LabeledSet | None = options.loaded.get(name)
    first = FIRST_SEED[options.part] if options.first is None else options.first
    for seed in range(first, first + options.draws):
        path = None
        if options.keep is not None:
            options.keep.mkdir(exist_ok=True)
            path = options.keep / f"{name}-{'share' if count is None else count}-{seed}.npz"
            if path.exists():
                yield seed, dict(np.load(path))
                continue
        if whole is None:
            whole = options.loaded[name] = LabeledSet(*load_set(name, options.data))
        table = whole.measure_candidates(*whole.draw_labels(count, seed))
        if path is not None:
            np.savez(path, **table)
        yield seed, table


def measure_set(name: str, count: int | None, options: argparse.Namespace) -> np.ndarray:
    """Differences to both rivals by held-out query, means over the draws."""
    differences: dict[str, list[np.ndarray]] = {}
    for seed, table in iterate_tables(name, count, options):
        rows, chosen = 100 * table["other"], choose_row(table)
        rivals = [0, int(table["unlabeled"])]
        for query, d in zip(table["held"].tolist(), (rows[chosen] - rows[rivals]).T, strict=True):
            differences.setdefault(query, []).append(d)
        means = rows.mean(axis=1)
        print(
            f"{name:20} seed {seed:3}: {table['own'].shape[1]:4} labeled, {len(rows):3} candidates; "
            f"rrf {means[0]:.2f}, without labels {means[rivals[1]]:.2f}, {table['names'][chosen]} "
            f"{means[chosen]:.2f}, best {table['names'][int(means.argmax())]} {means.max():.2f}",
            flush=True,
        )
    return np.array([np.mean(d, axis=0) for d in differences.values()])


def describe_differences(d: np.ndarray) -> str:
    """The mean difference to each rival with its standard error."""
    errors = d.std(axis=0, ddof=1) / math.sqrt(len(d))
    texts = (
        f"against {rival} {mean:+.2f} ({error:.2f})"
        for rival, mean, error in zip(RIVALS, d.mean(axis=0), errors, strict=True)
    )
    return f"{len(d):5} queries: {', '.join(texts)}"


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=list(REAL), default="development")
    parser.add_argument("--set", action="append", help="a set of the part; may be repeated")
    parser.add_argument(
        "--labels", type=int, action="append", help="a number of labeled queries; may be repeated"
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, help="the first seed")
    parser.add_argument("--keep", type=Path, help="folder for the values of all candidates")
    options = parser.parse_args()
    options.loaded = {}
    warnings.simplefilter("ignore", PodiumWarning)
    make("rrf")
    for count in options.labels or [None]:
        print(f"\n{f'{SHARE:.0%} of the' if count is None else count} queries labeled")
        pooled = []
        for name in options.set or REAL[options.part]:
            pooled.append(measure_set(name, count, options))
            print(f"{name:20} {describe_differences(pooled[-1])}", flush=True)
        d = np.concatenate(pooled)
        p = assess_differences(d.T, test="randomization", level=0.95, seed=0).p
        print(f"{'all':20} {describe_differences(d)}; p = {p[0]:.4f} and {p[1]:.4f}")
        means = np.mean([one.mean(axis=0) for one in pooled], axis=0)
        print(f"{'mean of the sets':20} against rrf {means[0]:+.2f}, without labels {means[1]:+.2f}")


if __name__ == "__main__":
    main()
