"""HTML of a method for notebooks: its parameters, which of them were changed, and its learned state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.params import parameters
from podium.core.tables import Grid, render_block, render_paragraph, render_table, shorten_text

if TYPE_CHECKING:
    from podium.methods.base import Aggregator

__all__ = ["render_method"]


def render_method(method: Aggregator) -> str:
    """Name, purpose, parameters and learned state."""
    default = {f.name: f.default for f in dataclasses.fields(method)}
    about = {p.name: p for p in parameters(type(method))}
    rows = []
    for name, value in method.get_parameters().items():
        changed = type(value) is not type(default[name]) or value != default[name]
        known = about.get(name)
        meaning = " ".join(filter(None, (known.help, known.describe()))) if known else ""
        if name != "weights" or changed:
            rows.append(
                (name, repr(value), f"changed from {default[name]!r}" if changed else "default", meaning)
            )
    summary = (type(method).__doc__ or "").strip().partition("\n")[0]
    cited = f" {method.citation}." if method.citation else ""
    parts = [render_paragraph(summary + cited)]
    if rows:
        parts.append(render_table(Grid(("parameter", "value", "", "meaning"), tuple(rows), 4)))
    learned = {k: v for k, v in vars(method).items() if k.endswith("_") and not k.startswith("_")}
    if learned:
        state = tuple((name, summarize_value(value)) for name, value in learned.items())
        parts.append(render_table(Grid(("learned", ""), state, 2)))
    elif method.tags.supervised:
        parts.append(render_paragraph("Not fitted: it learns from labels; call fit first."))
    return render_block(repr(method), *parts)


def summarize_value(value: Any) -> str:
    """Summarize one learned attribute.

    >>> summarize_value(np.zeros((2, 3))), summarize_value([1, 2, 3]), summarize_value("x")
    ('2 x 3 numbers from 0 to 0', '3 values: [1, 2, 3]', "'x'")
    """
    if isinstance(value, np.ndarray):
        shape = " x ".join(map(str, value.shape)) or "1"
        numeric = value.size and value.dtype.kind in "fiu" and np.isfinite(value).all()
        return f"{shape} numbers" + (f" from {value.min():.4g} to {value.max():.4g}" if numeric else "")
    if isinstance(value, list | tuple | dict):
        return shorten_text(f"{len(value):,} values: {list(value)[:8]!r}")
    return shorten_text(repr(value))
