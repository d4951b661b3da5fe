"""Notebooks as scripts in Jupytext's percent format: read into cells, and run without Jupyter."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from podium.core import registry
from podium.core.errors import capture_warnings

MARKER = "# %%"


class Cell(NamedTuple):
    """Markdown or code."""

    kind: str
    text: str


class CellOutput(NamedTuple):
    """What a code cell printed, and the value of its last expression, if any."""

    printed: str
    value: Any


def read_cells(path: Path) -> list[Cell]:
    """The cells of a notebook."""
    cells = []
    for part in path.read_text(encoding="utf-8").split(f"\n{MARKER}"):
        head, _, body = part.removeprefix(MARKER).partition("\n")
        if head.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            cells.append(Cell("markdown", "\n".join(lines)))
        else:
            cells.append(Cell("code", body.strip()))
    return cells


def run_cells(path: Path) -> Iterator[tuple[Cell, CellOutput]]:
    """Run a notebook; methods that it defines are removed from the registry afterwards."""
    known = set(registry.aggregators.all())
    scope: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in read_cells(path):
            output = (
                CellOutput("", None) if cell.kind == "markdown" else _run_code(cell.text, scope, path.name)
            )
            yield cell, output
    finally:
        for name in set(registry.aggregators.all()) - known:
            registry.aggregators.discard(name)


def _run_code(code: str, scope: dict[str, Any], name: str) -> CellOutput:
    """Run a cell as Jupyter does: the value of a last line that is an expression is an output."""
    tree, value = ast.parse(code, name), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed, capture_warnings() as messages:
        exec(compile(tree, name, "exec", dont_inherit=True), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), scope)
    return CellOutput(printed.getvalue() + "".join(f"warning: {text}\n" for text in messages), value)
