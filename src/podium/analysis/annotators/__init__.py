"""What is known about annotators: how good each is, how sure that is, and why."""

from podium.analysis.annotators.result import VERDICTS, Annotator, Annotators, annotators

__all__ = ["VERDICTS", "Annotator", "Annotators", "annotators"]
