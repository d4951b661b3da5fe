"""Charts to files: the one place that knows the plotting library."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from podium.errors import ParameterError

__all__ = ["altair", "check_suffix", "save"]

SUFFIXES = (".svg", ".png", ".html")


def altair() -> Any:
    """Altair, or an error that says how to get it."""
    try:
        importlib.import_module("vl_convert")
        return importlib.import_module("altair")
    except ImportError:
        remedy = "install podium-rank[plots]"
        raise ParameterError(f"plots need altair and vl-convert-python; {remedy}") from None


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse other kinds of pictures."""
    if Path(path).suffix not in SUFFIXES:
        raise ParameterError(f"cannot draw {path}; the name must end in {', '.join(SUFFIXES)}")


def save(chart: Any, path: str | os.PathLike[str]) -> None:
    """Write a chart as the suffix of the file says; a page needs no network."""
    check_suffix(path)
    target = Path(path)
    if target.suffix == ".html":
        target.write_text(chart.to_html(inline=True), encoding="utf-8")
    else:
        chart.save(str(target), scale_factor=2 if target.suffix == ".png" else 1)
