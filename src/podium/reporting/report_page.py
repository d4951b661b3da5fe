"""A report: plain values, one self-contained, printable HTML file, figures as files."""

from __future__ import annotations

import importlib.resources
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from podium.core import tables
from podium.core.errors import Option, ParameterError
from podium.core.tables import Grid, escape_html
from podium.evaluate import charts
from podium.reporting.blocks import (
    Figure,
    FindingVerdict,
    ReportFinding,
    ReportTable,
    Section,
    render_block,
    render_checks,
)
from podium.storage.files import write_atomically

__all__ = ["Report"]

KINDS = (".svg", ".png")
DRAW = (
    "for (const holder of document.querySelectorAll('figure script[type=\"application/json\"]')) {"
    "const target = holder.previousElementSibling;"
    "vegaEmbed(target, JSON.parse(holder.textContent), {actions: false, renderer: 'svg'}); }"
)


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
        checks = tables.render_table(Grid(("check", "verdict", "why"), rows, 3))
        return tables.render_block(self.title, *map(tables.render_paragraph, self.verdict), checks)

    @property
    def figures(self) -> list[Figure]:
        """All figures in order."""
        return [b for s in self.sections for b in s.blocks if isinstance(b, Figure)]

    def to_html(self, *, interactive: bool = False) -> str:
        """The whole report as one page that needs no network.

        Figures are SVG; `interactive` adds scripts that redraw them with tooltips.
        """
        verdict = "".join(map(tables.render_paragraph, self.verdict))
        titles = {"trust": "Can you trust it?"} | {s.name: s.title for s in self.sections}
        links = "".join(
            f'<li><a href="#{name}">{escape_html(title)}</a></li>'
            for name, title in (titles | {"made": "Provenance"}).items()
        )
        counts = {v: sum(f.verdict == v for f in self.findings) for v in get_args(FindingVerdict)}
        caption = ", ".join(f"{n} {w}" for w, n in counts.items() if n)
        checks = render_checks(((f.verdict, f.name, f.text) for f in self.findings), caption)
        parts = [
            f'<div class="verdict" role="note" aria-label="Verdict">{verdict}</div>',
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>',
            f'<section id="trust"><h2>{titles["trust"]}</h2><div class="scroll checks">{checks}</div></section>',
        ]
        for section in self.sections:
            body = "\n".join(render_block(b, interactive=interactive) for b in section.blocks)
            title = f"<h2>{escape_html(section.title)}</h2>"
            parts.append(f'<section id="{section.name}">{title}\n{body}</section>')
        facts = "".join(
            f"<tr><td>{escape_html(k)}</td><td>{escape_html(v)}</td></tr>" for k, v in self.made.items()
        )
        table = f'<table class="made"><tbody>{facts}</tbody></table>'
        parts.append(f'<section id="made"><h2>Provenance</h2>{table}</section>')
        if interactive and self.figures:
            code = re.sub(r"</(script)", r"<\\/\1", charts.browser_code(), flags=re.IGNORECASE)
            parts.append(f'<script type="module">{code}\n{DRAW}</script>')
        style = importlib.resources.files(__package__).joinpath("style.css").read_text("utf-8")
        return tables.render_page(self.title, *parts, style=style)

    def save(
        self, path: str | os.PathLike[str], *, interactive: bool = False, overwrite: bool = False
    ) -> None:
        """Write the page atomically."""
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
        sections = []
        for section in self.sections:
            blocks: list[Any] = []
            for block in section.blocks:
                if isinstance(block, Figure):
                    blocks.append({"figure": block.name, "caption": block.caption})
                elif isinstance(block, ReportTable):
                    rows = [list(row) for row in block.grid.rows]
                    blocks.append({"table": block.grid.title, "head": list(block.grid.head), "rows": rows})
                else:
                    blocks.append(block if isinstance(block, str) else list(block))
            sections.append({"name": section.name, "title": section.title, "blocks": blocks})
        document: dict[str, Any] = {"title": self.title, "verdict": list(self.verdict)}
        document |= {"findings": [vars(f) for f in self.findings], "sections": sections, "made": self.made}
        plain: dict[str, Any] = tables.replace_nonfinite(document)
        return plain
