"""Quality of results, measured with labels and compared with other results."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from podium.evaluate.comparison import Comparison, ComparisonRow, Pair, QueryRow, compare, compare_evaluations
from podium.evaluate.crossvalidation import CrossValidation, FoldResult, PrunedMethod, cross_validate
from podium.evaluate.evaluation import Evaluation, evaluate
from podium.evaluate.majority_errors import MajorityErrors, count_majority_errors, select_by_majority
from podium.evaluate.metric_curves import Curve, curves
from podium.evaluate.result_rankings import expert_rankings, judged_only
from podium.evaluate.significance import holm, mean_interval, paired_t, randomization, wilcoxon
from podium.evaluate.splits import holdout, random_splits
from podium.evaluate.tuning import Tuning, tune

__all__ = [
    "Comparison",
    "ComparisonRow",
    "CrossValidation",
    "Curve",
    "Evaluation",
    "FoldResult",
    "MajorityErrors",
    "Pair",
    "PrunedMethod",
    "QueryRow",
    "Tuning",
    "compare",
    "compare_evaluations",
    "count_majority_errors",
    "cross_validate",
    "curves",
    "evaluate",
    "expert_rankings",
    "holdout",
    "holm",
    "judged_only",
    "mean_interval",
    "paired_t",
    "random_splits",
    "randomization",
    "select_by_majority",
    "tune",
    "wilcoxon",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Names of the last release, kept for one more."""
        renamed: dict[str, Any] = {"Pruned": PrunedMethod, "randomisation": randomization}
        if name in renamed:
            new = renamed[name]
            warnings.warn(f"podium.evaluate.{name} is now {new.__name__}", DeprecationWarning, stacklevel=2)
            return new
        if name in ("Diagnosis", "diagnose"):
            message = f"podium.evaluate.{name} is now podium.analysis.experts.{name}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module("podium.analysis.experts"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
