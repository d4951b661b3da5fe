"""Tuning: select method, parameters and weights by labels, and estimate the gain on held-out queries."""

from podium.evaluate.tuning.nested_estimate import TuningRow
from podium.evaluate.tuning.result import Tuning, TuningTrial, check_document
from podium.evaluate.tuning.search_space import QualityWeights
from podium.evaluate.tuning.tuning_run import tune

__all__ = ["QualityWeights", "Tuning", "TuningRow", "TuningTrial", "check_document", "tune"]
