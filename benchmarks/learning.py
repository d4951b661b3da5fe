"""Training: linear LambdaRank and the CRF on one fold of MQ2007-agg, against a PyTorch loop that does the same.

Without the data (PODIUM_DATA or ../shared/data) a made-up set of the same shape is used, and the rows say so. The
PyTorch loop visits query by query, as ours does with `optimizer="sgd", batch=1`: scores, order, all pairs, gradient,
step; after one pass both must have the same weights. Everything runs on one thread.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import measure, once

from podium import Dataset, Labels, Preferences, formats, make
from podium.kernels.lambdas import MetricTarget, OptimizerState, train_linear_pass
from podium.learning.examples import Examples
from podium.methods.learned.svd_features import build_svd_columns

Problem = tuple[np.ndarray, Examples, MetricTarget]


def data() -> tuple[Dataset, str]:
    """Training part of the first fold, and what it is."""
    folder = Path(os.environ.get("PODIUM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mq2007-agg"
    files = [folder / f"A{i}.txt.gz" for i in range(1, 6)]
    if all(f.exists() for f in files):
        return formats.read(files).dataset().folds()[0].train, "MQ2007-agg, fold 1"
    random = np.random.default_rng(0)
    lists: dict[Any, Any] = {}
    grades: dict[Any, Any] = {}
    for q in range(1015):
        size = int(random.integers(6, 76))
        truth = random.normal(size=size)
        grades[q] = {i: float(np.digitize(t, [0.7, 1.5])) for i, t in enumerate(truth)}
        lists[q] = {
            e: [int(i) for i in np.argsort(random.normal(size=size) - truth) if random.random() < 0.65]
            for e in range(21)
        }
    return Dataset(Preferences.from_lists(lists), Labels.from_dict(grades)), "made up, 1,015 x 41 x 21"


def problem(train: Dataset) -> Problem:
    """Features of LR-logR, and the target."""
    examples = Examples.from_labels(train.preferences.index, train.labels)
    experts = len(train.preferences.experts)
    values = build_svd_columns(train.preferences, "log", np.arange(experts), experts).values[examples.rows]
    return values, examples, examples.build_target("ndcg:exp")


def one_pass(values: np.ndarray, examples: Examples, target: MetricTarget) -> np.ndarray:
    """Ours, from zero weights, queries in order."""
    weights, mean, square = np.zeros((3, values.shape[1]))
    optimizer = OptimizerState(weights, mean, square, np.zeros(1, np.int64), False, 0.01, 0.0, False)
    train_linear_pass(values, examples.starts, target, examples.find_useful_queries(), 1, optimizer)
    return optimizer.weights


def torch_pass(values: np.ndarray, examples: Examples, target: MetricTarget) -> np.ndarray:
    """The same in PyTorch, written as one would."""
    import torch

    torch.set_num_threads(1)
    x, gain = torch.from_numpy(values), torch.from_numpy(target.gain)
    level, discount = torch.from_numpy(target.level), torch.from_numpy(target.discount)
    weights = torch.zeros(values.shape[1], dtype=torch.float64)
    starts, scale = examples.starts.tolist(), target.scale.tolist()
    with torch.no_grad():
        for q in examples.find_useful_queries().tolist():
            rows = slice(starts[q], starts[q + 1])
            s = x[rows] @ weights
            # worst grade first where scores are equal: stable sorts, the second key first
            order = torch.argsort(level[rows], stable=True)
            order = order[torch.argsort(-s[order], stable=True)]
            place = torch.empty_like(order)
            place[order] = torch.arange(len(order))
            d, g, grade = discount[place], gain[rows], level[rows]
            change = ((g[:, None] - g) * (d[:, None] - d)).abs() * scale[q]
            pull = torch.where(grade[:, None] > grade, change * torch.sigmoid(s - s[:, None]), 0.0)
            weights -= 0.01 * ((pull.sum(0) - pull.sum(1)) @ x[rows])
    return weights.numpy()


def run(quick: bool = False) -> list[dict[str, Any]]:
    """A row per piece of work; `quick` leaves the long ones out."""
    os.environ["PODIUM_THREADS"] = "1"
    train, what = data()
    values, examples, target = problem(train)
    one_pass(values, examples, target)  # modules are imported before anything is timed
    ours, weights = measure(lambda: one_pass(values, examples, target), repeats=5)
    read, _ = measure(values.sum, repeats=5)
    rows: list[dict[str, Any]] = [
        {"work": "LambdaRank, one pass", "who": "podium", "seconds": ours.median, "set": what},
        {"work": "LambdaRank, one pass", "who": "floor: one read of the features", "seconds": read.median,
         "ratio": read.median / ours.median},
    ]  # fmt: skip
    try:
        seconds, theirs = once(lambda: torch_pass(values, examples, target))
        near = float(np.abs(theirs - weights).max() / np.abs(weights).max())
        rows.append(
            {"work": "LambdaRank, one pass", "who": "PyTorch, query by query", "seconds": seconds,
             "ratio": seconds / ours.median, "same weights to": near}
        )  # fmt: skip
    except ImportError:
        rows.append({"work": "LambdaRank, one pass", "who": "PyTorch, not installed"})
    if quick:
        return rows
    for name, spec, limit in (
        ("LR-logR, 200 passes", "svd(vectors=unit, optimizer=sgd, batch=1, rate=0.01, passes=200)", 20.0),
        ("CRF, 300 passes", "crf(passes=300)", 60.0),
    ):
        begin = time.perf_counter()
        make(spec).fit(train.preferences, train.labels)
        taken = time.perf_counter() - begin
        rows.append(
            {"work": name, "who": "podium", "seconds": taken, "target": f"under {limit:g} s: {taken < limit}"}
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
