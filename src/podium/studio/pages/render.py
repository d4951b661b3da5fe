"""Pages from templates, which escape all text not marked as HTML; CSV; figures and static files."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import jinja2
from markupsafe import Markup

from podium.core import tables
from podium.core.version import __version__
from podium.evaluate import charts
from podium.reporting.blocks import render_checks

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # spreadsheets evaluate cells with these prefixes
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


@functools.cache
def load_asset(name: str) -> tuple[bytes, str] | None:
    """A static file and its content type; the style sheet extends that of reports."""
    if name == "style.css":
        report = importlib.resources.files("podium.reporting").joinpath("style.css").read_text("utf-8")
        return "\n".join([tables.STYLE, report, read_static("studio.css")]).encode(), KINDS[".css"]
    if name in ("studio.js", "icon.svg", "collect.js", "collect.css", "explain.js"):
        return read_static(name).encode(), KINDS[name[name.rindex(".") :]]
    if name == "plots.js":
        return charts.browser_code().encode(), KINDS[".js"]
    return None


def read_static(name: str) -> str:
    """A file of the folder `static`."""
    return importlib.resources.files(__package__).joinpath("static", name).read_text("utf-8")


def _format_shade(rank: int | None) -> str:
    """The CSS class of a cell: rank 1 is darkest, and each lighter shade covers twice as many ranks.

    >>> [_format_shade(r) for r in (1, 2, 3, 4, 40, None)]
    ['r1', 'r2', 'r2', 'r3', 'r6', 'none']
    """
    return "none" if rank is None else f"r{min(6, rank.bit_length())}"


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
        "when": lambda t: "" if t is None else datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "shade": _format_shade,
        "short": tables.shorten_text,
        "figure": tables.format_decimal,
        "checks": lambda rows: Markup(render_checks(rows)),
    }
    environment.globals["version"] = __version__
    return environment


def render_page(template: str, **values: Any) -> str:
    """Render a page from a template."""
    return _load_templates().get_template(template).render(**values)
