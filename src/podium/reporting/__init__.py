"""A report on preferences as one HTML file: the verdict, checks of its reliability, and the figures."""

from podium.reporting.blocks import Figure, Report, ReportFinding, ReportTable, Section
from podium.reporting.build_report import report

__all__ = ["Figure", "Report", "ReportFinding", "ReportTable", "Section", "report"]
