"""One report on preferences: the verdict, whether to trust it, and the pictures behind it; as one HTML file."""

from podium.evaluate.report.build import report
from podium.evaluate.report.content import Figure, Finding, Report, Section, Table

__all__ = ["Figure", "Finding", "Report", "Section", "Table", "report"]
