"""Published tables, computed again: `reproduce("table3", folder)`."""

from podium.evaluate.reproduce.paper_tables import TABLES, find_table
from podium.evaluate.reproduce.published_table import PublishedRow, PublishedTable
from podium.evaluate.reproduce.reproduction import Reproduction, RowResult, SetResult, reproduce
from podium.evaluate.reproduce.table_writers import (
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
