"""Published tables, computed again: `reproduce("table3", folder)`."""

from podium.evaluate.reproduce.rows import Row, Table
from podium.evaluate.reproduce.runner import Reproduction, RowResult, SetResult, reproduce
from podium.evaluate.reproduce.tables import TABLES, table
from podium.evaluate.reproduce.writers import document, figure_lines, paths, quality_lines, test_lines, write

__all__ = [
    "TABLES",
    "Reproduction",
    "Row",
    "RowResult",
    "SetResult",
    "Table",
    "document",
    "figure_lines",
    "paths",
    "quality_lines",
    "reproduce",
    "table",
    "test_lines",
    "write",
]
