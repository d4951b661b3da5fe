"""Diagnosis of experts: agreement, near-duplicates, coverage, effect on the consensus, unmatched ids."""

from podium.analysis.experts.result import CopyPair, Diagnosis, Expert, diagnose

__all__ = ["CopyPair", "Diagnosis", "Expert", "diagnose"]
