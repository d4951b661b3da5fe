"""Tuning: how long 200 configurations take on 17 runs of 100 topics, and how often random labels look like a gain.

python benchmarks/tuning.py [--quick]

The first call imports modules and is not timed. The random labels give every listed item a grade by chance, so
that no method is better than another; whatever the verdict calls a difference is then an error.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from podium import Dataset, Labels, Preferences, read
from podium.data.ids import CodedColumn, Ids
from podium.evaluate import randomization
from podium.evaluate.tuning import tune

DATA = Path(os.environ.get("PODIUM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RUNS = DATA / "robust03-runs"
CASES: dict[str, dict[str, Any]] = {
    "random search": {},
    "random search, 10 folds": {"folds": 10},
    "halving": {"search": "halving"},
}
LISTS = ["rrf", "rbc", "borda", "isr", "combsum", "combmnz"]


def robust() -> Dataset:
    """The seventeen runs with their judgements, or made-up ones of the same size where they are not here."""
    if RUNS.is_dir():
        runs, labels = read(RUNS / "robust03.tsv.gz").preferences, read(RUNS / "robust03.qrels.gz").labels
        assert runs is not None
        return Dataset(runs, labels)
    return random_labels(0, queries=100, experts=17, items=500, length=100)


def random_labels(
    seed: int, queries: int = 50, experts: int = 8, items: int = 60, length: int = 30
) -> Dataset:
    """Lists by chance, and grades by chance for everything that is listed."""
    random = np.random.default_rng(seed)
    orders = np.argsort(random.random((queries, experts, items)), axis=2)[:, :, :length]
    query, expert, place = (a.reshape(-1) for a in np.indices(orders.shape))
    columns = (CodedColumn(query, Ids(np.arange(queries))), CodedColumn(expert, Ids(np.arange(experts))))
    item = CodedColumn(orders.reshape(-1).astype(np.int64), Ids(np.arange(items)))
    lists = Preferences.from_rows(*columns, item, rank=place + 1)
    grades = (random.random(len(lists.index.items)) < 0.15).astype(np.float64)
    return Dataset(lists, Labels(lists.index, grades))


def false_alarms(simulations: int, **settings: Any) -> tuple[int, int]:
    """How often random labels are taken for a difference: by the verdict, and by a plain test of the same values."""
    ours = plain = 0
    for seed in range(simulations):
        found = tune(random_labels(seed), "ndcg@10", LISTS, seed=seed, trials=40, **settings)
        ours += found.outcome() != "no difference"
        plain += randomization(found.values["tuned"] - found.values["rrf"]) <= 0.05
    return ours, plain


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of a table."""
    data, rows = robust(), []
    for search in ("random", "halving"):
        tune(data, "ndcg@10", search=search, trials=30)  # modules are imported before anything is timed
        begin = time.perf_counter()
        found = tune(data, "ndcg@10", search=search, trials=200)
        spent = time.perf_counter() - begin
        what = f"{len(data.preferences.experts)} runs x {len(found.queries)} topics, 200 configurations, {search}"
        rows.append({"tuning": what, "result": f"{spent:.1f} s", "target": "60 s"})
    count = 20 if quick else 100
    for name, settings in CASES.items():
        ours, plain = false_alarms(count, **settings)
        result = f"no difference {count - ours} of {count} times; by a plain paired test {count - plain}"
        rows.append(
            {"tuning": f"random labels, {name}", "result": result, "target": f"{round(0.95 * count)}"}
        )
    return rows


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true")
    for row in run(words.parse_args().quick):
        print(f"{row['tuning']}: {row['result']} (target {row['target']})", flush=True)
