"""Reproduction of published tables: `reproduce("table3", folder)`."""

from podium_papers.paper_tables import TABLES, find_table
from podium_papers.published_table import PublishedRow, PublishedTable
from podium_papers.reproduction import Reproduction, RowResult, SetResult, reproduce
from podium_papers.table_writers import (
    figure_lines,
    output_paths,
    quality_lines,
    test_lines,
    to_document,
    write,
)

__all__ = [
    "TABLES",
    "PublishedRow",
    "PublishedTable",
    "Reproduction",
    "RowResult",
    "SetResult",
    "figure_lines",
    "find_table",
    "output_paths",
    "quality_lines",
    "reproduce",
    "test_lines",
    "to_document",
    "write",
]
