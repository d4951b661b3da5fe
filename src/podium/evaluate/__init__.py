"""How good a result is, against labels and against other results."""

from podium.evaluate.evaluation import Evaluation, evaluate
from podium.evaluate.rankings import expert_rankings

__all__ = ["Evaluation", "evaluate", "expert_rankings"]
