"""LightGBM's LambdaMART as a scorer; the extra `lightgbm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.errors import ParameterError
from podium.kernels import dispatch
from podium.kernels.dispatch import F8

if TYPE_CHECKING:
    from podium.aggregators.supervised.learner import Task

__all__ = ["predict", "train"]

SETTINGS = {  # small trees and few leaves: training sets here have hundreds of queries, not millions
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 10.0,
    "lambdarank_truncation_level": 100,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


def _library() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise ParameterError(
            "scorer='lambdamart' needs LightGBM; install it with: pip install 'podium-rank[lightgbm]'"
        ) from None
    return lightgbm


def train(task: Task, rounds: int, rate: float, patience: int, seed: int) -> tuple[str, list[int]]:
    """The text of the trees, and how many were kept."""
    lightgbm = _library()
    grades = np.unique(task.examples.labels.grades)
    gain = [float(2.0 ** max(g, 0.0) - 1.0) for g in grades]
    settings = SETTINGS | {
        "learning_rate": rate,
        "seed": seed,
        "num_threads": dispatch.threads(),
        "label_gain": gain,
    }
    sizes = np.diff(task.examples.starts)
    weight = np.repeat(task.examples.weight, sizes)
    codes = np.searchsorted(grades, task.examples.labels.grades)
    data = lightgbm.Dataset(task.values, codes, group=sizes[sizes > 0], weight=weight, free_raw_data=False)
    checks, callbacks = [], []
    if task.check is not None and task.check_values is not None:
        known = np.clip(np.searchsorted(grades, task.check.labels.grades), 0, len(grades) - 1)
        group = np.diff(task.check.starts)
        checks = [lightgbm.Dataset(task.check_values, known, group=group[group > 0], reference=data)]
        callbacks = [lightgbm.early_stopping(patience or rounds, verbose=False)]

    def tell(env: Any) -> None:
        task.progress(env.iteration + 1, rounds, "growing trees")

    model = lightgbm.train(settings, data, rounds, valid_sets=checks, callbacks=[*callbacks, tell])
    kept = int(model.best_iteration) or rounds
    return model.model_to_string(num_iteration=kept), [kept]


def predict(trees: str, values: F8) -> F8:
    """One score per row."""
    model = _library().Booster(model_str=trees)
    return np.asarray(model.predict(values, num_threads=dispatch.threads()), np.float64)
