"""The content of reports and of the studio's pages, and how it is rendered as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from podium.core import tables
from podium.core.tables import Grid, escape_html
from podium.evaluate import charts

__all__ = [
    "Block",
    "Figure",
    "FindingVerdict",
    "ReportFinding",
    "ReportTable",
    "Section",
    "render_block",
    "render_checks",
]

FindingVerdict = Literal["ok", "check", "wrong", "unknown"]


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
    """A table; pages show its first `most` rows. `items` are the columns whose cells are ids of items."""

    grid: Grid
    most: int | None = None
    items: tuple[int, ...] = ()


Block = str | tuple[str, ...] | Figure | ReportTable  # a paragraph, a bullet list, a figure, a table


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and its content."""

    name: str  # of the anchor
    title: str
    blocks: Sequence[Block]


def render_block(
    block: Block, *, pictures: str = "", links: Mapping[str, str] | None = None, interactive: bool = False
) -> str:
    """A block as HTML, complete in itself; `interactive` adds the data from which a script redraws a figure.

    `pictures` is for pages that forbid inline styles and whose figures have addresses of their own: the
    address, with {} for the name of the figure. `links` are addresses by the first cell of a table's rows.
    """
    if isinstance(block, str):
        return tables.render_paragraph(block)
    if isinstance(block, ReportTable):
        leads = [links.get(row[0], "") for row in block.grid.rows] if links else ()
        table = tables.render_table(block.grid, most=block.most, links=leads, inline=not pictures)
        if not pictures:
            return f'<div class="scroll">{table}</div>'
        return f'<div class="scroll" tabindex="0">{table.replace("<th ", SCOPED)}</div>'
    if not isinstance(block, Figure):
        return '<ul class="points">' + "".join(f"<li>{escape_html(line)}</li>" for line in block) + "</ul>"
    caption, spec = escape_html(block.caption), ""
    if pictures:
        where = escape_html(pictures.format(block.name))
        dark, phone = "(prefers-color-scheme: dark)", "(max-width: 40rem)"
        sources = (
            (f"{phone} and {dark}", "theme=dark&amp;width=340"),
            (phone, "width=340"),
            (dark, "theme=dark"),
        )
        other = "".join(f'<source media="{m}" srcset="{where}&amp;{more}">' for m, more in sources)
        label = f"Chart: {caption}"  # regions of one page need different names
        drawn = f'<picture>{other}<img src="{where}" alt="{caption}"></picture>'
        holder = f'<div class="picture" tabindex="0" role="region" aria-label="{label}">{drawn}</div>'
        live = (
            f'<button type="button" class="live" data-plot="{where}&amp;plot=1" hidden>Interactive</button>'
        )
        image = escape_html(pictures.replace("{}.svg", "{}.png").format(block.name))
        files = f'<a href="{where}">SVG</a> <a href="{image}">PNG</a>'
        return f"<figure>{holder}<figcaption>{caption} {files} {live}</figcaption></figure>"
    if interactive:
        text = json.dumps(charts.to_vega_lite(block.chart), ensure_ascii=False).replace("<", "\\u003c")
        spec = f'<script type="application/json">{text}</script>'
    drawn = charts.render_svg(block.chart, block.name)
    holder = f'<div role="img" aria-label="{caption}">{drawn}</div>{spec}'
    return f'<figure id="figure-{block.name}">{holder}<figcaption>{caption}</figcaption></figure>'


SCOPED = '<th scope="col" '


def render_checks(checks: Iterable[tuple[FindingVerdict, str, str]], caption: str = "") -> str:
    """A table of checks: verdict, name and reason of each."""
    rows = "".join(
        f'<tr><td><span class="mark {verdict}">{verdict}</span></td><td>{escape_html(name)}</td>'
        f"<td>{escape_html(text)}</td></tr>"
        for verdict, name, text in checks
    )
    head = "".join(f'<th scope="col">{word}</th>' for word in ("verdict", "check", "reason"))
    title = f"<caption>{caption}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
