"""LightGBM's LambdaMART as a scorer; the extra `lightgbm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.errors import InputError, Option
from podium.core.optional import require_module
from podium.kernels import dispatch
from podium.kernels.dispatch import F8
from podium.learning.examples import LearningTask
from podium.metrics.base import MetricSpec

__all__ = ["predict_trees", "train_trees"]

LONGEST = 10_000  # items per query, a limit of LightGBM
SETTINGS = {  # small trees and few leaves: training sets here have hundreds of queries, not millions
    "objective": "lambdarank",
    "metric": "none",  # validation examples are evaluated by `choose_by`
    "num_leaves": 8,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "lambdarank_truncation_level": 20,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


def _import_lightgbm() -> Any:
    return require_module("lightgbm", "scorer='lambdamart' needs")


def train_trees(
    task: LearningTask,
    rounds: int,
    rate: float,
    *,
    patience: int = 0,
    seed: int = 0,
    initial: F8 | None = None,
    choose_by: MetricSpec = "ndcg@10:exp",
) -> tuple[str, int]:
    """Grow trees, on top of `initial` scores if given; returns the model as text, and the number of rounds.

    Validation examples select the number of rounds.
    """
    lightgbm, examples = _import_lightgbm(), task.examples
    grades = np.unique(examples.labels.grades)
    # LightGBM takes integer labels; a gain table per distinct grade supports fractions and negative grades
    settings = SETTINGS | {
        "learning_rate": rate,
        "seed": seed,
        "num_threads": dispatch.count_threads(),
        "label_gain": [float(2.0 ** max(g, 0.0) - 1.0) for g in grades],
    }
    sizes = np.diff(examples.starts)
    for part in filter(None, (task, task.validation)):
        most = int(np.diff(part.examples.starts).max(initial=0))
        if most > LONGEST:
            raise InputError(
                f"a query has {most:,} labeled items, and LightGBM accepts {LONGEST:,}",
                remedy=("use ", Option("scorer", "lambdarank", of="method"), " and no trees, or label fewer"),
            )
    data = lightgbm.Dataset(
        task.values,
        np.searchsorted(grades, examples.labels.grades),
        group=sizes[sizes > 0],
        weight=np.repeat(examples.weight, sizes)
        * (1.0 if examples.row_weight is None else examples.row_weight),
        init_score=initial,
    )
    checks, judge = [], None
    calls = [lambda env: task.progress(env.iteration + 1, rounds, "growing trees")]
    if task.validation is not None:
        check = task.validation.examples
        group = np.diff(check.starts)
        unused = np.zeros(len(check))  # the grades: `judge` has its own
        checks = [lightgbm.Dataset(task.validation.values, unused, group=group[group > 0], reference=data)]
        calls.append(lightgbm.early_stopping(patience or rounds, verbose=False))

        def judge(scores: F8, _: Any) -> tuple[str, float, bool]:
            return str(choose_by), check.compute_mean_metric(scores, choose_by), True

    model = lightgbm.train(settings, data, rounds, valid_sets=checks, callbacks=calls, feval=judge)
    kept = int(model.best_iteration) if checks else rounds
    return model.model_to_string(num_iteration=kept), kept


def predict_trees(trees: str, values: F8) -> F8:
    """One score per row."""
    model = _import_lightgbm().Booster(model_str=trees)
    return np.asarray(model.predict(values, num_threads=dispatch.count_threads()), np.float64)
