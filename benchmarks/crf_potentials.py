"""Potentials of the CRF compared: what each set of them reaches, as mean and spread over seeds.

python benchmarks/crf_potentials.py [--sets demo,mq2008-agg,mq2007-agg] [--seeds 3] [--potentials SPEC ...]

Five folds as published (demo: its five parts); the validation part selects the pass. Figures are in percent: the mean
over the test queries of all folds, then mean and standard deviation over the seeds of the learner. Data sets are read
from PODIUM_DATA. The last column is the mean difference from the first row in ndcg@10, and the p-value of Student's
paired test over the queries (each query's difference averaged over the seeds).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from podium import read
from podium.data.dataset import Dataset
from podium.data.demo import demo
from podium.evaluate import evaluate
from podium.evaluate.significance import paired_t
from podium.kernels.dispatch import F8
from podium.methods import CrfAggregator

DATA = Path(os.environ.get("PODIUM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
METRICS = ("ndcg@5:letor", "map", "ndcg@10:exp")
POTENTIALS = (
    "absence + pairwise",
    "absence + pairwise + reciprocal_rank(k=0)",
    "absence + pairwise + reciprocal_rank",
    "absence + pairwise + reciprocal_rank(k=60)",
    "absence + pairwise + log_rank",
    "absence + log_rank",
    "absence + reciprocal_rank",
)


def load_set(name: str) -> Dataset:
    """A data set with parts."""
    if name == "demo":
        return demo()
    return read([DATA / name / f"A{part}.txt.gz" for part in range(1, 6)]).dataset()


def measure_potentials(data: Dataset, potentials: str, seeds: int) -> F8:
    """Figures by seed, metric and query."""
    by_seed = []
    for seed in range(seeds):
        parts = []
        for train, validation, test in data.folds():
            model = CrfAggregator(potentials=potentials, seed=seed)
            model.fit(train.preferences, train.labels, validation=validation)
            result = evaluate(model.aggregate(test.preferences, ties="input"), test.labels, METRICS)
            parts.append(np.stack([result[metric] for metric in METRICS]))
        by_seed.append(np.concatenate(parts, axis=1))
    return np.stack(by_seed)


def main() -> None:
    """Print one table per data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", default="demo,mq2008-agg,mq2007-agg")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--potentials", nargs="*", default=POTENTIALS)
    options = parser.parse_args()
    for name in options.sets.split(","):
        data, first = load_set(name), None
        print(f"\n{name}: {', '.join(METRICS)}")
        for potentials in options.potentials:
            figures = 100 * measure_potentials(data, potentials, options.seeds)
            means = figures.mean(axis=2)
            cells = [
                f"{m:6.2f} ({s:.2f})" for m, s in zip(means.mean(axis=0), means.std(axis=0), strict=True)
            ]
            by_query = figures[:, -1].mean(axis=0)
            first = by_query if first is None else first
            change = by_query.mean() - first.mean()
            test = "" if by_query is first else f"{change:+.2f}, p {paired_t(by_query - first):.3g}"
            print(f"{potentials:44} {'  '.join(cells)}  {test}", flush=True)


if __name__ == "__main__":
    main()
