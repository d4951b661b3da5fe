"""A report on preferences as one HTML file: the verdict, checks of its reliability, and the figures."""

from podium.reporting.blocks import Figure, ReportFinding, ReportTable, Section
from podium.reporting.build_report import report
from podium.reporting.report_page import Report

__all__ = ["Figure", "Report", "ReportFinding", "ReportTable", "Section", "report"]
