"""Tables of the documentation against what the commands beside them print now.

A comment right above a Markdown table names its command:

    <!-- figures: podium reproduce table2 --seeds 6 -->

The first cell of a line names a row of the command, and every number of the line, to its own digits, must be among
those that the command prints for that row: in the column of that name where the table has such a column, and on the
data set of that name where the table's first cell or a column names one. `figures, slow:` marks commands that take
more than a few seconds; they run with PODIUM_SLOW_FIGURES=1. The paired differences from the baseline are in the
column `difference`, with Holm's p-value of the first metric in brackets, or `not significant` from .05 on. As that
depends on which rows are tested together, all rows of such a table are computed.
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
IN_BRACKETS = re.compile(r"\(([^)]*)\)")
UNCLEAR = "not significant"
SLOW = os.environ.get("PODIUM_SLOW_FIGURES") == "1"


class DocumentedTable(NamedTuple):
    """A table of a page and the command that prints its figures."""

    page: str
    slow: bool
    command: str
    cells: list[list[str]]

    @property
    def rows(self) -> list[str]:
        """Names of the rows to compute; empty for all of them, where p-values are shown."""
        values = [cell for line in self.cells[1:] for cell in line[1:]]
        shows_p = any(cell == UNCLEAR or IN_BRACKETS.search(cell) for cell in values)
        return [] if shows_p else [line[0].strip("` ") for line in self.cells[1:]]


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
        elif head[1] == "annotators":
            for column, value in zip(head[2:], cells[2:], strict=True):
                words = {"yes": "1", "no": "0"}
                if value:
                    value = float(words.get(value, value))
                    figures.append(PrintedFigure(cells[0], cells[1].lower(), column, value))
        elif head[1].startswith("against"):  # paired tests
            row = cells[1].lower()
            figures.append(PrintedFigure(cells[0], row, "difference", float(cells[3])))
            figures.append(PrintedFigure(cells[0], row, "p", float(cells[5].replace("<0.001", "0"))))
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
                and f.column != "p"
                and (not places or f.data.lower() in places)
                and (title not in columns or f.column == title)
            ]
            p = next((f.value for f in figures if f.row == name and f.column == "p"), None)
            shown = NUMBER.findall(" ".join(IN_BRACKETS.findall(cell)))
            if shown != ([] if p is None or not shown else [f"{p:.3f}"]):
                wrong.append(f"{line[0]}, {title}: ({', '.join(shown)}) instead of p {p}")
            converged = [f.value for f in figures if f.row == name and f.column == "converged"]
            if title == "converged" and cell and [float(cell == "yes")] != converged:
                wrong.append(f"{line[0]}, {title}: {cell}")
            if cell == UNCLEAR and (p is None or p < 0.05):
                wrong.append(f"{line[0]}, {title}: {cell}, but p is {p}")
            for text in NUMBER.findall(IN_BRACKETS.sub("", cell)):
                digits = len(text.partition(".")[2])
                # printed figures are rounded to two digits themselves
                slack = 0.5 * 10.0**-digits + (0.005 if digits < 2 else 0) + 1e-9
                near = 1e-9 if digits >= 2 else slack
                if not any(abs(value - float(text)) <= near for value in known):
                    wrong.append(f"{line[0]}, {title}: {text}")
    return wrong


TABLES = find_tables()


@pytest.mark.data
@pytest.mark.parametrize("table", TABLES, ids=[f"{t.page}: {t.command}" for t in TABLES])
def test_documented_figures_are_printed_by_their_command(table, data_dir):
    if table.slow and not SLOW:
        pytest.skip("takes minutes; set PODIUM_SLOW_FIGURES=1")
    assert check_table(table, run_command(table.command, table.rows, data_dir)) == []


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


def test_a_stale_p_value_is_found():
    figures = [
        PrintedFigure("crowd", name, column, value)
        for name, difference, p in (("crowdagg", 3.45, 0.005), ("em-elo", 0.47, 1.0), ("mpm", -9.41, 0.0))
        for column, value in (("difference", difference), ("p", p))
    ]

    def check(*cells: str) -> list[str]:
        table = DocumentedTable("page", True, "podium reproduce crowd", [["", "difference"], list(cells)])
        assert table.rows == []
        return check_table(table, figures)

    assert check("CrowdAgg", "+3.45 (0.005)") == []
    assert check("EM-Elo", "not significant") == []
    assert check("MPM", "-9.41 (0.000)") == []
    assert check("CrowdAgg", "+3.45 (0.004)") == ["CrowdAgg, difference: (0.004) instead of p 0.005"]
    assert check("CrowdAgg", "not significant") == ["CrowdAgg, difference: not significant, but p is 0.005"]
    assert check("MPM", "+9.41 (0.000)") == ["MPM, difference: +9.41"]
