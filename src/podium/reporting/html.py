"""Render a report as one self-contained, printable HTML file with embedded figures."""

from __future__ import annotations

import importlib.resources
import json
import re

from podium.core import tables
from podium.evaluate import charts
from podium.reporting.blocks import Block, Figure, Report, ReportFinding, ReportTable, Section

__all__ = ["render_page"]

WORDS = {"ok": "ok", "check": "check", "wrong": "wrong", "unknown": "unknown"}
DRAW = (
    "for (const holder of document.querySelectorAll('figure script[type=\"application/json\"]')) {"
    "const target = holder.previousElementSibling;"
    "vegaEmbed(target, JSON.parse(holder.textContent), {actions: false, renderer: 'svg'}); }"
)


def render_page(report: Report, *, interactive: bool = False) -> str:
    """Render the page. Figures are SVG; `interactive` adds scripts that redraw them with tooltips."""
    style = importlib.resources.files(__package__).joinpath("style.css").read_text("utf-8")
    parts = [_render_verdict(report), _render_contents(report), _render_checks(report.findings)]
    parts += [_render_section(s, interactive) for s in report.sections]
    parts.append(_render_provenance(report))
    if interactive and report.figures:
        code = re.sub(r"</(script)", r"<\\/\1", charts.browser_code(), flags=re.IGNORECASE)
        parts.append(f'<script type="module">{code}\n{DRAW}</script>')
    return tables.render_page(report.title, *parts, style=style)


def _render_verdict(report: Report) -> str:
    said = "".join(map(tables.render_paragraph, report.verdict))
    return f'<div class="verdict" role="note" aria-label="Verdict">{said}</div>'


def _render_contents(report: Report) -> str:
    titles = {
        "trust": "Can you trust it?",
        **{s.name: s.title for s in report.sections},
        "made": "Provenance",
    }
    links = "".join(
        f'<li><a href="#{name}">{tables.escape_html(title)}</a></li>' for name, title in titles.items()
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _render_checks(findings: tuple[ReportFinding, ...]) -> str:
    rows = "".join(
        f'<tr><td><span class="mark {f.verdict}">{WORDS[f.verdict]}</span></td><td>{tables.escape_html(f.name)}</td>'
        f"<td>{tables.escape_html(f.text)}</td></tr>"
        for f in findings
    )
    head = '<tr><th scope="col">verdict</th><th scope="col">check</th><th scope="col">reason</th></tr>'
    counts = {w: sum(f.verdict == v for f in findings) for v, w in WORDS.items()}
    caption = ", ".join(f"{n} {w}" for w, n in counts.items() if n)
    table = f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f'<section id="trust"><h2>Can you trust it?</h2><div class="scroll checks">{table}</div></section>'


def _render_section(section: Section, interactive: bool) -> str:
    body = "\n".join(_render_block(b, interactive) for b in section.blocks)
    return f'<section id="{section.name}"><h2>{tables.escape_html(section.title)}</h2>\n{body}</section>'


def _render_block(block: Block, interactive: bool) -> str:
    if isinstance(block, str):
        return tables.render_paragraph(block)
    if isinstance(block, ReportTable):
        return f'<div class="scroll">{tables.render_table(block.grid, most=block.most)}</div>'
    if isinstance(block, Figure):
        return _render_figure(block, interactive)
    return '<ul class="points">' + "".join(f"<li>{tables.escape_html(line)}</li>" for line in block) + "</ul>"


def _render_figure(figure: Figure, interactive: bool) -> str:
    drawn = charts.render_svg(figure.chart, figure.name)
    label = f'role="img" aria-label="{tables.escape_html(figure.caption)}"'
    spec = ""
    if interactive:
        text = json.dumps(charts.to_vega_lite(figure.chart), ensure_ascii=False).replace("<", "\\u003c")
        spec = f'<script type="application/json">{text}</script>'
    holder = f"<div {label}>{drawn}</div>{spec}"
    caption = f"<figcaption>{tables.escape_html(figure.caption)}</figcaption>"
    return f'<figure id="figure-{figure.name}">{holder}{caption}</figure>'


def _render_provenance(report: Report) -> str:
    rows = tuple((k, v) for k, v in report.made.items())
    body = "".join(
        f"<tr><td>{tables.escape_html(k)}</td><td>{tables.escape_html(v)}</td></tr>" for k, v in rows
    )
    return (
        f'<section id="made"><h2>Provenance</h2><table class="made"><tbody>{body}</tbody></table></section>'
    )
