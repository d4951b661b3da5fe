"""Quality of results, measured with labels and compared with other results."""

import importlib
import warnings
from typing import Any

from podium.evaluate.comparison import Comparison, ComparisonRow, Pair, QueryRow, compare, compare_evaluations
from podium.evaluate.crossvalidation import CrossValidation, FoldResult, Pruned, cross_validate
from podium.evaluate.evaluation import Evaluation, evaluate
from podium.evaluate.metric_curves import Curve, curves
from podium.evaluate.result_rankings import expert_rankings, judged_only
from podium.evaluate.significance import holm, mean_interval, paired_t, randomisation, wilcoxon
from podium.evaluate.splits import holdout, random_splits
from podium.evaluate.tuning import Tuning, tune

__all__ = [
    "Comparison",
    "ComparisonRow",
    "CrossValidation",
    "Curve",
    "Evaluation",
    "FoldResult",
    "Pair",
    "Pruned",
    "QueryRow",
    "Tuning",
    "compare",
    "compare_evaluations",
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
    "randomisation",
    "tune",
    "wilcoxon",
]


def __getattr__(name: str) -> Any:
    """Names that moved to `podium.analysis`, kept for one more release."""
    if name in ("Diagnosis", "diagnose"):
        warnings.warn(
            f"podium.evaluate.{name} is now podium.analysis.experts.{name}", DeprecationWarning, stacklevel=2
        )
        return getattr(importlib.import_module("podium.analysis.experts"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
