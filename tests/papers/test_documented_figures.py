"""Tables of the documentation against what the commands beside them print now.

A comment right above a Markdown table names its command:

    <!-- figures: podium reproduce table2 --seeds 6 -->

The first cell of a line names a row of the command, and every number of the line, to its own digits, must be among
those that the command prints for that row: in the column of that name where the table has such a column, and on the
data set of that name where the table's first cell or a column names one. `figures, slow:` marks commands that take
more than a few seconds; they run with PODIUM_SLOW_FIGURES=1. The paired differences from the baseline are in the
column `difference`; numbers in brackets are not compared.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from podium.cli import program

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(
    r"^<!-- figures(?P<slow>, slow)?: (?P<command>[^\n]+?) -->\n(?P<table>(?:\|[^\n]*\n)+)", re.M
)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+")
SLOW = os.environ.get("PODIUM_SLOW_FIGURES") == "1"


class DocumentedTable(NamedTuple):
    """A table of a page and the command that prints its figures."""

    page: str
    slow: bool
    command: str
    cells: list[list[str]]


class PrintedFigure(NamedTuple):
    """One figure of a command's output."""

    data: str
    row: str
    column: str
    value: float


def find_tables() -> list[DocumentedTable]:
    tables = []
    for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        for mark in MARK.finditer(page.read_text(encoding="utf-8")):
            lines = [
                [cell.strip() for cell in line.strip("|").split("|")] for line in mark["table"].splitlines()
            ]
            cells = [lines[0], *lines[2:]]  # without the line of dashes
            tables.append(DocumentedTable(page.name, bool(mark["slow"]), mark["command"], cells))
    return tables


def run_command(command: str, rows: list[str], folder: Path) -> list[PrintedFigure]:
    words = shlex.split(command)[1:]
    only = [word for row in rows for word in ("--only", row)]
    done = CliRunner().invoke(program, [*words, *only, "--data", str(folder)])
    assert done.exit_code == 0, done.output
    figures, head = [], []
    for line in done.stdout.splitlines():
        cells = line.split("\t")
        if cells[0] == "set":
            head = cells
        elif head[1:3] == ["", ""]:
            figures += [
                PrintedFigure(cells[0], cells[1].lower(), column, float(value))
                for column, value in zip(head[3:], cells[3:], strict=True)
                if value
            ]
        elif head[1].startswith("against"):  # paired tests
            figures.append(PrintedFigure(cells[0], cells[1].lower(), "difference", float(cells[3])))
    return figures


def check_table(table: DocumentedTable, figures: list[PrintedFigure]) -> list[str]:
    """What the table shows and the command does not print."""
    head, *lines = table.cells
    sets, columns = {f.data.lower() for f in figures}, {f.column for f in figures}
    wrong = []
    for line in lines:
        name = line[0].strip("` ").lower()
        for title, cell in zip(head[1:], line[1:], strict=True):
            places = {head[0].lower(), title.lower()} & sets
            known = [
                f.value
                for f in figures
                if f.row == name
                and (not places or f.data.lower() in places)
                and (title not in columns or f.column == title)
            ]
            # p-values, in brackets, depend on which rows are tested together
            for text in NUMBER.findall(re.sub(r"\([^)]*\)", "", cell)):
                digits = len(text.partition(".")[2])
                # printed figures are rounded to two digits themselves
                slack = 0.5 * 10.0**-digits + (0.005 if digits < 2 else 0) + 1e-9
                near = 1e-9 if digits >= 2 else slack
                if not any(abs(abs(value) - abs(float(text))) <= near for value in known):
                    wrong.append(f"{line[0]}, {title}: {text}")
    return wrong


TABLES = find_tables()


@pytest.mark.data
@pytest.mark.parametrize("table", TABLES, ids=[f"{t.page}: {t.command}" for t in TABLES])
def test_documented_figures_are_printed_by_their_command(table, data_dir):
    if table.slow and not SLOW:
        pytest.skip("takes minutes; set PODIUM_SLOW_FIGURES=1")
    rows = [line[0].strip("` ") for line in table.cells[1:]]
    assert check_table(table, run_command(table.command, rows, data_dir)) == []


def test_there_are_such_tables():
    if not (ROOT / "docs").is_dir():
        pytest.skip("the documentation is not part of this distribution")
    assert {"learning.md", "crowds.md", "no-labels-retargeting.md"} <= {t.page for t in TABLES}
    assert any(not t.slow for t in TABLES)


def test_a_stale_digit_is_found():
    figures = [
        PrintedFigure("mq2008-agg", "rrf", "N@5", 47.17),
        PrintedFigure("mq2008-agg", "rrf", "MAP", 47.71),
        PrintedFigure("mq2007-agg", "rrf", "N@5", 43.13),
    ]

    def check(*cells: list[str]) -> list[str]:
        return check_table(DocumentedTable("page", False, "podium reproduce table3", list(cells)), figures)

    assert check(["MQ2008-agg", "N@5", "MAP"], ["RRF", "47.17 / 47.17", "47.7"]) == []
    assert check(["MQ2008-agg", "N@5", "MAP"], ["RRF", "47.71", "47.71"]) == ["RRF, N@5: 47.71"]
    assert check(["MQ2007-agg", "N@5"], ["RRF", "47.17"]) == ["RRF, N@5: 47.17"]
    assert check(["", "MQ2008-agg", "MQ2007-agg"], ["RRF", "47.17, 47.71", "43.13"]) == []
    assert check(["", "N@5"], ["Borda", "47.17"]) == ["Borda, N@5: 47.17"]
