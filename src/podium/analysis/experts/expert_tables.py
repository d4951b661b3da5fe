"""A diagnosis as tables and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from podium.analysis.experts.result import Diagnosis, Expert
from podium.core import tables
from podium.core.errors import ParameterError

__all__ = ["as_html", "experts_grid", "matrix_grid"]

MOST = 30  # experts shown in a notebook


def experts_grid(found: Diagnosis) -> tables.Grid:
    """One row per expert, largest effect first; without labels, highest agreement first."""
    share = found.measure != "tau-b"
    columns: dict[str, Callable[[Expert], str]] = {
        "queries": lambda r: f"{r.queries:,}",
        "length": lambda r: tables.format_decimal(r.length, 1),
        "alone": lambda r: tables.format_percent(r.alone),
        found.measure: lambda r: (
            tables.format_percent(r.agreement) if share else tables.format_decimal(r.agreement, 2)
        ),
        "RBO": lambda r: tables.format_decimal(r.overlap, 2),
        "judged": lambda r: tables.format_percent(r.judged),
        str(found.metric): lambda r: tables.format_decimal(r.value),
        "effect": lambda r: tables.format_decimal(r.effect, sign=True),
        "interval": lambda r: tables.format_interval(r.low, r.high),
        "moved": lambda r: tables.format_decimal(r.moved, 2),
    }
    order = sorted(found.rows, key=_sort_key)
    cells = {name: [of(r) for r in order] for name, of in columns.items()}
    kept = [name for name, column in cells.items() if any(column)]
    lines = tuple(
        (str(r.expert), *(cells[name][i] for name in kept), ", ".join(r.flags)) for i, r in enumerate(order)
    )
    return tables.Grid(("expert", *kept, "flags"), lines, 1, found.headline())


def _sort_key(r: Expert) -> tuple[float, float]:
    return tuple(-v if v is not None and math.isfinite(v) else math.inf for v in (r.effect, r.agreement))  # type: ignore[return-value]


def matrix_grid(found: Diagnosis, which: str) -> tables.Grid:
    """Expert names on both sides; empty cells where two experts share nothing."""
    if which not in ("agreement", "overlap", "shared"):
        raise ParameterError(f"there is no matrix {which!r}; accepted: agreement, overlap, shared")
    names = tuple(map(str, found.experts))
    title = {
        "agreement": f"{found.measure} on common items"
        if found.measure == "tau-b"
        else "share of agreeing pairs",
        "overlap": "RBO (p = 0.9)",
        "shared": "queries that both answer",
    }[which]
    matrix = getattr(found, which)
    if matrix is None:
        raise ParameterError("votes have no RBO; accepted: agreement, shared")
    digits = 0 if which == "shared" else 2
    rows = tuple(
        (name, *(tables.format_decimal(v, digits) for v in row))
        for name, row in zip(names, matrix.tolist(), strict=True)
    )
    return tables.Grid(("", *names), rows, 1, title)


def as_html(found: Diagnosis) -> str:
    """Warnings, then the tables."""
    entries = "".join(f"<li>{tables.escape_html(w)}</li>" for w in found.warnings)
    parts = [f"<ul>{entries}</ul>" if entries else ""]
    parts.append(tables.render_table(replace(experts_grid(found), title=""), most=MOST))
    if len(found) <= MOST:
        parts.append(tables.render_table(matrix_grid(found, "agreement")))
        parts.append("" if found.overlap is None else tables.render_table(matrix_grid(found, "overlap")))
    return tables.render_block(found.headline(), *parts)
