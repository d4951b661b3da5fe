"""One report on preferences: the verdict, whether to trust it, and the pictures behind it; as one HTML file."""

from podium.evaluate.report.blocks import Figure, Report, ReportFinding, ReportTable, Section
from podium.evaluate.report.build_report import report

__all__ = ["Figure", "Report", "ReportFinding", "ReportTable", "Section", "report"]
