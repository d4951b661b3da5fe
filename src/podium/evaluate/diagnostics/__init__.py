"""What experts are like: who agrees with whom, who copies, who misses, who helps, whose ids do not meet."""

from podium.evaluate.diagnostics.report import Copies, Diagnosis, Expert, diagnose

__all__ = ["Copies", "Diagnosis", "Expert", "diagnose"]
