"""The content of a report, independent of HTML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podium.core import tables
from podium.core.errors import Option, ParameterError
from podium.core.tables import Grid, replace_nonfinite
from podium.evaluate import charts

__all__ = ["Block", "Figure", "FindingVerdict", "Report", "ReportFinding", "ReportTable", "Section"]

FindingVerdict = Literal["ok", "check", "wrong", "unknown"]
KINDS = (".svg", ".png")


@dataclass(frozen=True)
class ReportFinding:
    """The result of one check: `ok`, `check` (read before you decide), `wrong`, `unknown`."""

    name: str
    verdict: FindingVerdict
    text: str


@dataclass(frozen=True, eq=False)
class Figure:
    """An Altair chart with its caption; `name` is also the file name."""

    name: str
    chart: Any
    caption: str


@dataclass(frozen=True)
class ReportTable:
    """A table; pages show its first `most` rows."""

    grid: Grid
    most: int | None = None


Block = str | tuple[str, ...] | Figure | ReportTable  # a paragraph, a bullet list, a figure, a table


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and its content."""

    name: str  # of the anchor
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The verdict in a sentence or two, the findings, the sections, and the provenance."""

    title: str
    verdict: tuple[str, ...]
    findings: tuple[ReportFinding, ...]
    sections: tuple[Section, ...]
    made: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Report({self.title!r}: {' '.join(self.verdict)})"

    def _repr_html_(self) -> str:
        """The verdict and the checks; `to_html()` gives the whole page, `save` writes it."""
        rows = tuple((f.name, f.verdict, f.text) for f in self.findings)
        checks = tables.render_table(tables.Grid(("check", "verdict", "why"), rows, 3))
        return tables.render_block(self.title, *map(tables.render_paragraph, self.verdict), checks)

    @property
    def figures(self) -> list[Figure]:
        """All figures in order."""
        return [b for s in self.sections for b in s.blocks if isinstance(b, Figure)]

    def to_html(self, *, interactive: bool = False) -> str:
        """The whole report as one page that needs no network."""
        from podium.reporting.html import render_page

        return render_page(self, interactive=interactive)

    def save(
        self, path: str | os.PathLike[str], *, interactive: bool = False, overwrite: bool = False
    ) -> None:
        """Write the page atomically."""
        from podium.storage.files import write_atomically

        write_atomically([self.to_html(interactive=interactive).encode()], path, overwrite=overwrite)

    def save_figures(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
        """Write every figure as .svg and .png to a folder, which is created if needed."""
        target = Path(folder)
        paths = [(f, target / (f.name + kind)) for f in self.figures for kind in KINDS]
        there = [path for _, path in paths if path.exists()]
        if there and not overwrite:
            raise ParameterError(
                f"{there[0]} exists; choose another folder, or give ", Option("overwrite", True, of="writing")
            )
        target.mkdir(parents=True, exist_ok=True)
        for figure, path in paths:
            charts.save_chart(figure.chart, path)
        return [path for _, path in paths]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the figures as plain values."""
        document: dict[str, Any] = replace_nonfinite(
            {
                "title": self.title,
                "verdict": list(self.verdict),
                "findings": [vars(f) for f in self.findings],
                "sections": [
                    {"name": s.name, "title": s.title, "blocks": [_to_plain(b) for b in s.blocks]}
                    for s in self.sections
                ],
                "made": self.made,
            }
        )
        return document


def _to_plain(block: Block) -> Any:
    if isinstance(block, Figure):
        return {"figure": block.name, "caption": block.caption}
    if isinstance(block, ReportTable):
        grid = block.grid
        return {"table": grid.title, "head": list(grid.head), "rows": [list(row) for row in grid.rows]}
    return block if isinstance(block, str) else list(block)
