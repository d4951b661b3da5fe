"""One report on preferences: the verdict, whether to trust it, and the pictures behind it; as one HTML file."""

from podium.reporting.blocks import Figure, Report, ReportFinding, ReportTable, Section
from podium.reporting.build_report import report

__all__ = ["Figure", "Report", "ReportFinding", "ReportTable", "Section", "report"]
