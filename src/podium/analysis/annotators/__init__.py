"""Annotator reports: estimated quality, its uncertainty, and the evidence behind it."""

from podium.analysis.annotators.agreement_coefficients import AgreementCoefficient
from podium.analysis.annotators.disagreements import Disagreement, find_disagreements
from podium.analysis.annotators.result import VERDICTS, Annotator, Annotators, annotators

__all__ = [
    "VERDICTS",
    "AgreementCoefficient",
    "Annotator",
    "Annotators",
    "Disagreement",
    "annotators",
    "find_disagreements",
]
