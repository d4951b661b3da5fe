"""Panels of judges: how many independent judges they are worth, their biases, what their answers prove."""

from podium.analysis.judges.prediction_powered import HumanMean, estimate_human_mean
from podium.analysis.judges.result import JudgeRow, PanelAssessment, assess_panel

__all__ = ["HumanMean", "JudgeRow", "PanelAssessment", "assess_panel", "estimate_human_mean"]
