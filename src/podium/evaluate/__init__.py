"""How good a result is, against labels and against other results."""

from podium.evaluate.comparison import (
    Comparison,
    ComparisonRow,
    Pair,
    QueryRow,
    compare,
    compare_evaluations,
)
from podium.evaluate.crossvalidation import CrossValidation, FoldResult, Pruned, cross_validate
from podium.evaluate.diagnostics import Diagnosis, diagnose
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
    "Diagnosis",
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
    "diagnose",
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
