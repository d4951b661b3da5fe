"""Pages from templates, which escape all text not marked as HTML; CSV; figures and static files."""

from __future__ import annotations

import functools
import importlib.resources
import re
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import jinja2
from markupsafe import Markup

from podium.core import tables
from podium.core.version import __version__
from podium.evaluate import charts
from podium.reporting.blocks import render_checks
from podium.studio.item_texts import name_item
from podium.studio.pages.data_tables import TablePage

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # spreadsheets evaluate cells with these prefixes
WIDE, NARROW, BESIDE = 1040, 200, 150  # pixels: a card, the least width of a plot, what lies beside it
PHONE = 340  # pixels of a card on a phone
SMALLEST_CELL, LARGEST_CELL = 12, 44  # pixels of a cell of a heatmap, where it is fitted to its card
TRIED = 1.5  # by what the cells are widened to measure how the drawing grows
LETTERS = 36  # of a title that fit there in one line
# colors of categories on a dark page: the palette of the light one, lighter
DARK = ["#6fb7ff", "#ff9a5c", "#4fd1a5", "#e6a3cb", "#f5c451", "#9bd4f5", "#e8edf3", "#a0a8b2"]
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def safe_cell(value: Any) -> Any:
    """Escape a cell so that no spreadsheet evaluates it as a formula; numbers stay numbers.

    >>> safe_cell("=1+1"), safe_cell("-a"), safe_cell(-0.5), safe_cell("a=b"), safe_cell(("x", "y"))
    ("'=1+1", "'-a", -0.5, 'a=b', 'x; y')
    """
    if isinstance(value, tuple | list):
        value = "; ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def format_csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Comma-separated values that are safe to open in a spreadsheet."""
    return tables.format_csv([safe_cell(h) for h in head], ([safe_cell(v) for v in row] for row in rows))


def render_svg(chart: Any) -> str:
    """A figure as a standalone SVG file."""
    drawn = charts.render_svg(chart, "f")
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def style_chart(chart: Any, theme: str, width: int) -> Any:
    """A chart in the colors of a theme, as wide as its place where its width is free (not a number of steps)."""
    text, line, grid = (
        ("#566070", "#8a94a3", "#e6e9ed") if theme == "light" else ("#9ea9b7", "#68737f", "#262d37")
    )
    ink = "#151a21" if theme == "light" else "#e8edf3"
    styled = chart.copy()
    shades = {
        "labelColor": text,
        "titleColor": text,
        "domainColor": line,
        "tickColor": line,
        "gridColor": grid,
        "titleLimit": width - BESIDE,
    }
    colors: dict[str, dict[str, Any]] = {
        "axis": shades,
        "axisX": {"labelSeparation": 14},
        "legend": {"labelColor": text, "titleColor": text, "labelLimit": 220},
        "header": {"labelColor": text, "titleColor": text},
        "title": {
            "color": ink,
            "subtitleColor": text,
            "anchor": "start",
            "fontSize": 13,
            "limit": width - 20,
        },
        "text": {"color": ink},
        "view": {"stroke": None},
    }
    if width <= PHONE:
        colors["legend"] |= {"orient": "bottom", "columns": 1}
        colors["axis"] = shades | {"labelLimit": 105}
        # a title that is longer than the axis extends below the labels beside it, not beyond the edge
        colors["axisX"] |= {"titleAnchor": "end"}
    if theme == "dark":
        colors["range"] = {"category": DARK}
        colors["rule"] = {"color": "#9ea9b7"}
    config = styled.to_dict(validate=False).get("config", {})
    merged = {name: config.get(name, {}) | values for name, values in colors.items()}
    # fonts of browsers are wider than those that measured the labels
    styled = styled.properties(
        background="transparent", padding={"left": 28, "right": 18, "top": 4, "bottom": 4}
    )
    styled.config = config | merged
    if width <= PHONE:
        _wrap_titles(styled)
    return _fit_width(styled, width)


def _wrap_titles(chart: Any) -> None:
    """Break the lines of titles that are longer than a phone is wide."""
    for part in _list_parts(chart):
        title = part.to_dict(validate=False).get("title")
        lines = {"text": title} if isinstance(title, str) else title
        if isinstance(lines, dict):
            part.title = lines | {
                name: textwrap.wrap(lines[name], LETTERS)
                for name in ("text", "subtitle")
                if isinstance(lines.get(name), str)
            }


def _fit_width(chart: Any, width: int) -> Any:
    """Make a chart as wide as its place: what lies beside the plot (labels, legend) is measured in a drawing."""
    parts = _list_parts(chart)
    panels = getattr(chart, "hconcat", None) or getattr(chart, "concat", None) or ()
    free = [
        part
        for part in parts
        if isinstance(getattr(part, "width", None), int | float) and part.width >= NARROW
    ]
    if not free or len(panels) > 1:
        return _fit_steps(chart, parts, width)
    plot = width - BESIDE
    for _ in range(2):
        for part in free:
            part.width = plot
        plot = max(round(plot - (_measure_width(chart) - width)), NARROW // 2)
    for part in free:
        part.width = plot
    return chart


def _list_parts(chart: Any) -> list[Any]:
    """The charts of which a chart is put together, itself included."""
    parts = [chart]
    for name in ("vconcat", "hconcat", "concat"):
        for part in getattr(chart, name, None) or ():
            parts += _list_parts(part)
    return parts


def _measure_width(chart: Any) -> float:
    drawn = re.search(r'<svg[^>]*? width="([0-9.]+)"', charts.render_svg(chart, "f"))
    return float(drawn[1]) if drawn else 0.0


def _fit_steps(chart: Any, parts: Sequence[Any], width: int) -> Any:
    """Make the cells of a chart as wide as its place allows; on a phone they stay as they are, and it scrolls."""
    widths = [getattr(part, "width", None) for part in parts]
    steps = {n: own["step"] for n, own in enumerate(widths) if isinstance(own, dict) and "step" in own}
    if not steps or width <= PHONE:
        return chart

    def widen(factor: float) -> None:
        for n, step in steps.items():
            parts[n].width = {"step": step * factor}

    before = _measure_width(chart)
    widen(TRIED)
    growth = (_measure_width(chart) - before) / (TRIED - 1)
    room = (width - before) / growth if growth > 0 else 0.0
    widen(min(max(1 + room, SMALLEST_CELL / min(steps.values())), max(LARGEST_CELL / max(steps.values()), 1)))
    return chart


@functools.cache
def load_asset(name: str) -> tuple[bytes, str] | None:
    """A static file and its content type; the style sheet joins those of the folder, the tokens first."""
    if name == "style.css":
        own = sorted(list_static() - {"docs.css", "studio.css"})
        sheets = ["studio.css", *(n for n in own if n.endswith(".css"))]
        return "\n".join(map(read_static, sheets)).encode(), KINDS[".css"]
    if name == "plots.js":
        return charts.browser_code().encode(), KINDS[".js"]
    kind = KINDS.get(name[name.rfind(".") :])
    return None if kind is None or name not in list_static() else (read_static(name).encode(), kind)


@functools.cache
def list_static() -> frozenset[str]:
    """The names of the files in the folder `static`."""
    return frozenset(f.name for f in importlib.resources.files(__package__).joinpath("static").iterdir())


def read_static(name: str) -> str:
    """A file of the folder `static`."""
    return importlib.resources.files(__package__).joinpath("static", name).read_text("utf-8")


def _format_shade(rank: int | None) -> str:
    """The CSS class of a cell: rank 1 is darkest, and each lighter shade covers twice as many ranks.

    >>> [_format_shade(r) for r in (1, 2, 3, 4, 40, None)]
    ['r1', 'r2', 'r2', 'r3', 'r6', 'none']
    """
    return "none" if rank is None else f"r{min(6, rank.bit_length())}"


def format_time(seconds: float | None) -> str:
    """A point in time as pages show it.

    >>> format_time(0.0), format_time(None)
    ('1970-01-01 00:00 UTC', '')
    """
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@functools.cache
def _load_templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("podium.studio.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "when": format_time,
        "shade": _format_shade,
        "short": tables.shorten_text,
        "figure": tables.format_decimal,
        "checks": lambda rows: Markup(render_checks(rows)),
    }
    environment.globals["version"] = __version__
    environment.globals["name_item"] = name_item
    return environment


def render_table(page: TablePage) -> Markup:
    """The rows of a table with its controls."""
    return Markup(_load_templates().get_template("table.html").module.table(page))  # type: ignore[attr-defined]


def render_page(template: str, **values: Any) -> str:
    """Render a page from a template."""
    return _load_templates().get_template(template).render(**values)
