"""Tuning: which method, parameters and weights to use, by labels, and what that is worth on other queries."""

from podium.evaluate.tuning.estimate import Outcome
from podium.evaluate.tuning.result import Trial, Tuning, check_document
from podium.evaluate.tuning.run import tune
from podium.evaluate.tuning.weights import Trust

__all__ = ["Outcome", "Trial", "Trust", "Tuning", "check_document", "tune"]
