"""Annotator reports: estimated quality, its uncertainty, and the evidence behind it."""

from podium.analysis.annotators.result import VERDICTS, Annotator, Annotators, annotators

__all__ = ["VERDICTS", "Annotator", "Annotators", "annotators"]
