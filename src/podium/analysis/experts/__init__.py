"""What experts are like: who agrees with whom, who copies, who misses, who helps, whose ids do not meet."""

from podium.analysis.experts.result import CopyPair, Diagnosis, Expert, diagnose

__all__ = ["CopyPair", "Diagnosis", "Expert", "diagnose"]
