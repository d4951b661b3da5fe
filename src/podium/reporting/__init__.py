"""A report on preferences as one HTML file: the verdict, checks of its reliability, and the figures."""

from podium.reporting.blocks import Figure, ReportFinding, ReportTable, Section
from podium.reporting.build_report import report
from podium.reporting.report_page import Report
from podium.reporting.vote_parts import VoteParts, VoteSources, collect_vote_parts

__all__ = [
    "Figure",
    "Report",
    "ReportFinding",
    "ReportTable",
    "Section",
    "VoteParts",
    "VoteSources",
    "collect_vote_parts",
    "report",
]
