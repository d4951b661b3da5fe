"""How good a result is, against labels and against other results."""

from podium.evaluate.comparison import Comparison, ComparisonRow, compare
from podium.evaluate.evaluation import Evaluation, evaluate
from podium.evaluate.rankings import expert_rankings
from podium.evaluate.significance import bootstrap_interval, holm, paired_t, randomisation, wilcoxon

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Evaluation",
    "bootstrap_interval",
    "compare",
    "evaluate",
    "expert_rankings",
    "holm",
    "paired_t",
    "randomisation",
    "wilcoxon",
]
