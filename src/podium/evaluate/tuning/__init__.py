"""Tuning: which method, parameters and weights to use, by labels, and what that is worth on other queries."""

from podium.evaluate.tuning.nested_estimate import TuningRow
from podium.evaluate.tuning.quality_weights import QualityWeights
from podium.evaluate.tuning.result import Tuning, TuningTrial, check_document
from podium.evaluate.tuning.tuning_run import tune

__all__ = ["QualityWeights", "Tuning", "TuningRow", "TuningTrial", "check_document", "tune"]
