"""Writing charts to files; the only module that uses the plotting library."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from podium.core.errors import ParameterError
from podium.core.optional import require_module

__all__ = ["browser_code", "check_suffix", "import_altair", "render_svg", "save_chart", "to_vega_lite"]

SUFFIXES = (".svg", ".png", ".html")
# a color-blind safe palette (Okabe & Ito) and font sizes that are legible in print
STYLE: dict[str, dict[str, Any]] = {
    "range": {
        "category": ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c8c"]
    },
    "axis": {"labelFontSize": 11, "titleFontSize": 12},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "symbolOpacity": 1},
}


def import_altair() -> Any:
    """Import Altair and check that its renderer is installed too."""
    require_module("vl_convert")
    return require_module("altair")


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Reject other file types."""
    if Path(path).suffix not in SUFFIXES:
        raise ParameterError(f"cannot draw {path}; the name must end in {', '.join(SUFFIXES)}")


def save_chart(chart: Any, path: str | os.PathLike[str]) -> None:
    """Write a chart in the format of the file's suffix; a page needs no network."""
    check_suffix(path)
    target, spec = Path(path), to_vega_lite(chart)
    vl = require_module("vl_convert")
    if target.suffix == ".html":
        target.write_text(vl.vegalite_to_html(spec, bundle=True), encoding="utf-8")
    elif target.suffix == ".png":
        target.write_bytes(vl.vegalite_to_png(spec, scale=2))
    else:
        target.write_text(_renumber_ids(vl.vegalite_to_svg(spec), "p"), encoding="utf-8")


def render_svg(chart: Any, prefix: str) -> str:
    """A chart as SVG for a page: ids begin with the prefix, so that several charts can share the page.

    Marks have no descriptions of their own; the page describes the chart as a whole.
    """
    spec = to_vega_lite(chart)
    spec["config"]["aria"] = False
    drawn: str = require_module("vl_convert").vegalite_to_svg(spec)
    drawn = re.sub(r'\s(?:xmlns(?::\w+)?|version|aria-\w+|role)="[^"]*"', "", drawn)
    return _renumber_ids(drawn, prefix)


def _renumber_ids(drawn: str, prefix: str) -> str:
    """Renumber ids from 0: the library keeps counting between charts, so equal charts would differ."""
    ids = {name: f"{prefix}-{n}" for n, name in enumerate(re.findall(r'\bid="([^"]+)"', drawn))}
    return re.sub(r'(\bid="|url\(["\']?#|href="#)([^"\')]+)', lambda m: m[1] + ids.get(m[2], m[2]), drawn)


def browser_code() -> str:
    """The plotting library's browser code, for pages that draw charts themselves."""
    import_altair()
    code: str = require_module("vl_convert").javascript_bundle()
    return code


def to_vega_lite(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite document in the common style, unless the chart overrides it."""
    import_altair()
    spec: dict[str, Any] = chart.to_dict(validate=False)
    own = spec.get("config", {})
    spec["config"] = own | {k: v | own.get(k, {}) for k, v in STYLE.items()}
    return spec
